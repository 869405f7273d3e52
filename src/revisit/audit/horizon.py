"""Horizon: the same failure at growing hidden intervals, and the score of each model over the gap.

The scenes are those of the grid, with the camera resting longer and longer where it has looked away to. Two kinds
of models are filmed: steady ones, whose failure does not depend on the gap, so that a curve which bends shows
the metric's own trouble with long gaps; and fading ones, whose failure grows with the time in which nobody
looked, as memory does when it is a window of frames. The gap is counted in seconds from the first frame that
does not show the target to the first that shows it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from revisit.audit.grid import FPS, PERFECT, TRUTH, grid_film, render_grid, scene_name
from revisit.audit.run import evaluate_grid
from revisit.audit.schema import AuditOptions, Content
from revisit.audit.steadiness import unread_and_failed
from revisit.core import METRICS, Case, UsageError
from revisit.media import encode_mp4
from revisit.media.files import write_json_lines
from revisit.results import Results
from revisit.results.record_files import write_json
from revisit.stats.correlation import kendall_tau
from revisit.worlds.failures import generate

AWAY = (0, 16, 48)  # frames that the camera rests away: 0, 2 and 6 seconds on top of the turn
STEADY = ("vanish", "colour_drift", "state_reset")
FADING = "colour_drift"
FORGOTTEN = 6.0  # seconds after which a fading model has nothing left


def audit_horizon(
    out: Path, kinds: Sequence[str], seeds: Sequence[int], options: AuditOptions = AuditOptions()
) -> Content:
    """Render, evaluate and return the curves; they are written to horizon.json as well."""
    if len(seeds) < 2:
        raise UsageError("a horizon needs two scenes or more")
    lines: list[Content] = []
    for away in AWAY:
        folder = out / "horizon" / f"away-{away}"
        manifest = render_grid(folder, kinds, (1.0,), seeds, away=away, options=options)
        entries = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
        entries += [_fading_clip_line(folder, line) for line in entries if line["model"] == f"{PERFECT}@0"]
        lines += [_line_for_all_gaps(line, folder.name) for line in entries if not line["model"].startswith(TRUTH)]
    write_json_lines(out / "horizon" / "manifest.jsonl", lines, ascii=True)
    plan, run = evaluate_grid(out / "horizon", out / "horizon-run", ("folder",), options)
    content = {
        "set": plan.observers.id,
        "fps": FPS,
        "scenes": sorted({case.sample for case in plan.cases}),
        "forgotten_after": FORGOTTEN,
        "curves": curves(run.results, FPS),
        **unread_and_failed(plan, run.results),
    }
    write_json(out / "horizon.json", content)
    return content


def curves(results: Results, fps: float) -> dict[str, Content]:
    """Metric -> model -> points of (gap in seconds, mean, interval, n), with tau of the score in the gap.

    Cases of one condition make one point of every model, at the mean of the gaps of them all; any run whose cases have
    phases will do.
    """
    with_phases = results.only(lambda entry: isinstance(entry, Case) and entry.phases is not None)
    conditions = with_phases.groups("condition").values()
    gaps_and_parts = sorted(((_mean_hidden_seconds(part, fps), part) for part in conditions), key=lambda pair: pair[0])
    return {
        metric: {
            "title": METRICS[metric].title,
            "higher_is_better": METRICS[metric].higher_is_better,
            "range": list(METRICS[metric].range),
            "models": {
                model: _model_curve(metric, [(gap, part.where(model=model)) for gap, part in gaps_and_parts], fps)
                for model in with_phases.models
            },
        }
        for metric in with_phases.metrics
        if with_phases.scores(metric)
    }


def _mean_hidden_seconds(results: Results, fps: float) -> float:
    return sum(_hidden_seconds(case, fps) for case in results.cases) / len(results.cases)


def _model_curve(metric: str, gaps_and_parts: Sequence[tuple[float, Results]], fps: float) -> Content:
    points = [{"gap": gap, **part.cell(metric).as_json()} for gap, part in gaps_and_parts]
    records = [record for _, part in gaps_and_parts for record in part.scores(metric) if record.value is not None]
    scored = [(_hidden_seconds(record.case, fps), record.value, record.case.sample) for record in records]
    return {"points": points, "tau": kendall_tau(*zip(*scored, strict=True)) if scored else None}


def _hidden_seconds(case: Case, fps: float) -> float:
    assert case.phases is not None
    return (case.phases[1] - case.phases[0]) / fps


def _fading_clip_line(folder: Path, line: Content) -> Content:
    """The line of a model that fades, rendered if it is not there: its failure is as strong as the gap is long."""
    hidden, returned = line["phases"]
    strength = min(1.0, (returned - hidden) / FPS / FORGOTTEN)
    clip = f"fades/{line['id']}.mp4"
    if not (folder / clip).is_file():
        away = int(folder.name.rpartition("-")[2])
        encode_mp4(folder / clip, generate(FADING, grid_film(line["seed"], away=away), strength, line["seed"]), FPS)
    return {**line, "model": "fades@1", "video": clip, "annotations": {"kind": "fades", "strength": strength}}


def _line_for_all_gaps(line: Content, folder: str) -> Content:
    """A line of one gap's manifest as a line of the manifest of all gaps."""
    return {
        **line,
        "video": f"{folder}/{line['video']}",
        "reference": f"{folder}/{line['reference']}",
        "id": f"{scene_name(line['seed'])}-{folder}",
        "model": line["model"].rpartition("@")[0],
        "condition": folder,
    }
