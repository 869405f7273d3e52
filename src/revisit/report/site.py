"""A leaderboard of bundles as static pages: a row per model and protocol, with rank intervals and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from revisit.core import METRICS
from revisit.core.cases import FLOOR
from revisit.core.text import read_package_yaml
from revisit.report.leaderboards import as_html
from revisit.results.ceilings import OUTCOME
from revisit.results.display import observed_by_or_set
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    as_board_cell,
    board_column_of_score,
    cell_without_counts,
    headline_score_ids,
)
from revisit.results.results import Results
from revisit.results.score_names import strip_held_suffix
from revisit.runs.bundle_check import BundleCheck
from revisit.runs.bundles import Bundle, dataset_name, group_comparable_bundles, join_bundles

TEXTS = read_package_yaml("revisit.report", "site.yaml")
PROVENANCE = ("bundle", "models", "clips", "made with", "made on", "checked")
Checks = Mapping[str, BundleCheck]  # by the name of the bundle


def boards_of_bundles(bundles: Sequence[Bundle], checks: Checks | None = None) -> list[Board]:
    """A board for each suite, dataset and protocol; numbers of two of them never share a column.

    Answers that were not checked have columns of their own, without places.
    """
    boards = []
    for group in group_comparable_bundles(bundles):
        results, rows = join_bundles(group)
        about = group[0].about
        checked = _checked_results(results, rows, checks)
        ids = dict.fromkeys(id for part in (checked, results) for id in headline_score_ids(part, about["suite"]))
        columns: list[BoardColumn] = []
        cells: dict[str, dict[str, BoardCell]] = {model: {} for model in results.models}
        for metric in ids:
            sure = {model for model in results.models if is_question_checked(checks, rows[model], metric)}
            scored = board_column_of_score(metric)
            if sure:
                columns += [scored, BoardColumn(f"{metric}.places", "places", None)]
            if len(sure) < len(results.models):
                columns.append(BoardColumn(f"{metric}.unchecked", f"{scored.title}, not checked", None))
            places = _rank_and_range_by_model(checked.where(model=sure).ranked, metric)
            for model, part in results.groups("model").items():
                cell = as_board_cell(part.cell(metric))
                if model not in sure:
                    cells[model][f"{metric}.unchecked"] = cell
                    continue
                cells[model][metric] = cell
                cells[model][f"{metric}.places"] = cell_without_counts(*places.get(model, (None,)))
        observers = dict.fromkeys(observed_by_or_set({**bundle.about, **bundle.run}) for bundle in group)
        any_doubt = any(column.key.endswith(".unchecked") for column in columns)
        boards.append(
            Board(
                f"{about['suite']}, dataset {dataset_name(group)}",
                f"{about['protocol']}:{about['hash']}, observers {' | '.join(observers)}",
                tuple(columns),
                tuple(
                    BoardRow(model, rows[model], cells[model], role=FLOOR if model in results.floors else "")
                    for model in results.models
                ),
                f"{TEXTS['note']} {TEXTS['unchecked']}" if any_doubt else TEXTS["note"],
            )
        )
    return boards


def _checked_results(results: Results, rows: Mapping[str, str], checks: Checks | None) -> Results:
    """The clips of bundles of which everything or a part was checked, with the answers that were."""
    part = results.only(lambda entry: entry.model in rows and rows[entry.model] in (checks or {}))
    return part.mapped(lambda one: one if is_question_checked(checks, rows[one.case.model], one.question) else None)


def is_question_checked(checks: Checks | None, bundle: str, question: str) -> bool:
    """Whether the answers of a bundle to a question were made again.

    Scores are held to the outcome of the unseen event: where that was not checked, neither are they.
    """
    one = (checks or {}).get(bundle)
    return one is not None and not {strip_held_suffix(question), OUTCOME} & one.not_checked.keys()


def _rank_and_range_by_model(results: Results, metric: str) -> dict[str, tuple[float, str]]:
    if METRICS[strip_held_suffix(metric)].higher_is_better is None:
        return {}
    return {
        rank.model: (float(rank.rank), str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}")
        for rank in results.ranks(metric)
    }


def write_site(
    bundles: Sequence[Bundle],
    folder: Path,
    published: Sequence[Board] = (),
    checks: Checks | None = None,
) -> Path:
    """Write index.html; published tables stand on boards of their own, as their own protocols."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [_provenance_row(bundle, (checks or {}).get(bundle.name)) for bundle in bundles]
    path = folder / "index.html"
    page = as_html([*boards_of_bundles(bundles, checks), *published], provenance=(PROVENANCE, rows))
    path.write_text(page, encoding="utf-8")
    return path


def _provenance_row(bundle: Bundle, checked: BundleCheck | None) -> list[str]:
    about, started = bundle.about, [str(call["started"]) for call in bundle.run.get("invocations", ())]
    machine: Mapping[str, object] = bundle.run["environment"]
    software = f"Revisit {about['revisit']}, Python {machine.get('python', '')}, {machine.get('platform', '')}"
    check_text = "not checked"
    if checked is not None:
        check_text = f"{checked.scores} of {checked.planned} planned answers made again from evidence"
        check_text += f"; not checked: {', '.join(sorted(checked.not_checked))}" if checked.not_checked else ""
        check_text += f"; {len(checked.problems)} differ" if checked.problems else ""
        check_text += "".join(f"; {remark}" for remark in checked.remarks)
    made_on = min(started, default="")[:10]
    return [bundle.name, ", ".join(about["models"]), str(about["clips"]), software, made_on, check_text]
