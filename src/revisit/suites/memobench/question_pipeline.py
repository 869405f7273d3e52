"""The question pipeline: from a prompt and a first frame to the questions that a clip is scored with.

A judge writes questions, answers them about the true clip and about one that is known to fail, and those that the
filters of `banks` leave go to a person (docs/memobench-vqa.md). A question without a valid answer is dropped, never a
no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from revisit.core import Clip, MediaError, RevisitError, UsageError
from revisit.datasets.clips import first_file
from revisit.evidence.judged import NO, UNANSWERED, YES, BankQuestion, entry_question_number
from revisit.judges.banks import judge_questions_of_bank, yes_no_code
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames
from revisit.media.text_files import csv_dict_reader, csv_text
from revisit.suites.memobench import question_bank
from revisit.suites.memobench.ground_truth import MemoBenchDataset
from revisit.suites.memobench.metadata import prompt_from_metadata_or_sheet
from revisit.suites.memobench.names import ClipName, parse_clip_name
from revisit.suites.memobench.questions import (
    ask_all_questions_in_one_table,
    judge_answers_from_table,
    question_writing_request,
    questions_from_written_answer,
)

CHECKS = ("unambiguous", "right_polarity", "answerable")
SHEET = ("ID", "Dimension", "Polarity", "Question", "Ground truth", "Failure", "Failure with hint", *CHECKS)
WORDS = {YES: "yes", NO: "no", UNANSWERED: ""}
ROUNDS = 3  # in which a judge may write questions, until every dimension has enough


@dataclass(frozen=True)
class BankTask:
    """A clip of the dataset that questions are wanted for."""

    name: ClipName
    truth: Clip
    prompt: str
    failure: Path | None = None
    hint: str = ""


def make_bank_tasks(
    data: MemoBenchDataset, metadata: Mapping[ClipName, Mapping[str, str]], failures: Path | None = None
) -> tuple[list[BankTask], list[str]]:
    """The clips of a dataset with their prompts, and a sentence for each that nothing can be asked about.

    `failures` is a folder with failure-cases.csv, which tells what is wrong with which clip, and with these clips:
    `<clip>.mp4`, or `<...>_Failure_<NNN>.mp4` as the public script names them.
    """
    hints: dict[ClipName | None, str] = {}
    if failures is not None:
        path = failures / "failure-cases.csv"
        if not path.is_file():
            raise UsageError(f"{failures}: it has no failure-cases.csv, which says what is wrong with each clip")
        hints = {parse_clip_name(clip): hint for clip, hint in question_bank.read_failure_hints(path).items()}
    marks = data.marks
    tasks, left_out = [], []
    for name in sorted(marks.keys() or data.clip_names):
        truth = data.true_clip_or_problem(name)
        prompt = prompt_from_metadata_or_sheet(metadata.get(name, {}), marks.get(name))
        if not isinstance(truth, str) and not prompt:
            truth = "neither the metadata nor the sheet has its prompt"
        if isinstance(truth, str):
            left_out.append(f"{name.title}: {truth}")
            continue
        task = BankTask(name, truth.clip, prompt)
        if failures is not None and name in hints:
            if clip := _find_failure_clip(failures, name):
                task = replace(task, failure=clip, hint=hints[name])
            else:
                left_out.append(
                    f"{name.title}: its failure clip is not in {failures}; questions are filtered on the true clip only"
                )
        tasks.append(task)
    return tasks, left_out


def _find_failure_clip(folder: Path, name: ClipName) -> Path | None:
    places = [folder / f"{stem}.mp4" for stem in name.spellings]
    return first_file([*places, *sorted(folder.glob(f"{name.scene or name.subset}*_Failure_{name.number:03d}.mp4"))])


def make_question_bank(
    client: JudgeClient,
    task: BankTask,
    first: Frames,
    truth: Frames,
    failure: Frames | None,
    wording: Mapping[str, str],
) -> question_bank.Bank:
    """The bank of one clip, made by a judge; with `wording` in the user's own words, all questions in one call.

    The judge sees the clip's first frame, the true clip, and one that is known to fail, if there is. Later rounds add
    only questions of the dimensions that are short of them.
    """
    bank = question_bank.Bank(task.name.bank_scene, task.name.number, (), (), (), (), ())
    for _ in range(ROUNDS):
        missing = question_bank.thin_dimensions(bank.final)
        if not missing:
            break
        earlier = [question.text for question in bank.start]
        request = question_writing_request(task.prompt, earlier, wording.get("questions", ""))
        (answer,) = client.ask(first, [request])
        if answer.status != "answered":
            raise RevisitError(f"the judge wrote no valid list of questions: {answer.reason}")
        offset = max((question.id for question in bank.start), default=0)
        written = questions_from_written_answer(answer.value)
        new = tuple(replace(one, id=one.id + offset) for one in written if one.dimension in missing)
        stages = {"truth": judge_and_drop_unanswered(client, truth, new, wording)}
        final = question_bank.ground_truth_filter(new, stages["truth"])
        if failure is not None:
            stages["failure"] = judge_and_drop_unanswered(client, failure, final, wording)
            stages["hinted"] = judge_and_drop_unanswered(client, failure, final, wording, task.hint)
            final = question_bank.failure_filter(final, stages["failure"], stages["hinted"])
        for name, added in {"start": new, **stages, "final": final}.items():
            bank = replace(bank, **{name: getattr(bank, name) + added})
    return bank


def judge_and_drop_unanswered(
    client: JudgeClient,
    frames: Frames,
    questions: Sequence[BankQuestion],
    wording: Mapping[str, str],
    hint: str = "",
) -> tuple[question_bank.Judgement, ...]:
    """The judge's answers about one clip, by polarity; questions without a valid answer are left out."""
    words = wording.get("hinted" if hint else "judge")
    if words and questions:  # in one table, whose reasoning is kept
        answers = client.ask(frames, [ask_all_questions_in_one_table(questions, words, hint=hint)])
        rows = answers[0].value if answers[0].status == "answered" else []
        reasons = {entry_question_number(row): str(row.get("Reasoning", "")) for row in rows if isinstance(row, dict)}
        codes = judge_answers_from_table(questions, answers[0]).answer.tolist()
    else:
        hinted = f"Somebody who knows this video says that something is wrong with it: {hint.strip()}\n" if hint else ""
        answers = client.ask(frames, judge_questions_of_bank(questions, hinted))
        reasons = {
            question.id: "" if answer.p_yes is None else f"p_yes {answer.p_yes:.3f}"
            for question, answer in zip(questions, answers, strict=True)
        }
        codes = [yes_no_code(answer) for answer in answers]
    if failed := next((answer for answer in answers if answer.status == "failed"), None):
        raise RevisitError(f"the questions could not be asked: {failed.reason}")
    return tuple(
        question_bank.Judgement(one, code, code == (YES if one.positive else NO), reasons.get(one.id, ""))
        for one, code in zip(questions, codes, strict=True)
        if code != UNANSWERED
    )


def review_sheet_csv(bank: question_bank.Bank) -> str:
    """A CSV for a person: each final question, what the judge said of the clips, and three checks to fill in."""

    rows = []
    for question in bank.final:
        polarity = "positive" if question.positive else "negative"
        stages = ({one.question.id: one.answer for one in stage} for stage in (bank.truth, bank.failure, bank.hinted))
        answers = [WORDS[stage.get(question.id, UNANSWERED)] for stage in stages]
        rows.append([question.id, question.dimension, polarity, question.text, *answers, *("" for _ in CHECKS)])
    return csv_text(SHEET, rows)


def parse_review_sheet(text: str) -> dict[int, bool]:
    """Whether a person said yes to all checks of a question in a sheet; rows without any are not reviewed."""
    reviews = {}
    for row in csv_dict_reader(text):
        checks = [(row.get(name) or "").strip().lower() for name in CHECKS]
        if not any(checks):
            continue
        number = (row.get("ID") or "").strip()
        if not number.isdecimal() or any(word not in ("yes", "no") for word in checks):
            raise MediaError(f"question {number or '?'} of the sheet: fill in yes or no under {', '.join(CHECKS)}")
        reviews[int(number)] = all(word == "yes" for word in checks)
    return reviews
