"""Further files of a run: WRBench's table as CSV with its own columns, and preference pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core.text import parse_json
from revisit.media.text_files import csv_text
from revisit.results import Results
from revisit.results.stand_ins import rejoin_stand_ins
from revisit.suites.wrbench.metrics import STAND_INS
from revisit.suites.wrbench.preference_pairs import preference_pair_lines
from revisit.suites.wrbench.summary import summarise
from revisit.suites.wrbench.tables import MEASURES, SummaryRow, published_groups_of_model, rename_scores_by_measure

COLUMNS = ("D1_CamPrec", "D1_CamAlign_common_yaw", "D1_CamAlign_static_hold", "D2", "D3", "D4", "D5", "D6")
NAMES = dict(zip(MEASURES, COLUMNS, strict=True))


def export_wrbench_files(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, str]:
    """Names of files → their content; the table has columns for its stand-ins."""
    results = rejoin_stand_ins(results)
    rows = summarise(results)["wrbench"]["rows"]
    path = run / "plan.json"
    cases = parse_json(path.read_text(encoding="utf-8"))["cases"] if path.is_file() else []
    digests = {case["id"]: case["digest"] for case in cases}
    pairs = preference_pair_lines(rename_scores_by_measure(results), digests)
    return {
        "wrbench_table.csv": published_table_csv(rows, str(facts["protocol"])),
        "preference_pairs.jsonl": "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs),
    }


def published_table_csv(rows: Sequence[SummaryRow], protocol: str) -> str:
    """The published table's columns, with our protocol in `metric_notes`; what is missing is NA, as there.

    Stand-ins have columns of their own behind them, and an average that names them.
    """
    head = ["model_id", "display_name", "paper_group", "source_group", "model_input", "viewpoint_condition_type"]
    head += ["n_outputs"]
    head += [f"{NAMES[measure]}{end}" for measure in MEASURES for end in ("", "_n")]
    head += ["gate_applicable_rate", "low_n_flag", "metric_notes", "Avg"]
    head += [f"{stand_in}{end}" for stand_in in STAND_INS for end in ("", "_n")]
    head += ["Avg_with_stand_ins", "stand_ins_in_Avg"]
    lines = []
    for row in rows:
        cells, stand_in_cells = (
            [part for name in names for part in (_format_number_or_na(row[name]["value"]), row[name]["n"])]
            for names in (MEASURES, STAND_INS)
        )
        judged = row["support"]["judged"]
        mixed = row["average_with_stand_ins"] or {"value": None, "stand_ins": []}
        lines.append(
            [
                row["model"], row["model"], *published_groups_of_model(row["model"], row["condition"]), row["input"],
                row["condition"].replace("_", "-"), row["outputs"], *cells,
                _format_number_or_na(None if judged is None else judged["share"]), str(row["sparse"]).lower(),
                f"revisit {protocol}", _format_number_or_na(row["average"]), *stand_in_cells,
                _format_number_or_na(mixed["value"]), " ".join(mixed["stand_ins"]),
            ]
        )  # fmt: skip
    return csv_text(head, lines, "\n")


def _format_number_or_na(value: float | None) -> str:
    return "NA" if value is None else f"{value:.6f}"
