"""Results → tables: the standard ones, over both splits and in each; fidelity by phase with its drop; the camera.

Notes tell which of several places a clip was taken from, and where files of the dataset disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import METRICS, Record
from revisit.core.text import count_and_noun, join_names
from revisit.results import Cell, Results
from revisit.results.ceilings import OUTCOME, RESET, WENT_ON, held_to_truth
from revisit.results.cells import Limits, make_mean_cell
from revisit.results.display import cell_text
from revisit.results.question_ranking import SuiteQuestion, rank_question
from revisit.results.tables import Table, make_table, standard_summary
from revisit.suites.memobench.clip_categories import ors_tables_by_size_and_angle, trajectory_tables
from revisit.suites.memobench.exports import SCORE, Place, record_number_at
from revisit.suites.memobench.metadata import SHEETS
from revisit.suites.memobench.metrics import FIDELITY, is_failure_diagnosis_metric
from revisit.suites.memobench.metrics.answers import DIMENSIONS

Columns = Mapping[str, tuple[Place, Limits]]  # name -> where a record has the number, and its limits
RETURNED = ("mean", "returned")
PHASES = {"visible": "visible", "hidden": "hidden", "returned": "returned", "whole clip": "all"}
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
    metric_ids = [metric_id for metric_id in results.metrics if not is_failure_diagnosis_metric(metric_id)]
    parts = {subset: results.where(subset=subset) for subset in SHEETS}
    return standard_summary(results, metrics=metric_ids, parts=parts) | {
        "notes": [f"{case.id}: {note}" for case in results.cases for note in case.annotations.get("notes", ())],
        "sentences": summary_sentences(results),
        "tables": [
            *(one for metric_id in FIDELITY for one in _fidelity_by_phase_tables(results, metric_id)),
            *_camera_score_tables(results),
            *pass_rate_tables(results),
            *trajectory_tables(results),
            *ors_tables_by_size_and_angle(results),
        ],
        "layouts": {
            model: dict(sorted(Counter(str(case.annotations.get("layout")) for case in mine.cases).items()))
            for model, mine in results.groups().items()
        },
    }


def _fidelity_by_phase_tables(results: Results, metric_id: str) -> list[Table]:
    """Fidelity by phase: what is lost from before the object leaves to after it returned."""
    metric = METRICS[metric_id]
    note = f"{metric.unit}; drop: how much worse the returned phase is than the visible one"
    columns: Columns = {name: (("mean", phase), metric.range) for name, phase in PHASES.items()}
    columns = {**columns, "drop": (("drop",), (None, None))}
    return _table_of_record_numbers(results, metric_id, f"{metric.title}, by phase", note, columns, RETURNED)


def _camera_score_tables(results: Results) -> list[Table]:
    """The camera score beside what a camera that never moves would get on the same paths."""
    note = (
        "percent; resting: a camera that never moves, on the same paths; error removed: the share of the resting "
        "camera's error that is gone, 1 is perfect, 0 no better than resting"
    )
    title = f"{METRICS[CAMERA].title}, compared with a resting camera"
    return _table_of_record_numbers(results, CAMERA, title, note, CAMERA_COLUMNS, SCORE)


def _table_of_record_numbers(
    results: Results, metric_id: str, title: str, note: str, columns: Columns, required: Place
) -> list[Table]:
    """A row per model with numbers of its records, of those that have one of them; none without any row."""
    rows = []
    for model, mine in results.groups().items():
        records = [record for record in mine.scores(metric_id) if record_number_at(record, required) is not None]
        cells = []
        for place, limits in columns.values():
            values = [(value, r.case.scene) for r in records if (value := record_number_at(r, place)) is not None]
            own = mine.cell(metric_id) if place == SCORE else make_mean_cell(values, mine.expected(metric_id), limits)
            cells.append(own)
        if records:
            rows.append((model, cells))
    return [make_table(title, note, columns, rows)] if rows else []


def pass_rate_tables(results: Results) -> list[Table]:
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
    answer_count = sum(int(record.facts["answered"]) for record in with_questions)
    question_count = sum(int(record.facts["asked"]) for record in with_questions)
    if not scores:
        return Cell(answer_count, question_count)
    ends = zip(*(record.facts["interval"] for record in with_questions), strict=True)
    low, high = (sum(values) / len(with_questions) for values in ends)
    return Cell(answer_count, question_count, sum(scores) / len(scores), (low, high))


GATE_FINDINGS = (
    # gate, label, what it means
    ("target_return", "never hidden", "The target was never hidden, so the clip does not pose the test"),
    ("target_return", "hidden, not returned", "The target was hidden and did not come back"),
    ("target_return", "hidden, returned", "The target was hidden and came back"),
    ("view_return", "never left", "The first view never left the frame"),
    ("look_away", "never looks away", "The camera never looked away, so the clip poses no question of memory"),
)


def summary_sentences(results: Results) -> list[str]:
    """Sentences about all models together."""
    findings = [(words, _models_with_gate_label(results, gate, label)) for gate, label, words in GATE_FINDINGS]
    orders = [model_order_sentence(metric_id, results) for metric_id in FIDELITY]
    return [
        *(f"{words}: {models}." for words, models in findings if models),
        *filter(None, [_event_outcome_sentence(results), *orders]),
    ]


def model_order_sentence(metric_id: str, results: Results) -> str | None:
    """The models by their mean as in tables, and who beats whom.

    The pairs are those of the verdict, by the same test and correction: a ranking of means alone does not count.
    """
    question = SuiteQuestion(METRICS[metric_id].title, (metric_id,))
    answer = rank_question(held_to_truth(results).ranked, question)
    if len(answer.places) < 2:
        return None
    means = [f"{place.model} {cell_text(place.cell)}" for place in answer.places]
    beaten: dict[str, list[str]] = {}
    for pair in answer.pairs:
        if pair.decided:
            beaten.setdefault(pair.ahead, []).append(pair.behind)
    winners = [place.model for place in answer.places if place.model in beaten]
    order = "; ".join(f"{model} beats {join_names(beaten[model])}" for model in winners)
    if not winners:
        order = "no two of them differ beyond chance: these clips do not give a ranking"
    rest = "".join(f"; {text}" for text in answer.left_out_sentences)
    return f"{question.ask}, best mean first: {'; '.join(means)}{rest}. Clip by clip: {order}."


def _event_outcome_sentence(results: Results) -> str | None:
    """Whether the return shows what had happened meanwhile."""
    groups: dict[str, list[str]] = defaultdict(list)
    for model, cell in results.mean(OUTCOME).items():
        if cell.mean is not None:
            kind = "reset" if cell.mean <= RESET else "nearer to the truth" if cell.mean >= WENT_ON else "in between"
            groups[kind].append(f"{model} {cell.mean:.2f} ({count_and_noun(cell.n, 'clip')})")
    if not groups:
        return None
    parts = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items())
    return f"After the return, from 0 (as if nothing had happened) to 1 (as in the truth): {parts}."


def _models_with_gate_label(results: Results, gate: str, label: str) -> str:
    """Models and in how many of their clips a gate came to a finding."""
    findings = [record for record in results.records_for(gate) if record.label]
    totals = Counter(record.case.model for record in findings)
    counts = Counter(record.case.model for record in findings if record.label == label)
    ranked = sorted(counts, key=lambda model: (-counts[model], model))
    return ", ".join(f"{model} {counts[model]} of {totals[model]}" for model in ranked)
