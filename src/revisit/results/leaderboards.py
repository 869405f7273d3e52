"""Boards: models in rows, measures in columns, one protocol. What is under two protocols is on two boards.

Runs become boards, one row per model and run; runs whose numbers compare share a board. A cell says how many clips it
rests on. There is no overall rank: columns have units of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from revisit.core import Case, Record, UsageError, digest
from revisit.core.cases import CEILING, FLOOR
from revisit.results import display
from revisit.results.ceilings import held_to_truth, ranking_score_id
from revisit.results.cells import Cell
from revisit.results.file_types import CaseEntry, Details, PlanFile, RunFile
from revisit.results.funnel import count_testable_and_all
from revisit.results.pairing import ClipKey, clip_key_without_seed
from revisit.results.record_files import case_from_json
from revisit.results.results import Results
from revisit.results.score_names import STAND_IN, find_metric_of_score, strip_held_suffix
from revisit.results.stand_ins import separate_stand_ins, stand_in_makers_by_metric
from revisit.results.verdict import metrics_deciding_questions

ROLES = ("", FLOOR, CEILING)  # in the order of a board


@dataclass(frozen=True)
class BoardColumn:
    """A measure: its key, what the head says, and which way is better."""

    key: str
    title: str
    higher_is_better: bool | None = True  # None: neither
    decimals: int | None = None  # as a benchmark prints it; None: by the rule for all numbers
    protocol: str = ""  # hash of everything that must be equal for two numbers in it to compare


@dataclass(frozen=True)
class BoardCell(Cell):
    """A cell with what was printed in its place, or why it is empty; without counts where `of` is 0."""

    text: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why it is empty, in one line."""
        return "; ".join(self.reasons)

    def to_text(self, decimals: int | None = None, interval: bool = False) -> str:
        """`14.41`, with ` (3/4)` where it is known; a dash where there is no value."""
        text = display.number_text(self.mean)
        if self.mean is not None:
            text = self.text or (text if decimals is None else f"{self.mean:.{decimals}f}")
        if interval and self.interval is not None:
            text += f" [{display.interval_ends_text(self.interval)}]"
        return f"{text} ({display.scored_of_asked_text(self)})" if self.of else text


def cell_without_counts(mean: float | None, text: str = "", reason: str = "") -> BoardCell:
    """A cell without counts: from a paper, or made of other cells."""
    return BoardCell(0, 0, mean, text=text, reasons=(reason,) if reason else ())


@dataclass(frozen=True)
class BoardRow:
    """A model and where its numbers come from."""

    model: str
    source: str
    cells: Mapping[str, BoardCell] = field(default_factory=dict)
    group: str = ""  # of models that compete with each other and with no others
    role: str = ""  # FLOOR or CEILING: outside the contest

    @property
    def label(self) -> str:
        """The name on a board; what is no model says so."""
        return f"{self.model} ({self.role})" if self.role else self.model

    def cell(self, column: BoardColumn) -> BoardCell:
        """The cell under a column; an empty one where there is none."""
        return self.cells.get(column.key, cell_without_counts(None))


@dataclass(frozen=True)
class Board:
    """Rows that may be compared with each other, column by column, and with no other board's."""

    title: str
    protocol: str
    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    note: str = ""
    as_printed: bool = False  # numbers of a paper, marked by their order as papers do
    truths: Mapping[ClipKey, str] = field(default_factory=dict)  # clip -> digest of what it is compared with

    def as_json(self) -> dict[str, object]:
        """As `leaderboard --json` prints it."""
        rows = [
            {**vars(row), "cells": {key: _board_cell_as_json(cell) for key, cell in row.cells.items()}}
            for row in self.rows
        ]
        content = {**vars(self), "columns": [vars(column) for column in self.columns], "rows": rows}
        del content["truths"]
        return content


def _board_cell_as_json(cell: BoardCell) -> dict[str, object]:
    """Without the clips, which only tell rows apart."""
    content = {name: value for name, value in vars(cell).items() if name not in ("clips", "reasons")}
    return {**content, "reason": cell.reason}


def sort_rows_best_first(board: Board, by: str = "") -> list[BoardRow]:
    """Rows from the best to the worst in one column, those without a value last; by name where none is given.

    Behind them stand the floors, and the truth as the ceiling.
    """
    rows = sorted(board.rows, key=lambda row: (ROLES.index(row.role), row.model.lower(), row.model, row.source))
    named = (column for column in board.columns if by.lower() in (column.key.lower(), column.title.lower()))
    column = next(named, None)
    if column is None:
        return rows

    def sort_key(row: BoardRow) -> tuple[int, bool, float]:
        mean = row.cell(column).mean
        ordered = 0.0 if mean is None else -mean if column.higher_is_better is not False else mean
        return ROLES.index(row.role), mean is None, ordered

    return sorted(rows, key=sort_key)


def mark_best_and_second_rows(board: Board, rows: Sequence[BoardRow], column: BoardColumn) -> dict[int, str]:
    """Positions of the rows that are best and second in a column, within each group, by the rule for all tables.

    A column that rewards an unchanged look has no marks where somebody looks less changed than the truth itself.
    """
    marks_by_row: dict[int, str] = {}
    values = [(row.role, mean) for row in rows if (mean := row.cell(column).mean) is not None]
    truth = max((mean for role, mean in values if role == CEILING), default=None)
    if display.some_look_beats_truth(column.key, (mean for role, mean in values if role != CEILING), truth):
        return marks_by_row
    for group in dict.fromkeys(row.group for row in rows if not row.role):
        cells = {position: row.cell(column) for position, row in enumerate(rows) if row.group == group and not row.role}
        marks_by_row.update(display.mark_best_and_second(cells, column.higher_is_better, board.as_printed))
    return marks_by_row


# Facts that name who made the evidence of a score, where a protocol leaves that to the files it is given.
MAKERS = ("judge", "detector", "net", "poses_from", "described_by", "depth_by", "flow", "rated_by")
# A model whose camera never leaves keeps everything: how many clips posed the test stands before all scores.
POSED = BoardColumn("posed", "test posed", None)
LOOK_AWAY = BoardColumn("look_away", "looks away and comes back", None)


@dataclass(frozen=True)
class RunFacts:
    """What a board needs of a run: its name, the content of its JSON files, and its results."""

    name: str
    facts: RunFile
    plan: PlanFile
    results: Results
    summary: Details = field(default_factory=dict)


def board_columns_of_run(run: RunFacts, named: Sequence[BoardColumn]) -> tuple[BoardColumn, ...]:
    """The columns of a run's board: those a suite names, in its order; else every metric the run asked.

    Behind them stand-ins have columns of their own; `run` has its results with these set apart.
    """
    hashes: Mapping[str, str] = run.facts["protocol"]["metrics"]
    columns = list(named)
    for metric in () if named else hashes:  # each, and behind it what is held to the truth, if these are other numbers
        columns += map(board_column_of_score, dict.fromkeys([metric, ranking_score_id(run.results, metric)]))
    makers = _evidence_makers_by_metric(run.results)
    others = stand_in_makers_by_metric(run.results)
    for column in tuple(columns):
        measured = strip_held_suffix(column.key)
        if who := others.get(measured):
            title = f"{column.title} by {who} (stand-in)"
            key = column.key.replace(measured, f"{measured}{STAND_IN}", 1)
            columns.append(replace(column, key=key, title=title))
    tagged = []
    for column in columns:
        tag = hashes.get(_metric_id_of_column(column))
        names = makers.get(strip_held_suffix(column.key), ())
        tagged.append(replace(column, protocol=" ".join([tag, *names])) if tag is not None else column)
    return tuple(tagged)


def headline_score_ids(results: Results, suite: str) -> list[str]:
    """The names of the scores that answer the questions of a suite, held to the truth where that is another number."""
    return [ranking_score_id(results, metric) for metric in metrics_deciding_questions(held_to_truth(results), suite)]


def _metric_id_of_column(column: BoardColumn) -> str:
    """The metric of a column, also of a stand-in's and of one held to the truth."""
    return strip_held_suffix(column.key).removesuffix(STAND_IN)


def board_of_run(run: RunFacts, named_columns: Sequence[BoardColumn] = (), subset: str = "") -> Board:
    """Means over the clips of each model in a run, or of one part of the dataset; stand-ins in columns of their own."""
    run = replace(run, results=separate_stand_ins(run.results))
    part = run.results.only(
        lambda entry: not subset or subset.lower() in (entry.subset.lower(), entry.condition.lower())
    )
    if not part.entries:
        parts = sorted({name for case in run.results.cases for name in (case.subset, case.condition)} - {""})
        choice = f"its parts are {', '.join(parts)}" if parts else "it has no parts"
        raise UsageError(f"{run.name} has no clips in {subset!r}; {choice}")
    columns = tuple(
        column
        for column in board_columns_of_run(run, named_columns)
        if any(part.asks(_metric_id_of_column(column), entry) for entry in part.entries)
    )
    rows = []
    for model, mine in part.groups("model").items():
        cells = {column.key: _board_cell_of_score(mine, column.key) for column in columns}
        before = {} if subset else _look_away_or_testable_cell(run, model)
        rows.append(BoardRow(model, run.name, before | cells, role=FLOOR if model in part.floors else ""))
    if part.truths:
        cells = {column.key: _board_cell_of_score(part.truth, column.key) for column in columns}
        rows.append(BoardRow(run.results.truth_name, run.name, cells, role=CEILING))
    truths = truth_digests(run.plan, part)
    by_sample = truth_digests(run.plan, part, lambda case: (case.sample,))
    dataset = f", dataset {digest(sorted((*key, one) for key, one in by_sample.items()), 8)}" if truths else ""
    limit = f"; --limit took {len(run.plan['cases'])} of {run.plan['total_cases']} clips"
    partial = limit if run.plan.get("partial") else ""
    notes = [_mixed_makers_sentence(columns, run.results), _unanswered_questions_sentence(run.name, part)]
    return Board(
        title=f"{run.facts['suite']}{', ' + subset if subset else ''}",
        protocol=f"{protocol_tag(run.facts)}{dataset}{partial}",
        columns=(*(c for c in (LOOK_AWAY, POSED) if any(c.key in row.cells for row in rows)), *columns),
        rows=tuple(rows),
        note="; ".join(filter(None, notes)),
        truths=truths,
    )


def protocol_tag(facts: RunFile) -> str:
    """The protocol of a run and who observed, by which a board says whose numbers it holds."""
    return f"{facts['protocol']['name']}:{facts['protocol']['hash']}, observers {display.observed_by_or_set(facts)}"


def truth_digests(
    plan: PlanFile, part: Results, clip_key_of: Callable[[Case], ClipKey] = clip_key_without_seed
) -> dict[ClipKey, str]:
    """Clip -> digests of the true videos that it is compared with, by which a board knows its dataset."""
    ids = {case.id for case in part.cases}
    entries = [case for case in plan["cases"] if case["id"] in ids]
    digests = reference_digests(
        (case for case in entries if case.get("reference_digest") != case.get("digest")), clip_key_of
    )
    return {name: " ".join(sorted(several)) for name, several in digests.items()}


def reference_digests(
    entries: Iterable[CaseEntry], clip_key_of: Callable[[Case], ClipKey] = clip_key_without_seed
) -> dict[ClipKey, set[str]]:
    """Clip -> digests of what its seeds are compared with; a scene may have several clips, each with one of its own."""
    digests: dict[ClipKey, set[str]] = {}
    for entry in entries:
        if reference := entry.get("reference_digest"):
            digests.setdefault(clip_key_of(case_from_json(entry)), set()).add(reference)
    return digests


def join_comparable_boards(boards: Sequence[Board]) -> list[Board]:
    """Boards with the same title, protocol in every column that both have, and ground truth, put together."""
    joined: list[Board] = []
    for board in boards:
        for position, other in enumerate(joined):
            if board.title == other.title and _boards_are_comparable(board, other):
                board, other = _add_held_columns_of_other(board, other), _add_held_columns_of_other(other, board)
                protocols = dict.fromkeys([*other.protocol.split(" | "), board.protocol])
                joined[position] = replace(
                    other,
                    columns=_join_columns(other.columns, board.columns),
                    rows=(*other.rows, *board.rows),
                    protocol=" | ".join(protocols),
                    note="; ".join(dict.fromkeys(note for note in (other.note, board.note) if note)),
                    truths={**other.truths, **board.truths},
                )
                break
        else:
            joined.append(board)
    return joined


def _add_held_columns_of_other(board: Board, other: Board) -> Board:
    """The board with the held columns of the other: in a run that lacks one, all scores counted as measured."""
    own = {column.key for column in board.columns}
    missing = [c for c in other.columns if c.key not in own and strip_held_suffix(c.key) != c.key]
    missing = [column for column in missing if strip_held_suffix(column.key) in own]
    if not missing:
        return board
    rows = []
    for row in board.rows:
        measured = {c.key: row.cells[id] for c in missing if (id := strip_held_suffix(c.key)) in row.cells}
        rows.append(replace(row, cells={**row.cells, **measured}))
    return replace(board, columns=(*board.columns, *missing), rows=tuple(rows))


def _boards_are_comparable(one: Board, other: Board) -> bool:
    """Whether no column of the two would hold numbers of two protocols, or of two datasets.

    Datasets are told apart by their content: clips of one name must be compared with the same ground truth.
    """
    if one.truths and other.truths:
        both = one.truths.keys() & other.truths.keys()
        if not both or any(one.truths[clip] != other.truths[clip] for clip in both):
            return False
    tags = {column.key: column.protocol for column in one.columns}
    both_tags = [(tags.get(column.key), column.protocol) for column in other.columns]
    return all(
        not mine or not theirs or _tag_without_protocol_name(mine) == _tag_without_protocol_name(theirs)
        for mine, theirs in both_tags
    )


def _tag_without_protocol_name(tag: str) -> str:
    """A comparability tag without the name of its protocol: two protocols may compute the same."""
    return tag.partition(":")[2] or tag


def _join_columns(first: Sequence[BoardColumn], second: Sequence[BoardColumn]) -> tuple[BoardColumn, ...]:
    """Columns of both; one that only the second run asked takes its protocol."""
    later = {column.key: column for column in second}
    columns = [column if column.protocol else later.get(column.key, column) for column in first]
    keys = {column.key for column in first}
    return (*columns, *(column for column in second if column.key not in keys))


def _board_cell_of_score(part: Results, id: str) -> BoardCell:
    cell = part.cell(id)
    kinds = [*sorted(cell.unscored), *(["failed"] if cell.failed else [])] if cell.mean is None else []
    return as_board_cell(cell, tuple(map(display.reason_title, kinds)) or (("not asked",) if cell.mean is None else ()))


def as_board_cell(cell: Cell, reasons: tuple[str, ...] = ()) -> BoardCell:
    """A cell of a board, with the clips by which rows are compared."""
    return BoardCell(**vars(cell), reasons=reasons)


def add_clips_to_cells(board: Board, results: Results, metrics: Mapping[str, str]) -> Board:
    """The board of a suite, whose cells know their clips where they are means of a metric's scores.

    `metrics` are the metrics of columns, by the columns' keys.
    """
    rows = []
    for row in board.rows:
        mine = results.only(lambda entry, model=row.model: entry.model == model)  # type: ignore[misc]
        cells = dict(row.cells)
        for key, cell in row.cells.items():
            metric = metrics.get(key, "")
            own = mine.cell(metric) if metric in results.metrics and cell.mean is not None else None
            if own is not None and own.mean is not None and math.isclose(own.mean, cell.mean or 0.0, abs_tol=1e-9):
                cells[key] = replace(cell, clips=own.clips)
        rows.append(row if row.role else replace(row, cells=cells))
    return replace(board, rows=tuple(rows))


def _look_away_or_testable_cell(run: RunFacts, model: str) -> dict[str, BoardCell]:
    """How many clips of a model look away and come back, of those that should; else how many posed the test."""
    counts = ((run.summary.get("look_away") or {}).get("models") or {}).get(model)
    if counts and counts["asked"]:
        share = counts["returned"] / counts["asked"]
        return {LOOK_AWAY.key: cell_without_counts(share, f"{counts['returned']}/{counts['asked']}")}
    count = count_testable_and_all(run.summary.get("models", {}).get(model, {}).get("funnel", ()))
    return {POSED.key: cell_without_counts(count[0] / count[1], f"{count[0]}/{count[1]}")} if count and count[1] else {}


def board_column_of_score(score_name: str) -> BoardColumn:
    """The column of a score; that of a plugin which is not installed here has its id for a title."""
    metric = find_metric_of_score(score_name)
    return BoardColumn(score_name, display.score_title(score_name), None if metric is None else metric.higher_is_better)


def evidence_makers(scores: Iterable[Record]) -> list[str]:
    """Who made the evidence behind scores, where a protocol leaves that to files."""
    return sorted({str(record.facts[name]) for record in scores for name in MAKERS if record.facts.get(name)})


def _evidence_makers_by_metric(results: Results) -> dict[str, list[str]]:
    """Metric -> who made the evidence of its scores."""
    return {id: evidence_makers(results.scores(id)) for id in results.metrics}


def _mixed_makers_sentence(columns: Sequence[BoardColumn], results: Results) -> str:
    """A sentence on columns whose clips were not all observed by the same."""
    makers = _evidence_makers_by_metric(results)
    mixed = [f"{c.title}: {', '.join(makers[c.key])}" for c in columns if len(makers.get(c.key, ())) > 1]
    return f"not all clips were observed alike ({'; '.join(mixed)})" if mixed else ""


def _unanswered_questions_sentence(run: str, part: Results) -> str:
    """A sentence on how many of a judge's questions were answered, model by model, where some were not."""
    shares = []
    for model, mine in part.groups("model").items():
        counts = [record.facts for record in mine.records if record.facts.get("asked") and "answered" in record.facts]
        n, of = (sum(int(facts[name]) for facts in counts) for name in ("answered", "asked"))
        shares += [f"{model} {n} of {of}"] if n < of else []
    return f"questions answered in {run}: {', '.join(shares)}" if shares else ""
