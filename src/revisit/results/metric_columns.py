"""Answers by question: a run has many thousands, so each is looked at once, and tables are made of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

from revisit.core import Case, Reason, Record

Answers = Mapping[str, Mapping[str, Record]]  # case id -> metric or gate -> its record
NO_ANSWER = Record(None, "", False, "")  # type: ignore[arg-type]  # stands where nobody was asked


class Column(NamedTuple):
    """The answers to one question, about the cases that have one."""

    cases: Sequence[Case] = ()
    records: Sequence[Record] = ()
    status: Sequence[str] = ()
    values: Sequence[float | None] = ()
    reasons: Sequence[Reason | None] = ()

    def select(self, selection: Sequence[Any]) -> Column:
        """Those of which this is true."""
        parts: tuple[Sequence[Any], ...] = self
        return Column(*(tuple(compress(part, selection)) for part in parts))

    def scored_cases_and_values(self) -> Iterator[tuple[Case, float]]:
        """The cases that have a score, and the score."""
        answers = zip(self.cases, self.values, self.status, strict=True)
        return ((case, value) for case, value, status in answers if status == "scored" and value is not None)


class Columns:
    """The columns of all questions about some cases."""

    def __init__(self, cases: Sequence[Case], answers: Answers) -> None:
        rows = [answers.get(case.id, {}) for case in cases]
        orders = dict.fromkeys(map(tuple, rows))  # one, where all cases are asked the same
        questions = tuple(dict.fromkeys(chain.from_iterable(orders)))
        alike = orders.keys() == {questions}
        cells = [list(row.values()) if alike else [row.get(id, NO_ANSWER) for id in questions] for row in rows]
        # Case by case, as answers lie in memory: question by question takes ten times as long.
        status = [[record.status for record in row] for row in cells]
        values = [[record.value for record in row] for row in cells]
        reasons = [[record.reason for record in row] for row in cells]
        self.failed = {case.id for case, row in zip(cases, status, strict=True) if "failed" in row}
        self._place = {case.id: k for k, case in enumerate(cases)}
        by_question = zip(*(zip(*rows, strict=True) for rows in (cells, status, values, reasons)), strict=True)
        self._columns = {id: Column(cases, *parts) for id, parts in zip(questions, by_question, strict=True)}

    def is_gate_by_question(self, cases: Sequence[Case]) -> dict[str, bool]:
        """What was asked of these cases, and whether it is a gate."""
        whole = {id: column.records if "" not in column.status else () for id, column in self._columns.items()}
        records_by_question = (
            {id: records or self.column_for(id, cases).records for id, records in whole.items()} if cases else {}
        )
        return {id: records[0].is_gate for id, records in records_by_question.items() if records}

    def column_for(self, question: str, cases: Sequence[Case]) -> Column:
        """The answers to a question about these of the cases."""
        column = self._columns.get(question, Column())
        if column.cases and cases is not column.cases:
            places = [self._place[case.id] for case in cases]
            parts: tuple[Sequence[Any], ...] = column
            column = Column(*([part[k] for k in places] for part in parts))
        return column.select(column.status) if "" in column.status else column
