"""Scores of one scene beside its truth, measured and held to it: the table of docs/truth.md.

    python benchmarks/truth_table.py VIDEOS --scene Real_007 --models lingbot wan svc --box 0.31 0.24 0.62 1.0

VIDEOS has <scene>_gt.mp4 and <scene>_<model>.mp4. Writes benchmarks/truth_table.json, from which `docs/make_truth.py`
makes the table. Takes about a minute of a core for each clip.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import revisit
from revisit.core import GATES, METRICS
from revisit.results import Results
from revisit.results.ceilings import held_to_truth
from revisit.results.record_files import write_json

ROWS = ("event_outcome", "target_reappearance", "target_identity", "return_consistency")
OUT = Path(__file__).with_name("truth_table.json")


def cell(results: Results, model: str, metric: str) -> float | str:
    """The score of a model's only clip, or why there is none."""
    (case,) = (case for case in results.cases if case.model == model)
    record = results.of(case)[metric]
    if record.value is None:
        return record.reason.kind if record.reason else record.status
    return round(float(record.value), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path)
    parser.add_argument("--scene", default="Real_007")
    parser.add_argument("--models", nargs="+", default=["lingbot", "wan", "svc"])
    parser.add_argument("--box", nargs=4, type=float, default=[0.31, 0.24, 0.62, 1.0])
    parser.add_argument("--set", default="small")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "manifest.jsonl"
        lines = [
            {
                "id": given.scene, "model": model, "video": str(given.videos.resolve() / f"{given.scene}_{model}.mp4"),
                "reference": str(given.videos.resolve() / f"{given.scene}_gt.mp4"),
                "target": {"name": "target", "box": given.box}, "annotations": {"event": True},
            }
            for model in given.models
        ]  # fmt: skip
        manifest.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        results = revisit.evaluate(
            manifest, out=Path(folder) / "run", set=given.set, metrics=list(ROWS), roots=[given.videos], report=False
        )
        truth = results.truth
        (filmed,) = truth.cases
        scores = {
            metric: {
                "truth": cell(truth, filmed.model, metric),
                **{model: cell(results, model, metric) for model in given.models},
            }
            for metric in ROWS
        }
        held = {
            metric: {model: cell(held_to_truth(results), model, metric) for model in given.models} for metric in ROWS
        }
        gates = {model: results.of(next(c for c in results.cases if c.model == model)) for model in given.models}
        labels = {model: of["target_return"].label for model, of in gates.items() if "target_return" in of}
    write_json(given.out, {
        "set": given.set, "scene": given.scene,
        "versions": {"target_return": GATES["target_return"].version, **{name: METRICS[name].version for name in ROWS}},
        "measured": scores, "held": held, "target": labels,
    })  # fmt: skip


if __name__ == "__main__":
    main()
