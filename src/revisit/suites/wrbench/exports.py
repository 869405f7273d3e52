"""Further files of a run: WRBench's table as CSV with its own columns, and preference pairs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import Case, Rejected
from revisit.suites.tables import Record, by_case
from revisit.suites.wrbench.pairs import preference_pairs
from revisit.suites.wrbench.summary import summarise
from revisit.suites.wrbench.tables import MEASURES

NAMES = dict(
    zip(
        MEASURES,
        ("D1_CamPrec", "D1_CamAlign_common_yaw", "D1_CamAlign_static_hold", "D2", "D3", "D4", "D5", "D6"),
        strict=True,
    )
)


def export(
    run: Path, facts: Mapping[str, Any], cases: Sequence[Case], rejected: Sequence[Rejected], records: Sequence[Record]
) -> dict[str, Any]:
    """Names of files → their content."""
    rows = summarise(cases, rejected, records)["wrbench"]["rows"]
    pairs = preference_pairs(cases, by_case(records))
    return {
        "wrbench_table.csv": table_csv(rows, str(facts["protocol"])),
        "preference_pairs.jsonl": "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs),
    }


def table_csv(rows: Sequence[Mapping[str, Any]], protocol: str) -> str:
    """The published table's columns, with our protocol in `metric_notes`; what is missing is NA, as there."""
    head = ["model_id", "display_name", "model_input", "viewpoint_condition_type", "n_outputs"]
    head += [name for measure in MEASURES for name in (NAMES[measure], f"{NAMES[measure]}_n")]
    head += ["gate_applicable_rate", "low_n_flag", "metric_notes", "Avg"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        cells = [part for measure in MEASURES for part in (_number(row[measure]["value"]), row[measure]["n"])]
        judged = row["support"]["judged"]
        writer.writerow(
            [
                row["model"], row["model"], "", row["condition"].replace("_", "-"), row["outputs"], *cells,
                _number(None if judged is None else judged["share"]), str(row["sparse"]).lower(),
                f"revisit {protocol}", _number(row["average"]),
            ]
        )  # fmt: skip
    return text.getvalue()


def _number(value: float | None) -> str:
    return "NA" if value is None else f"{value:.6f}"
