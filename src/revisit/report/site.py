"""A leaderboard of bundles as static pages: a row per model and protocol, with rank intervals and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import METRICS
from revisit.engine.bundles import Bundle, Checked, merged, together
from revisit.report.boards import as_html, escape
from revisit.results.boards import Board, BoardCell, Column, Row, board_cell, column_of, printed
from revisit.results.results import Results
from revisit.results.verdict import headline

NOTE = (
    "Scores are held to the truth where there is one: what rewards an unchanged look counts by its nearness to the "
    "truth's own score, and a reset is no return. "
    "Places are those that a model may have on the clips that all have a score of: behind those that are better beyond "
    "doubt, before those that are worse."
)


def boards_of(bundles: Sequence[Bundle]) -> list[Board]:
    """A board for each suite, dataset and protocol; numbers of two of them never share a column."""
    made = []
    for group in merged(bundles):
        results, rows = together(group)
        about = group[0].about
        ids = headline(results, about["suite"])
        columns: list[Column] = []
        cells: dict[str, dict[str, BoardCell]] = {model: {} for model in results.models}
        for id in ids:
            columns += [column_of(id), Column(f"{id}.places", "places", None)]
            places = _places(results, id)
            for model, part in results.groups("model").items():
                cells[model][id] = board_cell(part.cell(id))
                cells[model][f"{id}.places"] = printed(*places[model]) if model in places else printed(None)
        made.append(
            Board(
                f"{about['suite']}, dataset {about['dataset']}",
                f"{about['protocol']}:{about['hash']}, observers {about['set']}",
                tuple(columns),
                tuple(Row(model, rows[model], cells[model]) for model in results.models),
                NOTE,
            )
        )
    return made


def _places(results: Results, metric: str) -> dict[str, tuple[float, str]]:
    if METRICS[metric].higher_is_better is None:
        return {}
    return {
        rank.model: (float(rank.rank), str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}")
        for rank in results.ranks(metric)
    }


def write_site(
    bundles: Sequence[Bundle],
    folder: Path,
    published: Sequence[Board] = (),
    checks: Mapping[str, Checked] | None = None,
) -> Path:
    """Write index.html; published tables stand on boards of their own, as their own protocols."""
    folder.mkdir(parents=True, exist_ok=True)
    page = as_html([*boards_of(bundles), *published])
    rows = "".join(_provenance(bundle, (checks or {}).get(bundle.name)) for bundle in bundles)
    heads = "".join(f"<th>{name}</th>" for name in ("bundle", "models", "clips", "made with", "made on", "checked"))
    table = f"<div><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    path = folder / "index.html"
    path.write_text(page.replace("<script>", f"<h2>Where the rows come from</h2>{table}<script>", 1), encoding="utf-8")
    return path


def _provenance(bundle: Bundle, checked: Checked | None) -> str:
    about, started = bundle.about, [str(call["started"]) for call in bundle.run.get("invocations", ())]
    machine: Mapping[str, Any] = bundle.run["environment"]
    made = f"Revisit {about['revisit']}, Python {machine.get('python', '')}, {machine.get('platform', '')}"
    told = "not checked"
    if checked is not None:
        told = f"{checked.scores} answers made again from evidence"
        told += f", {sum(checked.unchecked.values())} could not be" if checked.unchecked else ""
        told += f", {len(checked.problems)} differ" if checked.problems else ""
    cells = [bundle.name, ", ".join(about["models"]), str(about["clips"]), made, min(started, default="")[:10], told]
    return "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>"
