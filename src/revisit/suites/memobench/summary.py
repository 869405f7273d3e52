"""Results → tables: the standard ones, over both splits and in each; fidelity by phase with its drop; the camera.

Notes tell which of several places a clip was taken from, and where files of the dataset disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import METRICS, Record
from revisit.core.text import pluralize
from revisit.results import Cell, Results
from revisit.results.ceilings import OUTCOME, RESET, WENT_ON
from revisit.results.cells import Limits, cell_of
from revisit.results.tables import Table, make_table, standard_summary
from revisit.stats.intervals import mean_interval
from revisit.suites.memobench.clip_categories import ors_tables, trajectory_table
from revisit.suites.memobench.columns import SCORE, Place
from revisit.suites.memobench.exports import value_at
from revisit.suites.memobench.metadata import SHEETS
from revisit.suites.memobench.metrics import FIDELITY, is_diagnostic
from revisit.suites.memobench.metrics.answers import DIMENSIONS

Columns = Mapping[str, tuple[Place, Limits]]  # name -> where a record has the number, and its limits
RETURNED = ("mean", "returned")
PHASES = {
    "visible": ("mean", "visible"),
    "hidden": ("mean", "hidden"),
    "returned": RETURNED,
    "whole clip": ("mean", "all"),
}
CAMERA = "memo_camera"
CAMERA_COLUMNS: Columns = {
    "score": (SCORE, (0, 100)),
    "resting": (("static_score",), (0, 100)),
    "by distance turned": (("path_score",), (0, 100)),
    "resting, by distance turned": (("static_path_score",), (0, 100)),
    "error removed": (("better_than_static",), (None, 1)),
}


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    metric_ids = [metric_id for metric_id in results.metrics if not is_diagnostic(metric_id)]
    parts = {subset: results.where(subset=subset) for subset in SHEETS}
    return standard_summary(results, metrics=metric_ids, parts=parts) | {
        "notes": [f"{case.id}: {note}" for case in results.cases for note in case.annotations.get("notes", ())],
        "sentences": sentences(results),
        "tables": [
            *(one for metric_id in FIDELITY for one in _phase_table(results, metric_id)),
            *_camera_table(results),
            *answered_tables(results),
            *trajectory_table(results),
            *ors_tables(results),
        ],
        "layouts": {
            model: dict(sorted(Counter(str(case.annotations.get("layout")) for case in mine.cases).items()))
            for model, mine in results.groups().items()
        },
    }


def _phase_table(results: Results, metric_id: str) -> list[Table]:
    """Fidelity by phase: what is lost from before the object leaves to after it returned."""
    metric = METRICS[metric_id]
    note = f"{metric.unit}; drop: how much worse the returned phase is than the visible one"
    columns: Columns = {name: (place, metric.range) for name, place in PHASES.items()}
    columns = {**columns, "drop": (("drop",), (None, None))}
    return _table(results, metric_id, f"{metric.title}, by phase", note, columns, RETURNED)


def _camera_table(results: Results) -> list[Table]:
    """The camera score beside what a camera that never moves would get on the same paths."""
    note = (
        "percent; resting: a camera that never moves, on the same paths; error removed: the share of the resting "
        "camera's error that is gone, 1 is perfect, 0 no better than resting"
    )
    return _table(
        results, CAMERA, f"{METRICS[CAMERA].title}, compared with a resting camera", note, CAMERA_COLUMNS, SCORE
    )


def _table(results: Results, metric_id: str, title: str, note: str, columns: Columns, required: Place) -> list[Table]:
    """A row per model with numbers of its records, of those that have one of them; none without any row."""
    rows = []
    for model, mine in results.groups().items():
        records = [record for record in mine.scores(metric_id) if value_at(record, required) is not None]
        cells = []
        for place, limits in columns.values():
            values = [(value, r.case.sample) for r in records if (value := value_at(r, place)) is not None]
            cells.append(cell_of(values, mine.expected(metric_id), limits))
        if records:
            rows.append((model, cells))
    return [make_table(title, note, columns, rows)] if rows else []


def answered_tables(results: Results) -> list[Table]:
    """A table of pass rates with the questions answered and asked, and what those left open could change; or none.

    The mean is over clips with an answer; the interval over all clips that were asked about, from all open questions
    failing to all of them passing.
    """
    rows = []
    for model, mine in results.groups().items():
        cells = [_pass_rate_cell(mine.records_for(f"memo_vqa_{short}")) for short in DIMENSIONS]
        if any(cell.of for cell in cells):
            rows.append((model, cells))
    note = (
        "percent passed, mean over clips (questions answered/asked); the interval assumes "
        "that unanswered questions all fail or all pass"
    )
    return [make_table("Questions answered", note, DIMENSIONS.values(), rows)] if rows else []


def _pass_rate_cell(records: Sequence[Record]) -> Cell:
    with_questions = [record for record in records if record.facts.get("asked")]
    scores = [record.value for record in with_questions if record.value is not None]
    answer_count, question_count = (
        sum(int(record.facts[name]) for record in with_questions) for name in ("answered", "asked")
    )
    if not scores:
        return Cell(answer_count, question_count)
    low, high = (
        sum(ends) / len(with_questions)
        for ends in zip(*(record.facts["interval"] for record in with_questions), strict=True)
    )
    return Cell(answer_count, question_count, sum(scores) / len(scores), (low, high))


Scores = dict[str, dict[tuple[str, str], float]]  # model -> (sample, split) -> score

GATE_FINDINGS = (
    # gate, label, what it means
    ("target_return", "never hidden", "The target was never hidden, so the clip does not pose the test"),
    ("target_return", "hidden, not returned", "The target was hidden and did not come back"),
    ("target_return", "hidden, returned", "The target was hidden and came back"),
    ("view_return", "never left", "The first view never left the frame"),
    ("look_away", "never looks away", "The camera never looked away, so the clip poses no question of memory"),
)
MOST_PAIRS = 12


def sentences(results: Results) -> list[str]:
    """Sentences about all models together."""
    lines = []
    for gate, label, words in GATE_FINDINGS:
        if models := _with_label(results, gate, label):
            lines.append(f"{words}: {models}.")
    return [
        *lines,
        *filter(None, [_outcomes(results), *(order_sentence(metric_id, results) for metric_id in FIDELITY)]),
    ]


def order_sentence(metric_id: str, results: Results) -> str | None:
    """The models by their mean with intervals and numbers of clips, and which of them are apart.

    Two are apart only if the interval of their score differences, clip by clip, excludes zero; those of all pairs hold
    together at 95 % (Bonferroni). A ranking of means alone does not count.
    """
    means = _means(metric_id, results)
    if len(means) < 2:
        return None
    metric = METRICS[metric_id]
    ranked = sorted(means, key=lambda model: means[model][0], reverse=bool(metric.higher_is_better))
    entries = []
    for model in ranked:
        mean, cell = means[model]
        span = "no interval" if cell.interval is None else "{:.3g} to {:.3g}".format(*cell.interval)
        entries.append(f"{model} {mean:.4g} ({span}, {pluralize(cell.n, 'clip')})")
    pairs = _distinct_pairs(ranked, _scores(metric_id, results))
    if pairs:
        rest = f" and {len(pairs) - MOST_PAIRS} more pairs" if len(pairs) > MOST_PAIRS else ""
        apart = (
            "Clip by clip, over all pairs together: "
            + ", ".join(f"{a} is ahead of {b}" for a, b in pairs[:MOST_PAIRS])
            + rest
        )
    else:
        apart = "Clip by clip no two of them differ at 95 %: these clips do not give a ranking"
    return f"{metric.title}, best mean first: {'; '.join(entries)}. {apart}."


def _distinct_pairs(ranked: Sequence[str], scores: Scores) -> list[tuple[str, str]]:
    pairs = []
    level = 1 - 0.05 / max(len(ranked) * (len(ranked) - 1) // 2, 1)
    for k, better in enumerate(ranked):
        for worse in ranked[k + 1 :]:
            shared = [key for key in scores[better] if key in scores[worse]]
            differences = [scores[better][key] - scores[worse][key] for key in shared]
            interval = mean_interval(differences, [sample for sample, _ in shared], level) if differences else None
            if interval is not None and not interval[0] <= 0 <= interval[1]:
                pairs.append((better, worse))
    return pairs


def _outcomes(results: Results) -> str | None:
    """Whether the return shows what had happened meanwhile."""
    groups: dict[str, list[str]] = defaultdict(list)
    for model, (value, cell) in _means(OUTCOME, results).items():
        kind = "reset" if value <= RESET else "nearer to the truth" if value >= WENT_ON else "in between"
        groups[kind].append(f"{model} {value:.2f} ({pluralize(cell.n, 'clip')})")
    if not groups:
        return None
    parts = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items())
    return f"After the return, from 0 (as if nothing had happened) to 1 (as in the truth): {parts}."


def _with_label(results: Results, gate: str, label: str) -> str:
    """Models and in how many of their clips a gate came to a finding."""
    findings = [record for record in results.records_for(gate) if record.label]
    totals = Counter(record.case.model for record in findings)
    counts = Counter(record.case.model for record in findings if record.label == label)
    ranked = sorted(counts, key=lambda model: (-counts[model], model))
    return ", ".join(f"{model} {counts[model]} of {totals[model]}" for model in ranked)


def _scores(metric_id: str, results: Results) -> Scores:
    """The scores of the models that have some, in the order of their names."""
    scores: Scores = {}
    for record in sorted(results.scores(metric_id), key=lambda record: record.case.model):
        assert record.value is not None
        scores.setdefault(record.case.model, {})[record.case.sample, record.case.subset] = record.value
    return scores


def _means(metric_id: str, results: Results) -> dict[str, tuple[float, Cell]]:
    """Mean and cell of the models that have scores, in the order of their names."""
    return {model: (cell.mean, cell) for model, cell in results.mean(metric_id).items() if cell.mean is not None}
