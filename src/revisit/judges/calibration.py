"""Calibration: how far a judge's answers can be trusted, measured on questions whose right answers are known.

Labels are what people say is the right answer to a question about a clip, as CSV or JSON lines. Rows with the same clip
and question are several people's: the most frequent label counts, and where there is none the question is left out.

Measured is the agreement with the labels, and whether it holds when asked again, of a question and its opposite, with
the options in another order, and of another clip's frames (docs/judge-calibration.md). Rates are about facts: the
answer to a question of negative polarity is turned round. A question without a valid answer is in no rate; it is never
taken for a no.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.core.text import convert_read_errors, parse_numbered_json_lines
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames, Judge, JudgeAnswer, Reply
from revisit.judges.questions import Choice, Malformed, Question, Rating, YesNo, schema_from_form
from revisit.media.text_files import csv_dict_reader
from revisit.stats.agreement import cohen_kappa, most_frequent_vote, unanimous_and_pairwise_agreement, yes_no_agreement

Ask = Callable[[Judge], JudgeClient]
Look = Callable[[Path], Frames]
KNOWN = ("clip", "question", "label", "form", "subset", "polarity", "pair", "rater", "about")


@dataclass(frozen=True)
class JudgeLabel:
    """A question about a clip and its right answer."""

    clip: Path
    question: Question
    right: Any  # True or False, a whole number, or a word, by the question's schema
    subset: str = ""
    polarity: str = ""
    pair: str = ""


@dataclass(frozen=True)
class JudgeLabels:
    """The questions of a file that have a right answer, and how many have none because people disagree."""

    rows: tuple[JudgeLabel, ...]
    disputed: int = 0
    raters: Mapping[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CalibrationPlan:
    """What is measured besides agreement."""

    repeats: int = 1  # times that every question is asked
    positions: bool = False  # ask every question with its options in both orders
    blinded: int = 0  # times that every question is asked about another clip's frames
    seed: int = 0  # of the shuffles


class RepeatedJudge(Judge):
    """A judge whose answers have other keys, so that it is asked again and not looked up; whoever made it closes it."""

    def __init__(self, judge: Judge, time: int) -> None:
        self._judge, self.batch = judge, judge.batch
        self.facts: Mapping[str, object] = {**judge.facts, "asked_again": time}

    def check(self) -> None:
        self._judge.check()

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        return self._judge.reply(frames, questions, notes)


def calibration_report(
    judge: Judge, labels: JudgeLabels, look: Look, ask: Ask, plan: CalibrationPlan
) -> dict[str, Any]:
    """The report on a judge: agreement, stability and biases, as plain numbers."""
    rows = labels.rows
    frames = {clip: look(clip) for clip in dict.fromkeys(label.clip for label in rows)}
    own = [frames[label.clip] for label in rows]
    with ask(judge) as client:
        answers = _ask_each_about_its_frames(client, own, [label.question for label in rows])
        report: dict[str, Any] = {
            "judge": dict(judge.facts),
            "clips": len(frames),
            "disputed": labels.disputed,
            "people": _agreement_between_raters(labels),
            **_agreement_overall_and_by_subset(rows, answers),
            "polarity": _yes_bias_and_polarity_scores(rows, answers),
        }
        if plan.positions:
            report["position"] = _measure_option_order_bias(client, rows, own)
        if plan.blinded:
            report["blinded"] = _agreement_on_shuffled_clips(client, rows, frames, plan)
        if plan.repeats > 1:
            report["repeats"] = _stability_of_repeated_answers(judge, rows, own, answers, ask, plan.repeats)
    return report


def _ask_each_about_its_frames(
    client: JudgeClient, frames: Sequence[Frames], questions: Sequence[Question]
) -> list[JudgeAnswer]:
    """The answers to questions about frames each, those about the same frames together."""
    under_way: dict[int, Future[JudgeAnswer]] = {}
    for group in group_items(range(len(frames)), lambda k: frames[k].digest).values():
        futures = client.submit_questions(frames[group[0]], [questions[k] for k in group])
        under_way |= zip(group, futures, strict=True)
    return [under_way[k].result() for k in range(len(questions))]


def _agreement_overall_and_by_subset(rows: Sequence[JudgeLabel], answers: Sequence[JudgeAnswer]) -> dict[str, object]:
    """Counts and agreement, in all and per subset."""
    subsets = group_items((k for k, row in enumerate(rows) if row.subset), lambda k: rows[k].subset)
    return {
        **_counts_and_agreement_by_form(rows, answers),
        "subsets": {
            name: _counts_and_agreement_by_form([rows[k] for k in some], [answers[k] for k in some])
            for name, some in subsets.items()
        },
    }


def _counts_and_agreement_by_form(rows: Sequence[JudgeLabel], answers: Sequence[JudgeAnswer]) -> dict[str, object]:
    """Counts of what was answered, and agreement by the form of the questions; no form is mixed with another."""
    answered = [(row, answer.value) for row, answer in zip(rows, answers, strict=True) if _is_answered(answer)]
    scores: dict[str, object] = {
        "questions": len(rows),
        "answered": len(answered),
        "unanswered": sum(answer.status == "unanswered" for answer in answers),
        "failed": sum(answer.status == "failed" for answer in answers),
        "with_p_yes": sum(answer.p_yes is not None for answer in answers),
    }
    forms = (YesNo, Rating, Choice)
    by_form = {form: [pair for pair in answered if isinstance(pair[0].question.schema, form)] for form in forms}
    values = {form: [value for _, value in some] for form, some in by_form.items()}
    right = {form: [row.right for row, _ in some] for form, some in by_form.items()}
    if by_form[YesNo]:
        # The answer to a question for the opposite is turned round: else a fact that nearly always holds would look
        # like as many yeses as noes, and 0.5 would not be chance.
        turned = [row.polarity == "negative" for row, _ in by_form[YesNo]]
        answers_of_facts, truth_of_facts = (
            [value != flip for value, flip in zip(column, turned, strict=True)]
            for column in (values[YesNo], right[YesNo])
        )
        scores["yes_no"] = yes_no_agreement(answers_of_facts, truth_of_facts)
    if by_form[Rating]:
        off = [value - wanted for value, wanted in zip(values[Rating], right[Rating], strict=True)]
        scores["ratings"] = {
            "n": len(off),
            "exact": _share_of_true([x == 0 for x in off]),
            "within_one": _share_of_true([abs(x) <= 1 for x in off]),
            "mean_difference": statistics.fmean(off),
            "kappa_linear": cohen_kappa(values[Rating], right[Rating], "linear"),
            "kappa_quadratic": cohen_kappa(values[Rating], right[Rating], "quadratic"),
        }
    if by_form[Choice]:
        accuracy = _share_of_true(
            [value == wanted for value, wanted in zip(values[Choice], right[Choice], strict=True)]
        )
        kappa = cohen_kappa(values[Choice], right[Choice])
        scores["choices"] = {"n": len(values[Choice]), "accuracy": accuracy, "kappa": kappa}
    return scores


def _agreement_between_raters(labels: JudgeLabels) -> dict[str, float] | None:
    """How far people agree with each other on what several of them labelled; None where one person did all."""
    agreement = unanimous_and_pairwise_agreement(list(labels.raters.values()))
    if agreement is None:
        return None
    return {"questions": len(labels.raters), "always_alike": agreement[0], "pairs_alike": agreement[1]}


def _yes_bias_and_polarity_scores(
    rows: Sequence[JudgeLabel], answers: Sequence[JudgeAnswer]
) -> dict[str, float | None]:
    """How much more often the judge says yes than is right, and how often it contradicts itself on a pair."""
    answered = zip(rows, answers, strict=True)
    plain = [(row, one.value) for row, one in answered if _is_answered(one) and isinstance(row.question.schema, YesNo)]
    figures: dict[str, float | None] = {"n": len(plain)}
    if plain:
        said_yes = sum(value for _, value in plain) / len(plain)
        right_yes = sum(row.right for row, _ in plain) / len(plain)
        figures |= {"said_yes": said_yes, "right_yes": right_yes, "yes_bias": said_yes - right_yes}
    for polarity in ("positive", "negative"):
        agrees = [value == row.right for row, value in plain if row.polarity == polarity]
        figures[f"{polarity}_accuracy"] = _share_of_true(agrees)
    pairs: dict[tuple[Path, str], dict[str, bool]] = defaultdict(dict)
    for row, value in plain:
        if row.pair and row.polarity:
            pairs[row.clip, row.pair][row.polarity] = value
    complete = [tuple(answers_of_pair.values()) for answers_of_pair in pairs.values() if len(answers_of_pair) == 2]
    both_yes, both_no = complete.count((True, True)), complete.count((False, False))
    return {**figures, "pairs": len(complete), "both_yes": both_yes, "both_no": both_no}


def _measure_option_order_bias(
    client: JudgeClient, rows: Sequence[JudgeLabel], frames: Sequence[Frames]
) -> dict[str, float | None]:
    """How often a choice changes with the order of the options, and how often it is the first one named."""
    options = [_options_of_choice_or_yes_no(row.question) for row in rows]
    asked = [(row.question, shown, order) for row, shown, order in zip(rows, frames, options, strict=True) if order]
    answers = []
    for step in (1, -1):
        questions = [replace(question, schema=Choice(order[::step])) for question, _, order in asked]
        answers.append(_ask_each_about_its_frames(client, [shown for _, shown, _ in asked], questions))
    pairs = [
        (order, str(one.value), str(other.value))
        for (_, _, order), one, other in zip(asked, *answers, strict=True)
        if _is_answered(one) and _is_answered(other)
    ]
    first = [one == order[0] for order, one, _ in pairs] + [other == order[-1] for order, _, other in pairs]
    return {
        "questions": len(asked),
        "answered": len(pairs),
        "changed": _share_of_true([one != other for _, one, other in pairs]),
        # Each question was asked in both orders: a judge who does not mind the order takes the first half of the time.
        "first_share": _share_of_true(first),
    }


def _share_of_true(flags: Sequence[bool]) -> float | None:
    """How many of them hold, of all; None of none."""
    return sum(flags) / len(flags) if flags else None


def _options_of_choice_or_yes_no(question: Question) -> tuple[str, ...]:
    if isinstance(question.schema, Choice):
        return question.schema.options
    return ("yes", "no") if isinstance(question.schema, YesNo) else ()


def _is_answered(answer: JudgeAnswer) -> bool:
    return answer.status == "answered"


def _agreement_on_shuffled_clips(
    client: JudgeClient, rows: Sequence[JudgeLabel], frames: Mapping[Path, Frames], plan: CalibrationPlan
) -> dict[str, object]:
    """Agreement where every question is asked about the frames of a clip drawn at random."""
    draws, every, answers = random.Random(plan.seed), list(rows) * plan.blinded, list[JudgeAnswer]()
    for _ in range(plan.blinded):
        clips = list(frames)
        shuffled = dict(zip(clips, draws.sample(clips, len(clips)), strict=True))
        of_others = [frames[shuffled[row.clip]] for row in rows]
        answers += _ask_each_about_its_frames(client, of_others, [row.question for row in rows])
    return {"shuffles": plan.blinded, **_agreement_overall_and_by_subset(every, answers)}


def _stability_of_repeated_answers(
    judge: Judge,
    rows: Sequence[JudgeLabel],
    frames: Sequence[Frames],
    first: Sequence[JudgeAnswer],
    ask: Ask,
    times: int,
) -> dict[str, float | None]:
    """How stable the answers are when every question is asked several times."""
    rounds = [first]
    for time in range(1, times):
        with ask(RepeatedJudge(judge, time)) as client:
            rounds.append(_ask_each_about_its_frames(client, frames, [row.question for row in rows]))
    by_question = list(zip(*rounds, strict=True))
    values = [[str(a.value) for a in answers if _is_answered(a)] for answers in by_question]
    always_alike, pairs_alike = unanimous_and_pairwise_agreement(values) or (None, None)
    chances = [[a.p_yes for a in answers if a.p_yes is not None] for answers in by_question]
    spread = max((max(some) - min(some) for some in chances if len(some) == times), default=None)
    return {"times": times, "always_alike": always_alike, "pairs_alike": pairs_alike, "largest_p_yes_spread": spread}


def load_judge_labels(path: Path) -> JudgeLabels:
    """The labels of a CSV or JSON lines file."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected labels as .csv or .jsonl")
    with convert_read_errors(path, "a file of labels"):
        text = path.read_text(encoding="utf-8-sig")
        is_csv = path.suffix.lower() == ".csv"
        rows = list(enumerate(csv_dict_reader(text), 2) if is_csv else parse_numbered_json_lines(text))
        if not rows:
            raise UsageError(f"{path}: no labels found; expected rows with clip, question and label")
        every = [_parse_label_row(row, path, number) for number, row in rows]
    groups = group_items(every, lambda label: (str(label.clip), label.question.digest))
    rows_with_answer: list[JudgeLabel] = []
    for labels in groups.values():
        right = most_frequent_vote([label.right for label in labels])
        rows_with_answer += [label for label in labels if right is not None and label.right == right][:1]
    raters = {key: tuple(label.right for label in labels) for key, labels in groups.items() if len(labels) > 1}
    return JudgeLabels(tuple(rows_with_answer), len(groups) - len(rows_with_answer), raters)


def _parse_label_row(row: Any, path: Path, number: int) -> JudgeLabel:
    where = f"{path}, line {number}"
    if not isinstance(row, dict):
        raise UsageError(f"{where}: expected a JSON object with clip, question and label")
    values = {str(name).strip(): value for name, value in row.items() if value not in (None, "")}
    missing = [name for name in ("clip", "question", "label") if name not in values]
    unknown = sorted(set(values) - set(KNOWN))
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"unknown column {unknown[0]!r}"
        raise UsageError(f"{where}: {what}; the columns are {', '.join(KNOWN)}")
    polarity = str(values.get("polarity", ""))
    if polarity not in ("", "positive", "negative"):
        raise UsageError(f"{where}: polarity must be positive or negative, not {polarity!r}")
    about = values.get("about", {})
    if not isinstance(about, dict):
        raise UsageError(f"{where}: `about` must be a JSON object, which is only possible in a .jsonl file")
    try:
        schema = schema_from_form(str(values.get("form", "yes-no")))
        right = schema.check(values["label"])
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    except Malformed as error:
        raise UsageError(f"{where}: the label does not fit the form: {error}") from None
    question = Question(f"label.{number}", str(values["question"]).strip(), schema, about)
    subset, pair = str(values.get("subset", "")), str(values.get("pair", ""))
    return JudgeLabel(path.parent / str(values["clip"]), question, right, subset, polarity, pair)
