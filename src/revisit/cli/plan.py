"""`revisit plan`: what an evaluation would do, without decoding anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from revisit.cli import console, options

if TYPE_CHECKING:
    from revisit.engine.costs import WorkForecast


def plan(
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    limit: int = options.LIMIT,
    align: str = options.ALIGN,
    layout: str = options.LAYOUT,
    reference: Path = options.REFERENCE,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    workers: int = options.WORKERS,
    json: bool = options.JSON,
) -> None:
    """Show what an evaluation would do, and what is already done."""
    from revisit.core.text import count_and_noun
    from revisit.engine.availability import observed_by_sets_text
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.costs import forecast_judge_usage, forecast_work
    from revisit.engine.request import Request, idle_judge_warning

    request = Request.from_options(
        source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth,
        layout=layout, reference=reference,
    )  # fmt: skip
    selection = request.chosen_judge()
    work = request.plan(judge=selection.facts if selection else None)
    cache = EvidenceCache(cache_root())
    asking = forecast_judge_usage(work, cache, selection) if selection else None
    missing = [key for key in work.tasks if key not in cache]
    takes = forecast_work(work, missing, cache, workers)
    if json:
        facts = {"evidence": len(work.tasks), "missing": len(missing), "forecast": asdict(takes)}
        console.print_json({**work.as_json(), **facts, **({"judge": asdict(asking)} if asking else {})})
        return
    models = Counter(case.model for case in work.cases)
    console.print_table(["model", "cases"], [[model, str(n)] for model, n in sorted(models.items())])
    needed = Counter(task.observer for _, _, task in work.tasks.values())
    todo = Counter(work.tasks[key][2].observer for key in missing)
    rows = [[name, str(count), str(count - todo[name])] for name, count in sorted(needed.items())]
    console.print_table(["observer", "clips", "already observed"], rows)
    console.print_to_stderr(
        f"suite {work.suite.id}, protocol {work.protocol}, set {work.observers.id}, observers "
        f"{observed_by_sets_text(work.as_json())}: {count_and_noun(len(work.cases), 'case')} x "
        f"{len(work.metrics)} metrics; {count_and_noun(takes.clips, 'clip')} to decode, once each"
    )
    console.print_to_stderr(*filter(None, [work.availability.missing_observers_sentence]), *_forecast_sentences(takes))
    if asking and selection:
        usage = f"judge {selection.judge.facts.get('model')}: {asking.as_sentence()}"
        console.print_to_stderr(idle_judge_warning(work) or usage)
        if asking.exceeds(selection.settings.budget):
            console.print_to_stderr("that is more than the judge's budget: the run will stop there, and can be resumed")
    clips = [case.id for case in work.cases if not case.truth]  # the truth has no reference, nor needs one
    reasons = Counter(reason for id in clips for reason in {*work.wanted[id].absent.values()})
    for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], str(one[0]))):
        console.print_to_stderr(f"{count} of {count_and_noun(len(clips), 'clip')}: {reason}")
    console.print_notes(*work.remarks)
    console.print_to_stderr(*(f"unreadable: {name}: {why}" for name, why in work.unreadable.items()))
    for entry in work.rejected:
        console.print_to_stderr(f"{'missing' if entry.missing else 'rejected'}: {entry.id}: {entry.reason}")


def _forecast_sentences(takes: WorkForecast) -> list[str]:
    """What the work takes here, in sentences; none where nothing is left to decode."""
    from revisit.core.text import count_and_noun
    from revisit.media.limits import format_size

    if not takes.clips:
        return []
    workers = count_and_noun(takes.workers, "worker") if takes.workers else "this process"
    size = f", pictures of {takes.megapixels:.2f} megapixels" if takes.megapixels else ""
    guess = f"; never ran here, and guessed: {', '.join(takes.guessed)}" if takes.guessed else ""
    free = "" if takes.memory_free is None else f" of {format_size(round(takes.memory_free))} free"
    temporary = f"; {format_size(round(takes.temporary))} of temporary files" if takes.temporary else ""
    wall, processor = map(_rounded_duration_text, (takes.wall_seconds, takes.processor_seconds))
    sentences = [
        f"time: about {wall} with {workers} ({processor} of one processor), by earlier runs here{size}{guess}",
        f"memory: about {format_size(round(takes.memory))}{free}",
        f"disk: about {format_size(round(takes.disk))} of {format_size(round(takes.disk_free))} free{temporary}",
    ]
    if takes.memory_free is not None and takes.memory > takes.memory_free:
        sentences.append("that is more memory than is free: use fewer --workers")
    if takes.disk > takes.disk_free:
        sentences.append("that is more than the disk has: free some, or set REVISIT_CACHE to another one")
    return sentences


def _rounded_duration_text(seconds: float) -> str:
    """In words, as far as a guess goes."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(1, seconds):.0f} s"
