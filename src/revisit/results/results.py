"""Results: cases, their records, and the operations that every table needs.

Immutable: `where` and `common` give new ones. Console, summary.json, report, leaderboard, `--by`, exports, audit and
the suites' own tables are views of these. One rule each, the same on every surface:

- a mean is over scored clips only; what is unscored is counted by the kind of its reason, what failed apart;
- coverage is n of the clips that were asked, missing and refused ones included;
- intervals are cluster-robust over samples, within the range of the metric; a difference is tested by the same rule.

Clips that are the truth itself (`Case.truth`) stand apart in `truth`: no model, no mean and no rank counts them.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from html import escape
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revisit.core import METRICS, Record, UsageError
from revisit.core.grouping import group_items
from revisit.core.optional import import_optional
from revisit.core.records import GATE_STATES
from revisit.core.text import count_and_noun, join_names
from revisit.media.text_files import csv_text
from revisit.results import pairing
from revisit.results.ceilings import held_to_truth, metrics_changed_by_truth
from revisit.results.cells import Cell, make_score_cell, range_limits_of_metric
from revisit.results.clip_answers import ClipAnswers
from revisit.results.display import table_heading_of_score
from revisit.results.look_away_counts import LookAwayCounts, count_look_aways
from revisit.results.record_files import FACTS_OF_CASE
from revisit.results.score_names import HELD, add_held_suffix, find_metric_of_score, strip_held_suffix
from revisit.stats.pairwise import Ranking

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Self


COLUMNS: dict[str, Callable[[Record], object]] = {
    "case": attrgetter("case.id"),
    **{name: attrgetter(f"case.{name}") for name in FACTS_OF_CASE},
    "question": attrgetter("question"),
    "kind": lambda record: "gate" if record.is_gate else "metric",
    **{name: attrgetter(name) for name in ("status", "value", "raw")},
    "label": lambda record: record.label or None,
    "reason_kind": lambda record: record.reason.kind if record.reason else None,
    "reason": lambda record: record.sentence or None,
    **{name: attrgetter(name) for name in ("version", "protocol")},
}


class CellsByName(dict[Any, Cell]):
    """Cells by the value of a fact, such as the model; one that no clip has is named in a sentence."""

    def __init__(self, by: str, cells: Mapping[Any, Cell]) -> None:
        super().__init__(cells)
        self.by = by

    def __missing__(self, name: object) -> Cell:
        names = join_names([str(value) for value in self]) if self else "none: no clip is left"
        raise KeyError(f"no clip here has {self.by} {name!r}; there is {names}")


class Results(ClipAnswers):
    """Cases, the answers about them, and the operations that tables need. Immutable.

    `evaluate`, `score`, `load` and `rescore` return one. A notebook shows it as a table of models by metrics.

    Examples
    --------
    >>> results
    Results(2 clips of 1 model, 4 answers)
    >>> results.metrics, [case.sample for case in results.cases]
    (['flicker', 'motion_amount'], ['calm', 'wild'])
    """

    def _repr_html_(self) -> str:
        """Mean of each metric, a row per model: with the number of scored clips where some have no score."""
        metrics = [metric for metric in self.metrics if self.lacking(metric) is None]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("model", "clips", *metrics))
        rows = []
        for model, part in self.groups("model").items():
            cells = [escape(str(model)), str(len(part.cases))]
            for metric in metrics:
                cell = part.cell(metric)
                mean = "–" if cell.mean is None else f"{cell.mean:.4g}"
                cells.append(mean if cell.n == cell.of else f"{mean} <small>({cell.n} of {cell.of})</small>")
            rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in cells) + "</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def cell(self, metric: str) -> Cell:
        """The mean of a metric over all clips here, with everything that has no score counted by its reason.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        Cell
            `mean`, 95 % `interval`, `n`, `of`, `failed` and `unscored`.

        Examples
        --------
        >>> cell = results.cell("flicker")
        >>> cell.n, cell.of, cell.failed
        (2, 2, 0)
        """
        self._refuse_unknown_question(metric)
        column = self._column_for_question(metric)
        if self._asks is not None:
            column = column.select([self.asks(metric, case) for case in column.cases])
        scored = [(value, case.scene) for case, value in column.scored_cases_and_values()]
        answers = zip(column.reasons, column.status, strict=True)
        reasons = Counter(
            reason.kind for reason, status in answers if reason is not None and status not in ("scored", "failed")
        )
        if lacking := sum(self.asks(metric, entry) for entry in self.rejected):
            reasons["missing"] += lacking
        card = find_metric_of_score(metric)
        higher = None if card is None else card.higher_is_better
        clips: dict[Hashable, tuple[float, str]] = {
            case.pairing_key: (value, case.scene) for case, value in column.scored_cases_and_values()
        }
        return make_score_cell(
            scored, self.expected(metric), range_limits_of_metric(metric), higher, self.two_valued(metric),
            column.status.count("failed"), dict(reasons), clips if len(clips) == len(scored) else {},
        )  # fmt: skip

    def two_valued(self, metric: str) -> bool:
        """Whether all scores of a metric, in the whole of these results, are one end of its range or the other.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        bool
            True for yes or no metrics.
        """
        return strip_held_suffix(metric) in self.whole._contest._two_valued_metrics

    def _results_and_name_for_question(self, question: str) -> tuple[Self, str]:
        """`<metric>.held` is found among the scores held to the truth, unless the run itself has that name."""
        if not question.endswith(HELD) or question in self._source._is_gate_by_question:
            return self._source, question
        return held_to_truth(self._source), strip_held_suffix(question)

    @cached_property
    def _two_valued_metrics(self) -> set[str]:
        """Metrics whose scores are all one end of their range or the other, such as 0 and 1."""
        values_by_metric = {
            id: {value for _, value in self._column_for_question(id).scored_cases_and_values()} for id in self.metrics
        }
        # Where only one end occurs, a range of 0 to 1 tells a yes or no from a measure that happens to be at its limit.
        return {
            id
            for id, values in values_by_metric.items()
            if values
            and (
                values == set(range_limits_of_metric(id))
                or (range_limits_of_metric(id) == (0, 1) and values <= {0.0, 1.0})
            )
        }

    def mean(self, metric: str, by: str = "model", common: bool = False) -> dict[Any, Cell]:
        """The mean of a metric for each model, or for each value of another fact.

        Parameters
        ----------
        metric
            Id of a metric.
        by
            Name of a fact, as `where` takes it.
        common
            Take only the clips of which every model has a score.

        Returns
        -------
        dict
            `Cell` by model: `mean`, 95 % `interval`, `n`, `of`, `failed`, `unscored`.

        Raises
        ------
        UsageError
            If there is no such metric; the nearest is named.

        Examples
        --------
        >>> results.mean("flicker")["model"].n
        2
        """
        self._refuse_unknown_question(metric)
        chosen = self.common(metric) if common else self
        return CellsByName(by, {name: part.cell(metric) for name, part in chosen.groups(by).items()})

    def ambiguous(self, metric: str) -> dict[tuple[str, pairing.PairingKey], int]:
        """Clips that cannot be paired, because several of a model bear the same key.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        dict
            (model, key) -> number of clips.
        """
        return pairing.count_ambiguous_clips(self.scores(metric))

    def ranking(self, metric: str) -> Ranking:
        """Models from the best to the worst, with tests of all pairs on the clips that both have a score of.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        Ranking
            Order, means and tests.
        """
        return pairing.rank_models_by_scores(self.scores(metric), metric, self.two_valued(metric))

    def ranks(self, metric: str) -> list[pairing.Rank]:
        """Models from the best to the worst, by the clips that pairs of them have in common; equals share a place.

        The places that a model may have are behind those that beat it, and before those that it beats, all
        pairs of models together being wrong in at most 5 %.

        Parameters
        ----------
        metric
            Id of a metric.

        Returns
        -------
        list of Rank
            `model`, `rank`, the places from `low` to `high`, `mean` and `n`.

        Raises
        ------
        UsageError
            If the metric has no better direction.

        Examples
        --------
        >>> results.ranks("flicker")[0].rank
        1
        """
        self._refuse_unknown_question(metric)
        if METRICS[strip_held_suffix(metric)].higher_is_better is None:
            raise UsageError(f"{metric} is a description without a better direction, so models cannot be ranked by it")
        return pairing.ranks_from_ranking(self.ranking(metric))

    def paired(self, metric: str, first: str, second: str) -> pairing.Paired:
        """Two models on the clips of which both have a score.

        Parameters
        ----------
        metric
            Id of a metric.
        first, second
            Names of models; differences are second - first.

        Returns
        -------
        Paired
            `difference`, `interval`, `p`, `wins`, `ties`, `losses`, and the `pairs` by the size of their difference.

        Raises
        ------
        UsageError
            If there is no such metric or model.

        Examples
        --------
        >>> results.paired("flicker", "model", "model").difference  # doctest: +SKIP
        0.0
        """
        self._refuse_unknown_question(metric)
        if unknown := [model for model in (first, second) if model not in self.whole.models]:
            names = join_names(self.whole.models, 21)
            raise UsageError(f"there is no model called {unknown[0]!r}; these results have {names}")
        return pairing.compare_two_models(self.scores(metric), metric, first, second, self.two_valued(metric))

    def look_aways(self) -> LookAwayCounts | None:
        """How many clips of each model look away and come back, where the truth or the request does.

        Returns
        -------
        LookAwayCounts or None
            `models`, each with `asked`, `moved`, `left`, `returned`, `unclear`, `unreadable`, `reset`, `gone`,
            `neither`, `went_on` and `target_unclear`; None without these gates.

        Examples
        --------
        >>> results.look_aways() is None
        True
        """
        return count_look_aways(self)

    # What went wrong

    def failing(self) -> dict[tuple[str, ...], str]:
        """Metrics that failed, those that failed on the same clips together.

        Returns
        -------
        dict
            Ids of metrics -> a sentence on them.
        """
        failed = {id: [one for one in self._column_for_question(id).records if one.failed] for id in self.metrics}
        failing = [id for id, records in failed.items() if records]
        alike = group_items(failing, lambda id: tuple(record.case.id for record in failed[id]))
        sentences = {}
        for cases, metrics in alike.items():
            clips = f"{len(cases)} of {count_and_noun(len(self.cases), 'clip')}"
            count = "counts" if len(cases) == 1 else "count"
            first = failed[metrics[0]][0].sentence
            failure = f"{join_names(metrics)} failed on {clips}, which {count} in no mean"
            sentences[tuple(metrics)] = f"{failure}; the first: {first}"
        return sentences

    def warn_of_failures(self, stacklevel: int = 2) -> None:
        """Warn of each metric that failed, once for these results and all their parts.

        Parameters
        ----------
        stacklevel
            As `warnings.warn` takes it.
        """
        warned = self.whole._warned
        for metrics, sentence in self.failing().items():
            if not warned.issuperset(metrics):
                warned.update(metrics)
                warnings.warn(sentence, stacklevel=stacklevel + 1)

    def labels(self) -> dict[str, dict[str, int]]:
        """How often each gate came to each finding.

        Returns
        -------
        dict
            Gate -> finding -> number of clips.
        """
        counts = {
            gate: Counter(one.label for one in self.records_for(gate) if one.status in GATE_STATES)
            for gate in self.gates
        }
        return {gate: dict(sorted(counts[gate].items())) for gate in sorted(counts) if counts[gate]}

    # For other tools

    def scalars(self) -> dict[str, float]:
        """Means by name, for a training log; scores held to the truth have names of their own (`.held`).

        A metric that failed on some clips has its mean over the others, and one that failed on all is absent; a
        warning tells of both, once.

        Returns
        -------
        dict
            `memory/target_reappearance` -> mean; of several models `model/memory/...`.

        Examples
        --------
        >>> sorted(results.scalars())
        ['motion/flicker', 'motion/motion_amount']
        """
        self.warn_of_failures()
        held = metrics_changed_by_truth(self)
        names = [*self.metrics, *(add_held_suffix(metric) for metric in self.metrics if metric in held)]
        means = {}
        for model, part in self.groups("model").items():
            before = f"{model}/" if len(self.models) > 1 else ""
            for metric in names:
                mean = part.cell(metric).mean
                if mean is not None:
                    means[f"{before}{table_heading_of_score(metric).lower().replace(' ', '_')}/{metric}"] = mean
        return means

    def to_csv(self, path: str | Path | None = None) -> str:
        """A row per answer, as CSV.

        Parameters
        ----------
        path
            File to write, too.

        Returns
        -------
        str
            The text. A name that a spreadsheet would take for a formula has an apostrophe before it.

        Examples
        --------
        >>> len(results.to_csv().splitlines())
        5
        """
        text = csv_text(list(COLUMNS), (list(row.values()) for row in self._rows()), "\n")
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", newline="")
        return text

    def to_frame(self) -> pandas.DataFrame:
        """A row per answer, as a pandas DataFrame; `pip install 'revisit-bench[tables]'` brings pandas.

        Returns
        -------
        pandas.DataFrame
            Columns as those of `to_csv`.
        """
        frames = import_optional("pandas", "tables")
        return frames.DataFrame(list(self._rows()), columns=list(COLUMNS))

    def to_arrow(self) -> pyarrow.Table:
        """A row per answer, as an Arrow table; `pyarrow.parquet.write_table` makes a Parquet file of it.

        Returns
        -------
        pyarrow.Table
            Columns as those of `to_csv`.
        """
        arrow = import_optional("pyarrow", "tables")
        types = {"seed": arrow.int64(), "version": arrow.int64(), "value": arrow.float64(), "raw": arrow.float64()}
        schema = arrow.schema([(name, types.get(name, arrow.string())) for name in COLUMNS])
        return arrow.Table.from_pylist(list(self._rows()), schema=schema)

    def _rows(self) -> Iterator[dict[str, object]]:
        """All answers as plain columns, the same for every answer."""
        return ({name: value_of(record) for name, value_of in COLUMNS.items()} for record in self.records)
