"""What a run is exported to: the CSV files that the public MemoBench scripts write, for existing tools, and the radar.

Columns, their order, units and decimals are the public ones (docs/leaderboard.md); what was not measured is an empty
cell, never 0. Instead of a time, the name of an eval file holds the protocol, so that equal work gives equal files.
Numbers are those of the run's protocol: only `upstream` is meant to be set beside the public evaluator's.

The radar has every model's scores on spokes, in two panels as in the Fig. S17 of the paper. A spoke runs from 0 to 100
at the rim. A model without a score on a spoke has a gap there: its line ends before it and goes on after it.
Only what has a scale to 100 is drawn; dB and distances have none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from revisit.core import Case, Record
from revisit.core.text import read_package_yaml
from revisit.evidence.judged import case_questions
from revisit.media.text_files import csv_text
from revisit.results import Results
from revisit.suites.memobench.metrics import FIDELITY
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import REAL, parse_clip_name

Place = Sequence[str]  # of a number in the facts of a record
SCORE: Place = ()  # the score itself


class PublicColumn(NamedTuple):
    """A column: our metric, its short title, and how its number is taken from a record."""

    metric: str
    title: str = ""
    place: Place = SCORE
    factor: float = 1  # what the public files multiply it by
    decimals: int | None = None  # None: on a board by the rule for all numbers
    higher_is_better: bool = True


PUBLIC_FILES = read_package_yaml(__package__, "public_files.yaml")
LEADERBOARD = {name: PublicColumn(**row) for name, row in PUBLIC_FILES["leaderboard"].items()}
EVAL_COLUMNS = {name: row and PublicColumn(**row) for name, row in PUBLIC_FILES["eval"].items()}
ORS_COLUMNS = {name: row and PublicColumn(**row) for name, row in PUBLIC_FILES["ors"].items()}

FOLDER = "memobench_csv"
IDENTITY = ("id", "scene", "data_type")  # columns of every file that say which clip a row is of

SPOKES = [column for column in LEADERBOARD.values() if column.metric not in FIDELITY]
PANELS = {
    "Automated metrics": [column for column in SPOKES if not column.title.startswith("VQA-")],
    "Questions": [column for column in SPOKES if column.title.startswith("VQA-")],
}
RADIUS, WIDTH, MIDDLE = 150, 460, (230, 215)
COLOURS = ("#1b6ca8", "#d1495b", "#3c8d53", "#8a5fbf", "#c77d0a", "#2a9d8f", "#6b4f3a", "#b03a8c", "#4a6fe3", "#777777")

Scores = Mapping[str, Mapping[str, float | None]]  # model -> metric -> mean


def export(run: Path, facts: Mapping[str, Any], results: Results) -> dict[str, str]:
    """Texts of the CSV files and of the figure by name."""
    protocol = path_safe_name(facts["protocol"].replace(":", "-"))
    files: dict[str, str] = {}
    board = []
    models = {model: mine for model, mine in results.groups().items() if mine.cases}
    for model, folder in unique_folder_name_by_model(models).items():
        mine = models[model]
        subsets = {case.subset.lower() for case in mine.cases}
        mode = "both" if len(subsets) > 1 else "".join(subsets)
        files[f"{FOLDER}/outputs/{folder}/eval_{mode}_{protocol}.csv"] = eval_csv_text(mine)
        if mine.scores("memo_ors"):
            files[f"{FOLDER}/ors_results/{folder}/ors_scores.csv"] = ors_csv_text(mine)
        for name, text in vqa_csv_texts_by_name(mine).items():
            files[f"{FOLDER}/vqa_results/{folder}/{name}"] = text
        board.append([model, *(_column_mean_text(mine, column) for column in LEADERBOARD.values())])
    means = {model: {id: mine.cell(id).mean for id in mine.metrics} for model, mine in models.items()}
    if figure := radar_svg(means):
        files["radar.svg"] = figure
    if board:
        files[f"{FOLDER}/leaderboard.csv"] = csv_text(("Model", *LEADERBOARD), board, "\n")
    return files


def eval_csv_text(results: Results) -> str:
    """One row per clip with the 48 public columns; a column `error` where a clip failed."""
    errors = {
        case.id: next(iter(records.values())).sentence
        for case in results.cases
        if (records := results.of(case)) and all(record.failed for record in records.values())
    }
    head = [*EVAL_COLUMNS, *(["error"] if errors else [])]
    rows = []
    for case in results.cases:
        row = _clip_cells(case) | _metric_cells_by_column(EVAL_COLUMNS, results.of(case))
        if error := errors.get(case.id):
            row = {**{name: row[name] for name in IDENTITY}, "error": error}
        rows.append([row.get(name, "") for name in head])
    return csv_text(head, rows, "\n")


def ors_csv_text(results: Results) -> str:
    """One row per clip whose object was looked for."""
    rows = []
    for record in results.scores("memo_ors"):
        row = _clip_cells(record.case) | _metric_cells_by_column(ORS_COLUMNS, {"memo_ors": record})
        row |= {"clip_id": row["id"], "n_gen": row["num_frames"]}
        rows.append([row[name] for name in ORS_COLUMNS])
    return csv_text(tuple(ORS_COLUMNS), rows)


def vqa_csv_texts_by_name(results: Results) -> dict[str, str]:
    """A file per clip that a judge answered about, and overall.csv."""
    files: dict[str, str] = {}
    overall = []
    for case in results.cases:
        records = {name: results.answer(case, f"memo_vqa_{short}") for short, name in DIMENSIONS.items()}
        values = {name: record_number_at(record, ()) for name, record in records.items()}
        scores = {name: round(value / 100, 4) for name, value in values.items() if value is not None}
        clip = parse_clip_name(case.sample)
        if not scores or clip is None:
            continue
        scene, _, number = clip.question_key.rpartition("-")
        judged, head = _judged_answer_entries(case, records), (scene or "real", number)
        row = (*head, case.sample, json.dumps(judged), json.dumps(scores))
        files[f"{clip.question_key}.csv"] = csv_text(("scene", "video_id", "folder", "Evaluation", "score"), [row])
        overall.append([*head, *(_format_public_number(scores.get(name), 1, 4) for name in DIMENSIONS.values())])
    if overall:
        files["overall.csv"] = csv_text(("scene", "video_id", *DIMENSIONS.values()), overall)
    return files


def unique_folder_name_by_model(models: Iterable[str]) -> dict[str, str]:
    """A folder name for each model, odd characters replaced, none used twice."""
    folders: dict[str, str] = {}
    for model in sorted(models):
        name = path_safe_name(model)
        while name in folders.values():
            name += "_"
        folders[model] = name
    return folders


def path_safe_name(name: str) -> str:
    """The name with everything replaced that a path cannot or should not hold."""
    safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in name)
    return "_" + safe.lstrip(".") if safe.startswith(".") or not safe else safe


def record_number_at(record: Record | None, place: Place) -> float | None:
    """The score of a record, or one of its facts; None where it was not scored or does not say."""
    if record is None or not record.scored:
        return None
    value: Any = record.facts if place else record.value
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _clip_cells(case: Case) -> dict[str, str]:
    """What a row says of its clip: which it is, its length, phases and lens."""
    scene = "real" if case.subset == REAL else case.sample.rpartition("_")[0]
    hidden, returned = case.phases or ("", "")
    frames, true_frames = (case.annotations.get(name, "") for name in ("frames", "gt_frames"))
    cells: dict[str, object] = dict(zip(IDENTITY, (case.sample, scene, case.subset.lower()), strict=True))
    cells |= {"num_frames": frames, "h_start": hidden, "r_start": returned, "gt_frames": true_frames}
    cells |= {name: round(float(case.annotations[name]), 2) for name in ("fx", "fy") if name in case.annotations}
    return {name: str(value) for name, value in cells.items()}


def _metric_cells_by_column(
    columns: Mapping[str, PublicColumn | None], records: Mapping[str, Record]
) -> dict[str, str]:
    """Column -> its number, of the columns that have a metric."""
    cells = {}
    for name, column in columns.items():
        if column is not None:
            value = record_number_at(records.get(column.metric), column.place)
            cells[name] = _format_public_number(value, column.factor, column.decimals or 0)
    return cells


def _format_public_number(value: float | None, factor: float, decimals: int) -> str:
    """A number as the public files write it: rounded, without padding; nothing for None."""
    if value is None:
        return ""
    rounded = round(factor * value, decimals)
    return str(int(rounded)) if decimals == 0 else repr(float(rounded))


def _column_mean_text(results: Results, column: PublicColumn) -> str:
    numbers = (record_number_at(record, column.place) for record in results.records_for(column.metric))
    values = [number for number in numbers if number is not None]
    return f"{column.factor * sum(values) / len(values):.4f}" if values else ""


def _judged_answer_entries(case: Case, records: Mapping[str, Record | None]) -> list[dict[str, object]]:
    """The answers as a judge's list, from what failed and what was left open."""
    entries = []
    for question in case_questions(case.annotations):
        record = records.get(question.dimension)
        facts = record.facts if record else {}
        if "failed" not in facts or question.id in facts["unanswered"]:
            continue
        passed = question.id not in facts["failed"]
        judged = {"Answer": "Yes" if passed == question.positive else "No", "Verdict": "Pass" if passed else "Fail"}
        entries.append({**question.as_public_bank_row(), **judged})
    return entries


def radar_svg(scores: Scores) -> str:
    """The picture; an empty text where no panel has three spokes with a score."""
    panels = {
        title: [c for c in columns if any(mine.get(c.metric) is not None for mine in scores.values())]
        for title, columns in PANELS.items()
    }
    panels = {title: columns for title, columns in panels.items() if len(columns) > 2}
    if not panels:
        return ""
    models = sorted(scores)
    parts = [_radar_panel_svg(*panel, scores, k * WIDTH) for k, panel in enumerate(panels.items())]
    height = 2 * RADIUS + 130
    legend = "".join(
        f'<g transform="translate({20 + 150 * (k % 3)},{height + 18 * (k // 3)})">'
        f'<rect width="12" height="12" fill="{COLOURS[k % len(COLOURS)]}"/><text x="18" '
        f'y="11">{escape(model)}</text></g>'
        for k, model in enumerate(models)
    )
    width, depth = len(panels) * WIDTH, height + 18 * (1 + len(models) // 3) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {depth}" width="{width}" height="{depth}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}{legend}</svg>\n'
    )


def point_of_score_on_spoke(score: float, spoke_number: int, spoke_count: int) -> tuple[float, float]:
    """Where a score lies: so far from the middle, the first spoke upward, the others clockwise."""
    angle = 2 * math.pi * spoke_number / spoke_count
    length = RADIUS * min(max(score, 0.0), 100.0) / 100
    return round(MIDDLE[0] + length * math.sin(angle), 2), round(MIDDLE[1] - length * math.cos(angle), 2)


def _radar_panel_svg(title: str, columns: Sequence[PublicColumn], scores: Scores, x_offset: int) -> str:
    count = len(columns)
    parts = [f'<g transform="translate({x_offset},0)"><text x="{MIDDLE[0]}" y="24" text-anchor="middle">{title}</text>']
    for ring in (25, 50, 75, 100):
        points = " ".join("{},{}".format(*point_of_score_on_spoke(ring, k, count)) for k in range(count))
        parts.append(f'<polygon points="{points}" fill="none" stroke="#ccc"/>')
    for k, name in enumerate(column.title.removeprefix("VQA-") for column in columns):
        x, y = point_of_score_on_spoke(100, k, count)
        parts.append(f'<line x1="{MIDDLE[0]}" y1="{MIDDLE[1]}" x2="{x}" y2="{y}" stroke="#ddd"/>')
        at = MIDDLE[0] + 1.13 * (x - MIDDLE[0]), MIDDLE[1] + 1.13 * (y - MIDDLE[1])
        parts.append(f'<text x="{at[0]:.1f}" y="{at[1] + 4:.1f}" text-anchor="middle">{name}</text>')
    for number, (model, mine) in enumerate(sorted(scores.items())):
        values = [None if (mean := mine.get(c.metric)) is None else c.factor * mean for c in columns]
        if path := _path_between_neighbouring_scores(values):
            parts.append(
                f'<path data-model="{escape(model)}" d="{path}" fill="none" stroke="{COLOURS[number % len(COLOURS)]}" '
                f'stroke-width="2"><title>{escape(model)}</title></path>'
            )
    return "".join([*parts, "</g>"])


def _path_between_neighbouring_scores(values: Sequence[float | None]) -> str:
    """Lines between the scores of neighbouring spokes, none where one of them has no score."""
    count = len(values)
    spots = [None if value is None else point_of_score_on_spoke(value, k, count) for k, value in enumerate(values)]
    parts: list[str] = []
    for k, current in enumerate(spots):
        after = spots[(k + 1) % count]
        if current is not None and after is not None:
            parts.append("M{},{} L{},{}".format(*current, *after))
        elif current is not None and spots[k - 1] is None:
            parts.append("M{},{} h0.01".format(*current))  # a score without neighbours is a dot
    return " ".join(parts)
