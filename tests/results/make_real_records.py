"""Writes real_records.json from a run: gates and a few scores of the clips in ../shared/data/memobench*.

python tests/results/make_real_records.py RUN
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from revisit.core import import_registering_modules
from revisit.results import Results
from revisit.results.run import Run

GATES = ("camera_moved", "view_return", "look_away", "target_return")
METRICS = ("event_outcome", "target_reappearance", "target_identity", "camera_standstill", "visual_integrity_lite")
FILE = Path(__file__).with_name("real_records.json")


def stored_records(results: Results) -> dict[str, dict[str, object]]:
    """`scene/model` -> state and label of each gate, and scores to four places."""
    made: dict[str, dict[str, object]] = {}
    for case in (*results.cases, *results.truths):
        found = results.of(case)
        gates = {id: [found[id].status, found[id].label] for id in GATES if id in found and found[id].label}
        scores = {id: round(found[id].value or 0.0, 4) for id in METRICS if id in found and found[id].scored}
        made[f"{case.sample}/{'gt' if case.truth else case.model}"] = {**gates, **scores}
    return dict(sorted(made.items()))


if __name__ == "__main__":
    import_registering_modules()
    lines = [
        f" {json.dumps(name)}: {json.dumps(entry)}"
        for name, entry in stored_records(Run(Path(sys.argv[1])).results).items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
