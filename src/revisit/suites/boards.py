"""Runs → boards: one row per model and run; runs whose numbers compare share a board, others get their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from revisit.core import KINDS, METRICS, UsageError, digest
from revisit.results import Results
from revisit.results.funnel import posed
from revisit.stats.boards import Board, Cell, Column, Row

# Facts that name who made the evidence of a score, where a protocol leaves that to the files it is given.
MAKERS = ("judge", "detector", "net", "poses_from", "described_by", "depth_by", "flow", "rated_by")
# A model whose camera never leaves keeps everything: how many clips posed the test stands before all scores.
POSED = Column("posed", "test posed", None)


@dataclass(frozen=True)
class RunFacts:
    """What a board needs of a run: its name, the content of its JSON files, and its results."""

    name: str
    facts: Mapping[str, Any]
    plan: Mapping[str, Any]
    results: Results
    summary: Mapping[str, Any] = field(default_factory=dict)


def columns_of(run: RunFacts, known: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a run's board: those a suite names, in its order; else every metric the run asked."""
    hashes: Mapping[str, str] = run.facts["protocol"]["metrics"]
    wanted = known or [_column(id) for id in hashes]
    makers = _makers(run.results)
    return tuple(
        replace(column, protocol=" ".join([hashes[column.key], *makers.get(column.key, ())]))
        if column.key in hashes
        else column
        for column in wanted
    )


def board_of_run(run: RunFacts, known: Sequence[Column] = (), subset: str = "") -> Board:
    """Means over the clips of each model in a run, or of one part of the dataset."""
    part = run.results.only(
        lambda entry: not subset or subset.lower() in (entry.subset.lower(), entry.condition.lower())
    )
    if not part.entries:
        parts = sorted({name for case in run.results.cases for name in (case.subset, case.condition)} - {""})
        raise UsageError(f"{run.name} has no clips in {subset!r}; its parts are {', '.join(parts) or 'none'}")
    columns = tuple(
        column for column in columns_of(run, known) if any(part.asks(column.key, entry) for entry in part.entries)
    )
    rows = []
    for model, mine in part.groups("model").items():
        cells = {column.key: _cell(mine, column.key) for column in columns}
        rows.append(Row(model, run.name, cells if subset else {**_posed(run, model), **cells}))
    protocol = run.facts["protocol"]
    here = {case.id for case in part.cases}
    truths = {
        case["sample"]: case["reference_digest"]
        for case in run.plan["cases"]
        if case["id"] in here and case.get("reference_digest") and case["reference_digest"] != case.get("digest")
    }
    dataset = f", dataset {digest(sorted(truths.items()), 8)}" if truths else ""
    partial = f"; --limit took {len(run.plan['cases'])} of {run.plan['total_cases']} clips" if _partial(run) else ""
    return Board(
        title=f"{run.facts['suite']}{', ' + subset if subset else ''}",
        protocol=f"{protocol['name']}:{protocol['hash']}, observers {run.facts['set']}{dataset}{partial}",
        columns=(POSED, *columns) if any(POSED.key in row.cells for row in rows) else columns,
        rows=tuple(rows),
        note="; ".join(filter(None, [_mixed(columns, run.results), _left_open(run.name, part)])),
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


def _cell(part: Results, id: str) -> Cell:
    made = part.cell(id)
    if made.mean is None:
        kinds = [*sorted(made.unscored), *(["failed"] if made.failed else [])]
        return Cell(None, made.n, made.of, reason="; ".join(KINDS[kind].title for kind in kinds) or "not asked")
    return Cell(made.mean, made.n, made.of, made.interval)


def _posed(run: RunFacts, model: str) -> dict[str, Cell]:
    """How many clips of a model went away and came back, where the summary says it."""
    count = posed(run.summary.get("models", {}).get(model, {}).get("funnel", ()))
    return {POSED.key: Cell(count[0] / count[1], text=f"{count[0]}/{count[1]}")} if count and count[1] else {}


def _column(id: str) -> Column:
    """The column of a metric; that of a plugin which is not installed here has its id for a title."""
    if id not in METRICS:
        return Column(id, id, None, decimals=None)
    return Column(id, METRICS[id].title, METRICS[id].higher_is_better, decimals=None)


def _makers(results: Results) -> dict[str, list[str]]:
    """Metric -> who made the evidence of its scores."""
    found: dict[str, set[str]] = {}
    for record in results.records:
        if record.scored:
            named = [str(record.facts[name]) for name in MAKERS if record.facts.get(name)]
            found.setdefault(record.question, set()).update(named)
    return {id: sorted(names) for id, names in found.items()}


def _mixed(columns: Sequence[Column], results: Results) -> str:
    """A sentence on columns whose clips were not all observed by the same."""
    makers = _makers(results)
    mixed = [f"{c.title}: {', '.join(makers[c.key])}" for c in columns if len(makers.get(c.key, ())) > 1]
    return f"not all clips were observed alike ({'; '.join(mixed)})" if mixed else ""


def _left_open(run: str, part: Results) -> str:
    """A sentence on how many of a judge's questions were answered, model by model, where some were not."""
    said = []
    for model, mine in part.groups("model").items():
        counts = [record.facts for record in mine.records if record.facts.get("asked") and "answered" in record.facts]
        n, of = (sum(int(facts[name]) for facts in counts) for name in ("answered", "asked"))
        said += [f"{model} {n} of {of}"] if n < of else []
    return f"questions answered in {run}: {', '.join(said)}" if said else ""


def _partial(run: RunFacts) -> bool:
    return len(run.plan["cases"]) < int(run.plan.get("total_cases") or 0)
