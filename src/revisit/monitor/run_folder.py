"""The run directory of a checkpoint: what `revisit eval` would write, from answers that are in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.leases import lock_run
from revisit.engine.plan import Plan
from revisit.engine.provenance import InvocationLog
from revisit.engine.resume import resume_run
from revisit.engine.run_summary import write_result_files
from revisit.engine.score import record_with_saved_units
from revisit.monitor.scoring import ScoredClip
from revisit.report.write_html import write_report
from revisit.results.record_files import RecordWriter
from revisit.results.run import Run


def write_checkpoint_run(out: Path, plan: Plan, clips: Sequence[ScoredClip]) -> Path:
    """Write the run anew, with its page; return the page's path."""
    cache = EvidenceCache(cache_root())
    out.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        for key, record in clip.pictures.items():
            if key in cache:
                continue
            try:
                cache.save(key, record)
            except Exception as error:  # no training ends for a picture
                why = getattr(error, "strerror", None) or type(error).__name__
                problem = f"the cache folder {cache.root} cannot be written ({why}): pages lack pictures"
                cache.problems["write"] = problem
    with lock_run(out, alone=True):
        resumed = resume_run(out, plan, fresh=True, request=None, adds=None)
        account = InvocationLog(resumed, cache, "revisit.Monitor", None, cached=0, adds=False)
        with RecordWriter(out / "records.jsonl") as writer:
            on_disk: set[tuple[str, str]] = set()  # a truth comes with each of its clips
            for clip in clips:
                for record in clip.records:
                    asked = record.case.id, record.question
                    if asked not in on_disk:
                        writer.append(record_with_saved_units(record, clip.series.get(asked), out / "units"))
                        on_disk.add(asked)
        results = write_result_files(resumed)
        account.write_run_json(finished=time.time())
    return write_report(Run(out, resumed.lines, results))
