"""Runs → boards: one row per model and run; runs whose numbers compare share a board, others get their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from revisit.core import METRICS, SUITES, UsageError, digest
from revisit.stats.boards import Board, Cell, Column, Row
from revisit.stats.intervals import mean_interval
from revisit.suites.tables import Record, by_case, kind_of, posed

# Facts that name who made the evidence of a score, where a protocol leaves that to the files it is given.
MAKERS = ("judge", "detector", "net", "poses_from", "described_by", "depth_by", "flow", "rated_by")
# A model whose camera never leaves keeps everything: how many clips posed the test stands before all scores.
PARTS = ("subset", "condition")  # fields of a case by which a board may be split
POSED = Column("posed", "test posed", None)


@dataclass(frozen=True)
class RunFacts:
    """What a board needs of a run: its name, the content of its JSON files, and its records."""

    name: str
    facts: Mapping[str, Any]
    plan: Mapping[str, Any]
    records: Sequence[Record]
    summary: Mapping[str, Any] = field(default_factory=dict)


def columns_of(run: RunFacts, known: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a run's board: those a suite names, in its order; else every metric the run asked."""
    hashes: Mapping[str, str] = run.facts["protocol"]["metrics"]
    wanted = known or [_column(id) for id in hashes]
    makers = _makers(run.records)
    return tuple(
        replace(column, protocol=" ".join([hashes[column.key], *makers.get(column.key, ())]))
        if column.key in hashes
        else column
        for column in wanted
    )


def board_of_run(run: RunFacts, known: Sequence[Column] = (), subset: str = "") -> Board:
    """Means over the clips of each model in a run, or of one part of the dataset."""
    cases = [case for case in run.plan["cases"] if _in(case, subset)]
    lacking = [entry for entry in run.plan["rejected"] if _in(entry, subset)]
    if not cases and not lacking:
        parts = sorted({entry.get(name, "") for entry in run.plan["cases"] for name in PARTS} - {""})
        raise UsageError(f"{run.name} has no clips in {subset!r}; its parts are {', '.join(parts) or 'none'}")
    answers = by_case(run.records)
    known_suite = run.facts["suite"] in SUITES  # that of a plugin may not be installed here

    def asks(id: str, entry: Mapping[str, Any]) -> bool:
        """Whether a metric applies to a clip; a clip of another test is not one that it failed to score."""
        return not known_suite or SUITES[run.facts["suite"]].asks(id, entry)

    columns = tuple(
        column for column in columns_of(run, known) if any(asks(column.key, entry) for entry in [*cases, *lacking])
    )
    rows = []
    for model in sorted({entry["model"] for entry in [*cases, *lacking]}):
        cells = {}
        for column in columns:
            mine, missing = (
                [entry for entry in entries if entry["model"] == model and asks(column.key, entry)]
                for entries in (cases, lacking)
            )
            cells[column.key] = _cell(column.key, mine, len(mine) + len(missing), answers)
        rows.append(Row(model, run.name, cells if subset else {**_posed(run, model), **cells}))
    protocol = run.facts["protocol"]
    truths = {
        case["sample"]: case["reference_digest"]
        for case in cases
        if case.get("reference_digest") and case["reference_digest"] != case.get("digest")
    }
    dataset = f", dataset {digest(sorted(truths.items()), 8)}" if truths else ""
    partial = f"; --limit took {len(run.plan['cases'])} of {run.plan['total_cases']} clips" if _partial(run) else ""
    return Board(
        title=f"{run.facts['suite']}{', ' + subset if subset else ''}",
        protocol=f"{protocol['name']}:{protocol['hash']}, observers {run.facts['set']}{dataset}{partial}",
        columns=(POSED, *columns) if any(POSED.key in row.cells for row in rows) else columns,
        rows=tuple(rows),
        note="; ".join(filter(None, [_mixed(columns, run.records), _left_open(run.name, cases, answers)])),
        truths=truths,
    )


def joined(boards: Sequence[Board]) -> list[Board]:
    """Boards with the same title, protocol in every column that both have, and ground truth, put together."""
    made: list[Board] = []
    for board in boards:
        for position, other in enumerate(made):
            if board.title == other.title and _compare(board, other):
                protocols = dict.fromkeys([*other.protocol.split(" | "), board.protocol])
                made[position] = replace(
                    other,
                    columns=_union(other.columns, board.columns),
                    rows=(*other.rows, *board.rows),
                    protocol=" | ".join(protocols),
                    note="; ".join(dict.fromkeys(note for note in (other.note, board.note) if note)),
                    truths={**other.truths, **board.truths},
                )
                break
        else:
            made.append(board)
    return made


def _compare(one: Board, other: Board) -> bool:
    """Whether no column of the two would hold numbers of two protocols, or of two datasets.

    Datasets are told apart by their content: clips of one name must be compared with the same ground truth.
    """
    if one.truths and other.truths:
        both = one.truths.keys() & other.truths.keys()
        if not both or any(one.truths[clip] != other.truths[clip] for clip in both):
            return False
    hashes = {column.key: column.protocol for column in one.columns}
    return all(
        not column.protocol or not hashes.get(column.key) or _computes(hashes[column.key]) == _computes(column.protocol)
        for column in other.columns
    )


def _computes(tag: str) -> str:
    """A comparability tag without the name of its protocol: two protocols may compute the same."""
    return tag.partition(":")[2] or tag


def _union(first: Sequence[Column], second: Sequence[Column]) -> tuple[Column, ...]:
    """Columns of both; one that only the second run asked takes its protocol."""
    later = {column.key: column for column in second}
    made = [column if column.protocol else later.get(column.key, column) for column in first]
    known = {column.key for column in first}
    return (*made, *(column for column in second if column.key not in known))


def _cell(id: str, cases: Sequence[Mapping[str, Any]], of: int, answers: Mapping[str, Mapping[str, Record]]) -> Cell:
    records = [(case["sample"], answers.get(case["id"], {}).get(id)) for case in cases]
    scored = [(record["score"], sample) for sample, record in records if record and record["status"] == "scored"]
    if not scored:
        reasons = {kind_of(record["reason"]) for _, record in records if record and record.get("reason")}
        return Cell(None, 0, of, reason="; ".join(sorted(reasons)) or "not asked")
    values = [value for value, _ in scored]
    interval = mean_interval(values, [sample for _, sample in scored])
    return Cell(sum(values) / len(values), len(values), of, interval)


def _posed(run: RunFacts, model: str) -> dict[str, Cell]:
    """How many clips of a model went away and came back, where the summary says it."""
    count = posed(run.summary.get("models", {}).get(model, {}).get("funnel", ()))
    return {POSED.key: Cell(count[0] / count[1], text=f"{count[0]}/{count[1]}")} if count and count[1] else {}


def _column(id: str) -> Column:
    """The column of a metric; that of a plugin which is not installed here has its id for a title."""
    if id not in METRICS:
        return Column(id, id, None, decimals=None)
    return Column(id, METRICS[id].title, METRICS[id].higher_is_better, decimals=None)


def _makers(records: Sequence[Record]) -> dict[str, list[str]]:
    """Metric -> who made the evidence of its scores."""
    found: dict[str, set[str]] = {}
    for record in records:
        if record["status"] == "scored" and "metric" in record:
            named = [str(record["facts"][name]) for name in MAKERS if record["facts"].get(name)]
            found.setdefault(record["metric"], set()).update(named)
    return {id: sorted(names) for id, names in found.items()}


def _mixed(columns: Sequence[Column], records: Sequence[Record]) -> str:
    """A sentence on columns whose clips were not all observed by the same."""
    makers = _makers(records)
    mixed = [f"{c.title}: {', '.join(makers[c.key])}" for c in columns if len(makers.get(c.key, ())) > 1]
    return f"not all clips were observed alike ({'; '.join(mixed)})" if mixed else ""


def _left_open(run: str, cases: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Record]]) -> str:
    """A sentence on how many of a judge's questions were answered, model by model, where some were not."""
    counts: dict[str, list[int]] = {}
    for case in cases:
        for record in answers.get(case["id"], {}).values():
            facts = record.get("facts") or {}
            if facts.get("asked") and "answered" in facts:
                mine = counts.setdefault(case["model"], [0, 0])
                mine[0] += int(facts["answered"])
                mine[1] += int(facts["asked"])
    said = [f"{model} {n} of {of}" for model, (n, of) in sorted(counts.items()) if n < of]
    return f"questions answered in {run}: {', '.join(said)}" if said else ""


def _partial(run: RunFacts) -> bool:
    return len(run.plan["cases"]) < int(run.plan.get("total_cases") or 0)


def _in(entry: Mapping[str, Any], subset: str) -> bool:
    return not subset or subset.lower() in (str(entry.get(name, "")).lower() for name in PARTS)
