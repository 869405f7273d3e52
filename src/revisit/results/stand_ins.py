"""Stand-ins: scores by another network, or a classical method, than that of the published column they would fill.

One rule for all files that mirror a benchmark's own and for all published columns of a leaderboard: a stand-in never
stands there. It has a name of its own, the metric's with `.stand_in` behind it, and its own file, stand_ins.csv. Who
the published maker is, each metric says in its card (`published_by`); who made a score, its facts say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from revisit.core import METRICS, Record
from revisit.core.grouping import group_items
from revisit.media.text_files import csv_text
from revisit.results.ceilings import make_unscored
from revisit.results.results import Results
from revisit.results.score_names import STAND_IN

FILE = "stand_ins.csv"
UNLIKE = "unlike_models"  # fact of an answer about the truth that another than the models' maker measured
COLUMNS = (
    "model", "sample", "subset", "condition", "seed", "metric", "stands_in_for", "published_by", "made_by", "score",
)  # fmt: skip


@dataclass(frozen=True)
class StandIn:
    """Who measured a metric in the place of whom."""

    metric: str
    made_by: str
    published_by: str

    @property
    def sentence(self) -> str:
        return f"{METRICS[self.metric].title} by {self.made_by} (published: {self.published_by})"


def stand_in_maker_and_replaced(record: Record) -> tuple[str, str]:
    """Who made a score in the place of whom; two empty texts where it is the published one, or no score."""
    if not record.scored or record.question not in METRICS:
        return "", ""
    others = [
        (str(record.facts[one.fact]), one.title)
        for one in METRICS[record.question].published_by
        if record.facts.get(one.fact) and not one.accepts(str(record.facts[one.fact]))
    ]
    return " and ".join(maker for maker, _ in others), " and ".join(title for _, title in others)


def is_stand_in(record: Record) -> bool:
    """Whether a score was made by another than the maker of its published column."""
    return bool(stand_in_maker_and_replaced(record)[0])


def separate_stand_ins(results: Results) -> Results:
    """The same clips; a stand-in has another name, and the published one is unscored in its place."""
    return results.expanded(_split_stand_in) if list_stand_ins(results) or list_stand_ins(results.truth) else results


def rejoin_stand_ins(results: Results) -> Results:
    """The answers as they were before `separate_stand_ins`, for a suite whose own tables name its stand-ins."""
    apart = {(record.case.id, record.question) for part in (results, results.truth) for record in part.records}

    def rename_back(record: Record) -> Iterable[Record]:
        if (record.case.id, record.question + STAND_IN) in apart:
            return ()
        return (record.with_changed_fields(question=record.question.removesuffix(STAND_IN)),)

    return results.expanded(rename_back) if any(question.endswith(STAND_IN) for _, question in apart) else results


def unscore_truth_of_other_makers(results: Results) -> Results:
    """The results; the truth is unscored under a metric that none of the models' clips has from the same maker.

    A camera that odometry followed in the true clip is no ceiling for cameras that came with the models' clips.
    """
    makers: dict[str, set[str]] = {}
    for record in results.records if results.truths else ():
        if record.scored and record.question in METRICS and METRICS[record.question].published_by:
            makers.setdefault(record.question, set()).add(stand_in_maker_and_replaced(record)[0])
    if not makers:
        return results

    def unscore_if_other_maker(record: Record) -> Iterable[Record]:
        maker = stand_in_maker_and_replaced(record)[0] if record.case.truth else ""
        if not record.case.truth or not record.scored or maker in makers.get(record.question, ("",)):
            return (record,)
        published = " and ".join(one.title for one in METRICS[record.question].published_by)
        unnamed = f"{published} or files that came with them"
        models = " or ".join(filter(None, sorted(makers[record.question])))
        why = f"it was measured by {maker or unnamed}, and the clips of the models by {models or unnamed}"
        facts = {**record.facts, UNLIKE: True}
        return (make_unscored(record, "other_settings", why, facts=facts, units="", n_units=0),)

    return results.expanded(unscore_if_other_maker)


def truth_of_other_makers_sentences(results: Results) -> list[str]:
    """Why the truth's row is empty under some metrics, a sentence each."""
    sentences = {
        f"the truth has no score of {METRICS[record.question].title.lower()}: {record.sentence}"
        for record in results.truth.records
        if record.facts.get(UNLIKE)
    }
    return sorted(sentences)


def _split_stand_in(record: Record) -> Iterable[Record]:
    made_by, published = stand_in_maker_and_replaced(record)
    if not made_by:
        return (record,)
    why = f"measured by {made_by}, which stands in for {published}"
    empty = make_unscored(record, "other_settings", why, units="", n_units=0)
    return empty, record.with_changed_fields(question=record.question + STAND_IN)


def list_stand_ins(results: Results) -> list[StandIn]:
    """The metrics that were measured by stand-ins, also where they are set apart."""
    found: dict[StandIn, None] = {}
    for record in results.records:
        id = record.question.removesuffix(STAND_IN)
        measured = record if id == record.question else record.with_changed_fields(question=id)
        made_by, published = stand_in_maker_and_replaced(measured)
        if made_by:
            found[StandIn(id, made_by, published)] = None
    return list(found)


def stand_in_makers_by_metric(results: Results) -> dict[str, str]:
    """Metric -> who measured it in the place of the published maker."""
    groups = group_items(list_stand_ins(results), lambda one: one.metric)
    return {metric: " or ".join(dict.fromkeys(one.made_by for one in some)) for metric, some in groups.items()}


def stand_ins_sentence(stand_ins: Sequence[StandIn], benchmark: str) -> str:
    """One line for the end of a run."""
    named = "; ".join(dict.fromkeys(one.sentence for one in stand_ins))
    return f"stand-ins, in {FILE} and not in the columns of {benchmark}: {named}"


def stand_in_scores_csv(results: Results) -> str:
    """A row per stand-in."""
    rows = []
    for record in results.records:
        made_by, published = stand_in_maker_and_replaced(record)
        if made_by:
            case, metric = record.case, METRICS[record.question]
            about = [case.model, case.sample, case.subset, case.condition, str(case.seed)]
            rows.append([*about, f"{metric.id}{STAND_IN}", metric.upstream, published, made_by, repr(record.value)])
    return csv_text(COLUMNS, rows, "\n")
