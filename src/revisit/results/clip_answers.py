"""Cases and their answers: looked up, and split into parts. `Results` adds the numbers of tables."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from revisit.core import (
    GATES,
    METRICS,
    Case,
    Clip,
    Reason,
    Record,
    Rejected,
    Series,
    UsageError,
    import_registering_modules,
)
from revisit.core.cases import CEILING, FLOOR
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, did_you_mean_question, join_names
from revisit.results.metric_columns import Answers, Column, Columns
from revisit.results.score_names import strip_held_suffix

if TYPE_CHECKING:
    from typing_extensions import Self

TRUTH = "truth"  # the row of the references
T = TypeVar("T")
Entry = Case | Rejected
Asks = Callable[[str, Entry], bool]
ClipSpan = tuple[Path, int, int | None]  # of a clip: its file, and the stretch of it


class ClipAnswers:
    """Cases, and the answers about them. Immutable."""

    whole: Self  # the results as they were measured, of which this is a part, perhaps with other answers
    _source: Self  # of which this is a part, with the same answers
    _contest: Self  # whose truth these are, or the whole itself

    def __init__(
        self,
        cases: Sequence[Case],
        records: Iterable[Record] | Answers,
        rejected: Sequence[Rejected] = (),
        *,
        asks: Asks | None = None,
        folder: Path | None = None,
        series: Mapping[tuple[str, str], Series] | None = None,
        name: str = "",
    ) -> None:
        """`asks` says whether a question is asked of an entry of the dataset; without it all are.

        `folder` holds the files of `units`.
        """
        self.truths = tuple(case for case in cases if case.truth)  # the references, each a clip of its own
        self.cases, self.rejected = tuple(case for case in cases if not case.truth), tuple(rejected)
        self._by_case = records if isinstance(records, Mapping) else _records_by_case(records)
        self._column_of: dict[str, Column] = {}  # by question, once it was read
        self._asks, self.folder, self.name = asks, folder, name
        self._series = series or {}
        self.whole = self._source = self._contest = self  # type: ignore[assignment]  # an object is of its own type
        self._warned: set[str] = set()  # metrics whose failures were told
        self._memo: dict[str, Any] = {}
        self.is_truth = self.is_held = False  # the references themselves; scores that are held to the truth already

    def __repr__(self) -> str:
        counts = ((len(self.cases), "clip"), (len(self.models), "model"), (len(self.records), "answer"))
        clips, models, answers = (count_and_noun(count, noun) for count, noun in counts)
        return f"{type(self).__name__}({clips} of {models}, {answers})"

    def __len__(self) -> int:
        return len(self.records)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What a function returns, computed at the first call with this name.

        Parameters
        ----------
        name
            Under which it is kept.
        make
            Function without arguments.

        Returns
        -------
        object
            What `make` returned.
        """
        if name not in self._memo:
            self._memo[name] = make()
        value: T = self._memo[name]
        return value

    # What is there

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All clips that the dataset expects: those that are here, and those missing or refused."""
        return (*self.cases, *self.rejected)

    @cached_property
    def models(self) -> list[str]:
        return sorted({entry.model for entry in self.entries if entry.model or isinstance(entry, Case)})

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All answers, those of a case together."""
        return tuple(record for case in self.cases for record in self.of(case).values())

    @cached_property
    def metrics(self) -> list[str]:
        """Metrics that were asked, in the order of the records."""
        return [question for question, is_gate in self._is_gate_by_question.items() if not is_gate]

    @cached_property
    def gates(self) -> list[str]:
        return [question for question, is_gate in self._is_gate_by_question.items() if is_gate]

    def of(self, case: Case | str) -> Mapping[str, Record]:
        """All answers about a case.

        Parameters
        ----------
        case
            A case, or its id.

        Returns
        -------
        Mapping
            Records by metric or gate.

        Examples
        --------
        >>> list(results.of("calm@model"))
        ['flicker', 'motion_amount']
        """
        return self._by_case.get(case if isinstance(case, str) else case.id, {})

    def answer(self, case: Case | str, question: str) -> Record | None:
        """The answer of a metric or gate about a case.

        Parameters
        ----------
        case
            A case, or its id.
        question
            Id of a metric or gate.

        Returns
        -------
        Record or None
            None where it was not asked.

        Examples
        --------
        >>> results.answer("calm@model", "flicker").status
        'scored'
        """
        self._refuse_unknown_question(question)
        source, name = self._results_and_name_for_question(question)
        return (self if source is self._source else source).of(case).get(name)

    def score(self, case: Case | str, metric: str) -> float | None:
        """The score of a case.

        Parameters
        ----------
        case
            A case, or its id.
        metric
            Id of a metric.

        Returns
        -------
        float or None
            None where there is no score.

        Examples
        --------
        >>> results.score("wild@model", "psnr") is None
        True
        """
        record = self.answer(case, metric)
        return record.value if record is not None and record.scored else None

    def records_for(self, question: str) -> list[Record]:
        """All answers of a metric or gate.

        Parameters
        ----------
        question
            Id of a metric or gate.

        Returns
        -------
        list of Record
            One for each clip that was asked.

        Examples
        --------
        >>> len(results.records_for("flicker"))
        2
        """
        self._refuse_unknown_question(question)
        return list(self._column_for_question(question).records)

    def scores(self, metric: str) -> list[Record]:
        """The answers of a metric that are scores.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        list of Record
            Without those that are unscored or failed.

        Examples
        --------
        >>> [record.case.sample for record in results.scores("flicker")]
        ['calm', 'wild']
        """
        self._refuse_unknown_question(metric)
        column = self._column_for_question(metric)
        return [record for record, status in zip(column.records, column.status, strict=True) if status == "scored"]

    def scored_cases(self, metrics: Iterable[str]) -> set[str]:
        """The cases with a score of one of these metrics.

        Parameters
        ----------
        metrics
            Ids of metrics.

        Returns
        -------
        set of str
            Ids of cases.
        """
        return {
            case.id for metric in metrics for case, _ in self._column_for_question(metric).scored_cases_and_values()
        }

    def series(self, case: Case | str, question: str) -> Series | None:
        """The values per frame, or per pair of frames, behind an answer.

        Parameters
        ----------
        case
            A case, or its id.
        question
            Id of a metric or gate.

        Returns
        -------
        Series or None
            None where the answer has none.

        Examples
        --------
        >>> series = results.series("wild@model", "motion_amount")
        """
        question = strip_held_suffix(question)
        record = self.answer(case, question)
        if record is None:
            return None
        if (record.case.id, question) in self._series:
            return self._series[record.case.id, question]
        if not record.units or self.folder is None:
            return None
        path = self.folder / record.units
        if not path.resolve().is_relative_to(self.folder.resolve()):
            return None  # a run from elsewhere may name any file
        from revisit.media import load_npz

        return Series(**load_npz(path))

    # The truth, and the floors

    @cached_property
    def truth(self) -> Self:
        """The references as clips of their own: what the truth itself scores, the ceiling of every metric."""
        cases = {case.id: replace(case, truth=False) for case in self.truths}
        records = [
            record.with_changed_fields(case=case) for id, case in cases.items() for record in self.of(id).values()
        ]
        truth = type(self)(
            tuple(cases.values()), records, asks=self._asks, folder=self.folder, series=self._series, name=self.name
        )
        truth.is_truth, truth._contest = True, self.whole
        return truth

    @property
    def truth_name(self) -> str:
        """What the row of the truth is called: after what stands for it, where nobody filmed the truth."""
        standing_in = {case.model for case in self.truths if case.category == CEILING}
        return standing_in.pop() if len(standing_in) == 1 else TRUTH

    def truth_of(self, case: Case) -> Case | None:
        """The reference that a case is compared with, where that was scored, too.

        Parameters
        ----------
        case
            A case.

        Returns
        -------
        Case or None
            The clip of the truth.
        """
        return None if case.reference is None else self._truth_by_clip_span.get(_clip_span(case.reference))

    @cached_property
    def floors(self) -> set[str]:
        """Names of models that are none: baselines without memory, as the records of their clips say."""
        others = {case.model for case in self.cases if case.category != FLOOR}
        return {case.model for case in self.cases} - others

    @cached_property
    def ranked(self) -> Self:
        """The clips of those that are ranked: models without floors; floors alone are ranked among themselves."""
        floors = self.floors
        return self.only(lambda entry: entry.model not in floors) if floors < set(self.models) else self

    # Parts

    def only(self, condition: Callable[[Entry], bool]) -> Self:
        """The part of the clips, present or missing, for which a function holds.

        Parameters
        ----------
        condition
            Function of a `Case` or `Rejected`.

        Returns
        -------
        Results
            The same answers about fewer clips.

        Examples
        --------
        >>> results.only(lambda entry: entry.id.startswith("calm")).cases[0].sample
        'calm'
        """
        cases = [case for case in self.cases if condition(case)]
        rejected = [entry for entry in self.rejected if condition(entry)]
        same = len(cases) == len(self.cases) and len(rejected) == len(self.rejected)
        return self if same else self._part_with_same_answers(cases, rejected)

    def where(self, **facts: Any) -> Self:
        """The clips with these facts.

        Parameters
        ----------
        **facts
            Fields of the case, or of its annotations, and their value; several values in a list.

        Returns
        -------
        Results
            The same answers about fewer clips.

        Raises
        ------
        UsageError
            If no clip has a fact of that name.

        Examples
        --------
        >>> results.where(sample=["calm"])
        Results(1 clip of 1 model, 2 answers)
        """
        for name in facts:
            self._require_fact(name)
        return self.only(
            lambda entry: all(_fact_of_entry(entry, name) in _as_collection(value) for name, value in facts.items())
        )

    def _require_fact(self, name: str) -> None:
        """Raise UsageError where no clip has a fact of this name."""
        if self.cases and name not in Case.__dataclass_fields__ and not any(name in c.annotations for c in self.cases):
            fields = ["model", "sample", "subset", "condition", "seed", "camera"]
            notes = sorted({note for case in self.cases for note in case.annotations})
            raise UsageError(f"no clip has a fact called {name!r}; choose one of {', '.join([*fields, *notes])}")

    def asking(self, *questions: str) -> Self:
        """The same clips with the answers of these metrics and gates alone.

        Parameters
        ----------
        *questions
            Ids of metrics and gates.

        Returns
        -------
        Results
            Fewer answers.

        Examples
        --------
        >>> results.asking("flicker").metrics
        ['flicker']
        """
        return self.mapped(lambda record: record if record.question in questions else None)

    def mapped(self, change: Callable[[Record], Record | None]) -> Self:
        """The same clips with their answers changed.

        Parameters
        ----------
        change
            Function of a record; an answer that becomes None is left out.

        Returns
        -------
        Results
            Other answers.
        """
        changed = [new for record in self.records if (new := change(record)) is not None]
        if len(changed) == len(self.records) and all(map(operator.is_, changed, self.records)):
            return self
        truths = {case.id: self.of(case) for case in self.truths}
        return self._with_clips_and_answers(self.cases, {**truths, **_records_by_case(changed)}, self.rejected)

    def expanded(self, change: Callable[[Record], Iterable[Record]]) -> Self:
        """The same clips and references with each answer replaced by others, which may have other names.

        Parameters
        ----------
        change
            Function of a record.

        Returns
        -------
        Results
            Other answers.
        """
        clips = (*self.cases, *self.truths)
        answers = _records_by_case(new for case in clips for record in self.of(case).values() for new in change(record))
        return self._with_clips_and_answers(self.cases, answers, self.rejected)

    def groups(self, by: str | Callable[[Entry], Any] = "model") -> dict[Any, Self]:
        """The parts of the clips by a fact; what was refused and names no model is a clip of none.

        Parameters
        ----------
        by
            Name of a fact, as `where` takes it, or a function of an entry.

        Returns
        -------
        dict
            Results by the value of the fact, in its order.

        Raises
        ------
        UsageError
            If no clip has a fact of that name.

        Examples
        --------
        >>> list(results.groups("sample"))
        ['calm', 'wild']
        """

        if isinstance(by, str):
            self._require_fact(by)

        def value_of(entry: Entry) -> Any:
            return _fact_of_entry(entry, by) if isinstance(by, str) else by(entry)

        clips_by_value: dict[Any, tuple[list[Case], list[Rejected]]] = defaultdict(lambda: ([], []))
        for case in self.cases:
            clips_by_value[value_of(case)][0].append(case)
        for entry in self.rejected:
            if by != "model" or entry.model:
                clips_by_value[value_of(entry)][1].append(entry)
        ordered = sorted(clips_by_value.items(), key=lambda item: (item[0] is None, str(type(item[0])), item[0]))
        return {value: self._part_with_same_answers(*part) for value, part in ordered}

    def common(self, metric: str) -> Self:
        """The clips of which every model has a score: the same clip of the same scene, by the same seed.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        Results
            The same answers about fewer clips.

        Examples
        --------
        >>> len(results.common("flicker").cases)
        2
        """
        scored = group_items(self.scores(metric), lambda record: record.case.pairing_key)
        everybody = sorted({case.model for case in self.cases})
        shared = {key for key, records in scored.items() if sorted(one.case.model for one in records) == everybody}
        return self.only(lambda entry: isinstance(entry, Case) and entry.pairing_key in shared)

    # What was asked, and what went wrong

    def expected(self, question: str) -> int:
        """How many clips are asked, missing and refused ones included.

        Parameters
        ----------
        question
            Id of a metric or gate.

        Returns
        -------
        int
            The number that coverage counts by.
        """
        return sum(self.asks(question, entry) for entry in self.entries) if self._asks else len(self.entries)

    def asks(self, question: str, entry: Entry) -> bool:
        """Whether a metric or gate is asked of an entry of the dataset.

        Parameters
        ----------
        question
            Id of a metric or gate.
        entry
            A `Case` or `Rejected`.

        Returns
        -------
        bool
            Most suites ask all of every clip.
        """
        return self._asks is None or self._asks(strip_held_suffix(question), entry)

    def lacking(self, question: str) -> Reason | None:
        """Why nobody could be asked: for all clips something was not given, or this set or machine does not have it.

        Parameters
        ----------
        question
            Id of a metric or gate.

        Returns
        -------
        Reason or None
            None where somebody was asked.

        Examples
        --------
        >>> results.lacking("flicker") is None
        True
        """
        column = self._column_for_question(question)
        if not {*column.status} <= {"failed", "unscored"}:
            return None
        reasons = [reason for reason, status in zip(column.reasons, column.status, strict=True) if status != "failed"]
        if len({reason and reason.kind for reason in reasons}) != 1:
            return None
        return reasons[0] if reasons[0] is not None and reasons[0].lacking else None

    def was_asked(self, *questions: str) -> bool:
        """Whether some of these were asked of some of the clips, and something could be asked at all.

        Parameters
        ----------
        *questions
            Ids of metrics and gates.

        Returns
        -------
        bool
            False where nothing was asked.
        """
        return any(
            self._column_for_question(question).records and self.lacking(question) is None for question in questions
        )

    def unreadable(self, case: Case | str) -> bool:
        """Whether nothing at all could be answered about a case: all failed, but for what nobody could be asked anyway.

        Parameters
        ----------
        case
            A case, or its id.

        Returns
        -------
        bool
            True for a broken clip.
        """
        id = case if isinstance(case, str) else case.id
        return id in self._ids_of_cases_with_failures and all(
            record.failed or (record.reason is not None and record.reason.lacking) for record in self.of(id).values()
        )

    @cached_property
    def readable(self) -> Self:
        """The clips of which something could be answered, or nothing was asked."""
        return self.only(lambda entry: isinstance(entry, Case) and not self.unreadable(entry))

    @cached_property
    def failures(self) -> list[Record]:
        """One per case and distinct sentence."""
        cases = [case for case in self.cases if case.id in self._ids_of_cases_with_failures]
        failed = [record for case in cases for record in self.of(case).values() if record.failed]
        return list({(r.case.id, r.sentence): r for r in reversed(failed)}.values())[::-1]

    @cached_property
    def _is_gate_by_question(self) -> dict[str, bool]:
        """Metrics and gates in the order of the records, and whether each is a gate."""
        return self._source._columns_of_all_cases.is_gate_by_question(self.cases)

    @cached_property
    def _columns_of_all_cases(self) -> Columns:
        return Columns(self.cases, self._by_case)

    def _column_for_question(self, question: str) -> Column:
        """All answers to a question."""
        if question not in self._column_of:
            source, name = self._results_and_name_for_question(question)
            self._column_of[question] = source._columns_of_all_cases.column_for(name, self.cases)
        return self._column_of[question]

    def _results_and_name_for_question(self, question: str) -> tuple[Self, str]:
        """The results that have the answers of this name, and what they are called there."""
        return self._source, question

    def _refuse_unknown_question(self, question: str) -> None:
        """Refuse a metric or gate that was not asked and that nobody knows.

        Results whose answers were changed (`mapped`) may have names of their own.
        """
        questions, question = self.whole._is_gate_by_question, strip_held_suffix(question)
        if self._source is not self.whole or question in questions or question in METRICS or question in GATES:
            return
        import_registering_modules()
        if not questions or question in METRICS or question in GATES:
            return
        near = did_you_mean_question(question, questions) or did_you_mean_question(question, METRICS)
        hint = near or f"these results have {join_names(list(questions), 21)}"
        raise UsageError(f"there is no metric called {question!r}; {hint}")

    @cached_property
    def _truth_by_clip_span(self) -> dict[ClipSpan, Case]:
        return {_clip_span(case.clip): case for case in self.truths}

    @cached_property
    def _ids_of_cases_with_failures(self) -> set[str]:
        """Cases of which something failed; a part may know of more than it has."""
        truths = {case.id for case in self.truths if any(record.failed for record in self.of(case).values())}
        return truths | self._source._columns_of_all_cases.failed

    def _part_with_same_answers(self, cases: Iterable[Case], rejected: Iterable[Rejected]) -> Self:
        """Some of the clips; what was asked of a clip is the same in every part."""
        part = self._with_clips_and_answers(cases, self._by_case, rejected)
        part._source, part.is_truth, part.is_held = self._source, self.is_truth, self.is_held
        return part

    @cached_property
    def _ceilings_without_reference(self) -> frozenset[str]:
        """Ids of clips that stand for the truth, and with which no clip is compared."""
        ceilings = [case for case in self.truths if case.category == CEILING]
        compared = {_clip_span(case.reference) for case in self.cases if case.reference is not None} if ceilings else ()
        return frozenset(case.id for case in ceilings if _clip_span(case.clip) not in compared)

    def _with_clips_and_answers(self, cases: Iterable[Case], answers: Answers, rejected: Iterable[Rejected]) -> Self:
        mine = tuple(cases)
        places = {_clip_span(case.reference) for case in mine if case.reference is not None}
        parts = {(case.subset, case.condition) for case in mine} if self._ceilings_without_reference else set()
        truths = [
            case
            for case in self.truths
            if _clip_span(case.clip) in places
            or (case.id in self._ceilings_without_reference and (case.subset, case.condition) in parts)
        ]
        part = type(self)(
            (*mine, *truths), answers, tuple(rejected), asks=self._asks, folder=self.folder, series=self._series,
            name=self.name,
        )  # fmt: skip
        part.whole = self.whole
        return part


def _records_by_case(records: Iterable[Record]) -> Answers:
    by_case: dict[str, dict[str, Record]] = {}
    for record in records:
        by_case.setdefault(record.case.id, {})[record.question] = record
    return by_case


def _clip_span(clip: Clip) -> ClipSpan:
    return clip.path, clip.start, clip.count


def _fact_of_entry(entry: Entry, name: str) -> Any:
    value = getattr(entry, name, None)
    if value is None and isinstance(entry, Case):
        value = entry.annotations.get(name)
    return value


def _as_collection(value: Any) -> Collection[Any]:
    if isinstance(value, np.ndarray):
        return list(value)
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)
