"""MemoBench's questions: the published bank, its filters and contradictions, and what broken answers score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import InvalidEvidence, MediaError, Score, Unscored, UsageError, from_arrays, to_arrays
from revisit.evidence.judged import (
    NO,
    UNANSWERED,
    YES,
    BankQuestion,
    JudgeAnswers,
    find_json_in_reply,
    judge_answers_from_entries,
    parse_yes_or_no,
)
from revisit.suites.memobench.cases import find_judge_answer_file
from revisit.suites.memobench.imports import read_answer_entries, vqa_answers
from revisit.suites.memobench.metrics.answers import DIMENSIONS, score_pass_rate, upstream_pass_rates, vqa_cm, vqa_if
from revisit.suites.memobench.names import parse_clip_name
from revisit.suites.memobench.question_bank import (
    STAGES,
    Bank,
    failure_filter,
    find_bank_file,
    ground_truth_filter,
    questions_as_dicts,
    read_bank,
    read_failure_hints,
    review_filter,
    thin_dimensions,
    write_bank,
)
from tests.memo import clip_folder_of_bank, name_of_bank

IF, CM = DIMENSIONS["if"], DIMENSIONS["cm"]
QUESTIONS = (
    BankQuestion(1, IF, True, "Does the camera turn away?"),
    BankQuestion(2, IF, False, "Does the camera stand still?"),
    BankQuestion(3, IF, True, "Does the camera come back?"),
    BankQuestion(7, CM, False, "Is the dog gone when the camera comes back?"),
)
PERFECT: list[dict[str, Any]] = [
    {"ID": 1, "Answer": "Yes"},
    {"ID": 2, "Answer": "No"},
    {"ID": 3, "Answer": "Yes"},
    {"ID": 7, "Answer": "No"},
]


def judged(bank: Bank, stage: str) -> JudgeAnswers:
    """The answers of one stage to the final questions, as evidence: what the metrics score."""
    final = {question.id for question in bank.final}
    said = [one for one in getattr(bank, stage) if one.question.id in final]
    entries = [{**one.question.as_public_bank_row(), "Answer": "Yes" if one.answer == YES else "No"} for one in said]
    return judge_answers_from_entries(bank.final, entries, judge=f"published bank, {stage}")


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "memobench/vqa_questions"


@pytest.fixture(scope="module")
def banks(folder: Path) -> list[Bank]:
    return [read_bank(path) for path in sorted(folder.glob("*-questions.csv"))]


@pytest.fixture(scope="module")
def oracle(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((shared / "oracle/memobench/oracle.json").read_text())
    return content


def answers(*entries: dict[str, Any], questions: Sequence[BankQuestion] = QUESTIONS) -> JudgeAnswers:
    return judge_answers_from_entries(questions, entries, judge="test")


def score(found: JudgeAnswers, rule: str = "corrected") -> Score:
    made = vqa_if(found, rule=rule)
    assert isinstance(made, Score), made
    return made


# the published bank


@dataclass(frozen=True)
class Contradiction:
    """A written verdict that its answer and polarity do not give."""

    key: str
    stage: str  # of STAGES
    id: int
    positive: bool
    answer: int
    verdict: bool

    def __str__(self) -> str:
        polarity = "positive" if self.positive else "negative"
        answer, verdict = "Yes" if self.answer == YES else "No", "Pass" if self.verdict else "Fail"
        return f"{self.key}, {self.stage}, question {self.id}: {polarity}, answered {answer}, written verdict {verdict}"


def rebuilt(bank: Bank) -> tuple[BankQuestion, ...]:
    """The final questions as the two automatic filters give them."""
    return failure_filter(ground_truth_filter(bank.start, bank.truth), bank.failure, bank.hinted)


def contradictions(bank: Bank) -> list[Contradiction]:
    """Every written verdict that contradicts its answer and polarity."""
    polarity = {question.id: question.positive for question in bank.start}
    return [
        Contradiction(
            name_of_bank(bank), stage, judged.question.id, judged.question.positive, judged.answer, judged.verdict
        )
        for stage in STAGES
        for judged in getattr(bank, stage)
        if judged.verdict != (judged.answer == (YES if polarity[judged.question.id] else NO))
    ]


def telling(bank: Bank) -> tuple[int, ...]:
    """Numbers of the final questions that the true clip passes and the failure clip fails, by polarity."""
    truth = {one.question.id: (one.answer == YES) == one.question.positive for one in bank.truth}
    failure = {one.question.id: (one.answer == YES) == one.question.positive for one in bank.failure}
    return tuple(q.id for q in bank.final if truth.get(q.id, False) and not failure.get(q.id, True))


def test_two_rules_rebuild_every_published_bank(banks: list[Bank]) -> None:
    assert len(banks) == 45
    assert all(rebuilt(bank) == bank.final for bank in banks)
    assert not any(thin_dimensions(bank.final) for bank in banks)


def test_files_are_written_as_they_were_read(folder: Path, banks: list[Bank]) -> None:
    for bank in banks:
        assert write_bank(bank).encode() == (folder / f"{name_of_bank(bank)}-questions.csv").read_bytes()


def test_failure_cases_and_banks_are_of_the_same_clips(folder: Path, banks: list[Bank]) -> None:
    hints = read_failure_hints(folder / "failure-cases.csv")
    assert set(hints) == {clip_folder_of_bank(bank) for bank in banks} and all(hints.values())
    assert all(
        (name := parse_clip_name(clip_folder_of_bank(bank))) and name.question_key == name_of_bank(bank)
        for bank in banks
    )
    assert find_bank_file(folder, "ZenGarden_010") == folder / "Zen_Garden-10-questions.csv"
    assert find_bank_file(folder, "007") is None


def test_the_five_contradictory_verdicts(banks: list[Bank]) -> None:
    found = [contradiction for bank in banks for contradiction in contradictions(bank)]
    assert [(one.key, one.stage, one.id) for one in found] == [
        ("Barnyard-9", "hinted", 17),
        ("Miami-16", "failure", 6),
        ("NYC_East-1", "truth", 3),
        ("OldFactory-20", "truth", 2),
        ("OldFactory-20", "hinted", 2),
    ]
    assert str(found[2]) == "NYC_East-1, truth, question 3: negative, answered Yes, written verdict Pass"
    assert sum(len(getattr(bank, stage)) for bank in banks for stage in STAGES) == 3090


MACRO = {
    "truth": (99.4444, 100.0, 100.0, 100.0),
    "failure": (94.7776, 97.7778, 86.8891, 92.1111),
    "hinted": (94.2220, 97.7778, 86.8891, 92.1111),
}


@pytest.mark.parametrize("stage", STAGES)
def test_macro_scores_of_the_published_answers(banks: list[Bank], stage: str) -> None:
    for rule, tolerance in (("upstream", 5e-5), ("corrected", 3e-4)):  # upstream rounds each clip to 4 decimals
        made = [[score_pass_rate(judged(bank, stage), name, rule) for name in DIMENSIONS.values()] for bank in banks]
        values = np.array([[one.value for one in row if isinstance(one, Score)] for row in made])
        assert values.mean(axis=0) == pytest.approx(MACRO[stage], abs=tolerance)


def test_every_clip_scores_as_the_public_script_scores_it(banks: list[Bank], oracle: dict[str, Any]) -> None:
    expected = oracle["vqa_scores_on_final_questions"]
    for bank in banks:
        for stage, name in (("truth", "gt"), ("failure", "failure"), ("hinted", "revised")):
            rates = upstream_pass_rates(judged(bank, stage), {})
            assert rates == expected[name_of_bank(bank)][name]["polarity_rule"]


def test_counts_of_the_bank_and_what_it_separates(banks: list[Bank]) -> None:
    after_truth = [question for bank in banks for question in ground_truth_filter(bank.start, bank.truth)]
    final = [question for bank in banks for question in bank.final]
    assert (sum(len(bank.start) for bank in banks), len(after_truth), len(final)) == (1080, 1005, 860)
    counts = Counter((question.dimension, question.positive) for question in final)
    assert [counts[name, polarity] for name in DIMENSIONS.values() for polarity in (True, False)] == [
        129, 100, 119, 121, 85, 101, 105, 100,
    ]  # fmt: skip
    # Final questions that tell the failure clip from the true one, and clips that have any.
    assert sum(len(telling(bank)) for bank in banks) == 58
    assert sum(bool(telling(bank)) for bank in banks) == 19


def test_one_text_changes_on_the_way_and_numbers_still_join(banks: list[Bank]) -> None:
    changed = [
        (name_of_bank(bank), one.question.id)
        for bank in banks
        for stage in STAGES
        for one in getattr(bank, stage)
        if one.question.text != {q.id: q.text for q in bank.start}[one.question.id]
    ]
    assert len(changed) == 1


# filters


def test_review_filter_wants_every_question_reviewed() -> None:
    good, bad = True, False
    assert review_filter(QUESTIONS, {1: good, 2: bad, 3: good, 7: good}) == (
        QUESTIONS[0], QUESTIONS[2], QUESTIONS[3],
    )  # fmt: skip
    with pytest.raises(MediaError, match="question 3, 7 has no review"):
        review_filter(QUESTIONS, {1: good, 2: bad})
    assert thin_dimensions(QUESTIONS) == {
        "Object and Background": 0,
        "Continuity of Memory": 1,
        "Physics Adherence": 0,
    }


def test_banks_with_faults_are_refused_in_a_sentence(tmp_path: Path, banks: list[Bank]) -> None:
    text = write_bank(banks[0])
    before, _, after = text.rpartition('""ID"": 1,')
    last_id_99 = f'{before}""ID"": 99,{after}'
    faults = {
        "no column video_id": text.replace("video_id", "number", 1),
        "0 rows of data": text.partition("\r\n")[0] + "\r\n",
        "Final questions is not JSON": text.partition('"[')[0] + '"[]","[]","[]","[]",oops\r\n',
        "ID in Start Questions is 'x'": text.replace('""ID"": 1,', '""ID"": ""x"",', 1),
        "expected Positive, Negative": text.replace("Negative", "Neutral", 1),
        "Start Questions has question 1 more than once": text.replace('""ID"": 2,', '""ID"": 1,', 1),
        "Final questions has question 99, which Start Questions does not have": last_id_99,
        "Verdict is 'Maybe'; expected Pass, Fail": text.replace('""Verdict"": ""Pass""', '""Verdict"": ""Maybe""', 1),
        "Dimension is 'Style'": text.replace("Physics Adherence", "Style", 1),
    }
    path = tmp_path / "Barnyard-1-questions.csv"
    for sentence, content in faults.items():
        path.write_bytes(content.encode())
        with pytest.raises(MediaError, match=sentence) as error:
            read_bank(path)
        assert str(error.value).startswith("Barnyard-1-questions.csv: ")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MediaError, match="UTF-8"):
        read_bank(path)


# answers


def test_perfect_answers_score_100_and_survive_the_cache() -> None:
    found = answers(*PERFECT)
    assert found.problems == ()
    assert [found.answer.tolist(), score(found).value] == [[YES, NO, YES, NO], 100.0]
    assert score(found).facts["interval"] == [100.0, 100.0]
    again = from_arrays(JudgeAnswers, to_arrays(found))
    assert again.dimension == found.dimension
    assert again.text == found.text
    assert (again.answer == found.answer).all()
    assert np.isnan(again.p_yes).all()


def test_numbers_as_text_do_not_turn_negative_questions_round() -> None:
    found = answers(*({**entry, "ID": f" {entry['ID']} ", "Dimension": IF} for entry in PERFECT[:3]))
    assert score(found).value == 100.0
    # The public script looks up "2", finds nothing and takes the question for a positive one.
    assert score(found, "upstream").value == pytest.approx(66.67)


@pytest.mark.parametrize("written", ["Yes.", "**Yes**", " yes ", '"YES"', "Yes!", True])
def test_a_yes_with_punctuation_is_a_yes(written: object) -> None:
    assert parse_yes_or_no(written) == YES


@pytest.mark.parametrize("written", ["", "N/A", "yes and no", "unclear", None, 1, "nope", ["Yes"]])
def test_anything_else_is_no_answer(written: object) -> None:
    assert parse_yes_or_no(written) == UNANSWERED


def test_punctuation_fails_both_ways_upstream_and_does_not_here() -> None:
    found = answers(*({**entry, "Answer": entry["Answer"] + ".", "Dimension": IF} for entry in PERFECT[:3]))
    assert (score(found).value, score(found, "upstream").value) == (100.0, 0.0)


def test_the_column_that_the_public_prompt_asks_for_is_read() -> None:
    entries = [{"ID": e["ID"], "Dimension": IF, "Answer (Yes/No)": e["Answer"]} for e in PERFECT[:3]]
    assert (score(answers(*entries)).value, score(answers(*entries), "upstream").value) == (100.0, 0.0)


def test_missing_answers_are_counted_and_are_not_a_no() -> None:
    found = answers({"ID": 1, "Answer": "No", "Dimension": IF}, {"ID": 2, "Answer": "No", "Dimension": IF})
    made = score(found)
    assert made.value == 50.0
    assert made.facts["unanswered"] == [3]
    assert (made.facts["asked"], made.facts["answered"], made.facts["passed"]) == (3, 2, 1)
    assert made.facts["interval"] == pytest.approx([100 / 3, 200 / 3])
    assert made.facts["failed"] == [1]
    assert made.units is not None
    assert made.units["question"].tolist() == [1, 2]
    assert "question 3 was not answered" in found.problems
    assert score(found, "upstream").value == 50.0  # there too an omitted question shrinks the denominator
    unscored = vqa_cm(found)
    assert isinstance(unscored, Unscored)
    assert unscored.kind == "unanswered"
    assert unscored.facts["interval"] == [0.0, 100.0]


def test_duplicates_count_once_and_contradicting_ones_not_at_all() -> None:
    same = answers(*({**entry, "Dimension": IF} for entry in [*PERFECT[:3], PERFECT[0]]))
    assert score(same).facts["asked"] == 3
    assert "question 1 has 2 equal answers; they count once" in same.problems
    both = [
        {"ID": 1, "Answer": "Yes", "Dimension": IF},
        {"ID": 1, "Answer": "No", "Dimension": IF},
        {"ID": 2, "Answer": "Yes", "Dimension": IF},
    ]
    found = answers(*both)
    assert found.answer.tolist() == [UNANSWERED, YES, UNANSWERED, UNANSWERED]
    assert score(found).value == 0.0
    assert score(found, "upstream").value == pytest.approx(33.33)


def test_unknown_numbers_and_echoed_dimensions_do_not_count() -> None:
    found = answers(*PERFECT, {"ID": 99, "Answer": "No"}, {"Answer": "No"}, "prose", {"ID": True, "Answer": "No"})  # type: ignore[arg-type]
    assert score(found).value == 100.0
    assert len(found.problems) == 4
    moved = answers({"ID": 1, "Answer": "Yes", "Dimension": "Memory"})
    assert score(moved).facts["answered"] == 1
    assert "the bank's dimension counts" in moved.problems[0]
    lost = vqa_if(moved, rule="upstream")
    assert isinstance(lost, Unscored)
    assert lost.kind == "unanswered"
    stops = vqa_if(answers({"ID": 1, "Answer": "Yes"}), rule="upstream")
    assert isinstance(stops, Unscored)
    assert stops.kind == "refused" and "entry 1" in stops.sentence


def test_a_probability_of_yes_gives_an_expected_rate() -> None:
    entries = [{"ID": q.id, "Answer": "Yes", "p_yes": 0.75} for q in QUESTIONS]
    made = score(answers(*entries))
    assert made.facts["expected"] == pytest.approx(100 * (0.75 + 0.25 + 0.75) / 3)
    assert "expected" not in score(answers(*PERFECT)).facts
    assert "expected" not in score(answers({"ID": 1, "Answer": "Yes", "p_yes": 7})).facts


def test_a_judge_without_a_list_of_its_own_scores_alike_under_upstream() -> None:
    found = replace(answers(*PERFECT[:2]), reply="")
    assert score(found, "upstream").value == 100.0


def test_a_judge_that_failed_its_control_question_is_not_scored() -> None:
    found = replace(answers(*PERFECT), reply="", canary="it read a word that is not there")
    made = vqa_if(found)
    assert isinstance(made, Unscored)
    assert made.kind == "untrusted" and "it read a word that is not there" in made.sentence
    assert made.facts["answered"] == 3
    assert score(found, "upstream").value == 100.0  # the public script asks no control questions
    assert score(replace(found, canary="passed")).value == 100.0


def test_evidence_that_cannot_be_is_refused() -> None:
    found = answers(*PERFECT)
    for wrong, sentence in (
        ({"answer": np.array([1, 0])}, "Q is 4"),
        ({"answer": np.array([1, 0, 2, 0])}, "between -1 and 1"),
        ({"question": np.array([1, 1, 2, 3])}, "has a duplicate"),
        ({"p_yes": np.array([1.5, 0, 0, 0])}, "between 0 and 1"),
    ):
        with pytest.raises(InvalidEvidence, match=sentence):
            replace(found, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown rule 'fast'"):
        vqa_if(found, rule="fast")
    assert isinstance(score_pass_rate(found, "Physics Adherence", "corrected"), Unscored)


# replies and files


def test_json_in_replies(oracle: dict[str, Any]) -> None:
    for case in oracle["extract_json"]:
        assert find_json_in_reply(case["text"]) == case["expected"]
    assert find_json_in_reply('Here you are: [{"ID": 1}]. Anything else?') == [{"ID": 1}]
    assert find_json_in_reply('Here: [{"ID": 1, "Answer": "No"}] (see [2])') == [{"ID": 1, "Answer": "No"}]
    with pytest.raises(ValueError, match="there is no JSON"):
        find_json_in_reply("I cannot watch videos.")
    with pytest.raises(ValueError, match="two lists or objects"):
        find_json_in_reply('First [{"ID": 1, "Answer": "Yes"}]. No, rather [{"ID": 1, "Answer": "No"}].')


def test_an_entry_with_two_answers_is_unanswered() -> None:
    for reply in (
        '[{"ID": 1, "Answer": "Yes", "Answer": "No"}]',
        '[{"ID": 1, "Answer": "Yes", "Answer (Yes/No)": "No"}]',
        '[{"ID": 1, "Answer": "Yes", "answer": "No"}]',
        '[{"ID": 1, "Answer": "No way to tell"}]',
        '[{"ID": 1, "Answer": "No?"}]',
    ):
        assert judge_answers_from_entries(QUESTIONS[:1], find_json_in_reply(reply), judge="m").answer.tolist() == [
            UNANSWERED
        ]
    twice_alike = '[{"ID": 1, "Answer": "No", "Answer": "No"}]'
    assert judge_answers_from_entries(QUESTIONS[:1], find_json_in_reply(twice_alike), judge="m").answer.tolist() == [NO]


def test_importer_reads_every_format(tmp_path: Path, banks: list[Bank]) -> None:
    import csv

    bank = banks[0]
    entries = [{"ID": one.question.id, "Answer": "Yes" if one.answer else "No"} for one in bank.truth]
    kept = [entry for entry in entries if entry["ID"] in {question.id for question in bank.final}]
    upstream = tmp_path / f"{name_of_bank(bank)}.csv"
    with upstream.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["scene", "video_id", "folder", "Evaluation", "score"])
        writer.writerow([bank.scene, bank.number, clip_folder_of_bank(bank), json.dumps(kept), "{}"])
    (tmp_path / "a.json").write_text(json.dumps({"judge": "a model", "frames": "abc", "answers": kept}))
    (tmp_path / "b.json").write_text("```json\n" + json.dumps(kept) + "\n```")
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(entry) for entry in kept))
    for name in (upstream.name, "a.json", "b.json", "c.jsonl"):
        found = vqa_answers.fn(tmp_path / name, {"questions": questions_as_dicts(bank.final)})
        assert (found.answer == judged(bank, "truth").answer).all()
        assert found.bank == judged(bank, "truth").bank
    named = vqa_answers.fn(tmp_path / "a.json", {"questions": questions_as_dicts(bank.final)})
    assert (named.judge, named.frames) == ("a model", "abc")
    with pytest.raises(MediaError, match="no question bank"):
        vqa_answers.fn(tmp_path / "a.json", {})
    assert find_judge_answer_file(tmp_path.parent, tmp_path.name, clip_folder_of_bank(bank)) == upstream
    assert find_judge_answer_file(tmp_path, "other", clip_folder_of_bank(bank)) == upstream
    assert find_judge_answer_file(tmp_path, "other", "Miami_001") is None


def test_importer_takes_echoed_questions_where_there_is_no_bank(tmp_path: Path) -> None:
    echoed = [
        {"ID": q.id, "Dimension": q.dimension, "Dimension Polarity": "Positive" if q.positive else "Negative", **said}
        for q, said in zip(QUESTIONS, PERFECT, strict=True)
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(echoed))
    assert score(vqa_answers.fn(path, {})).value == 100.0


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.json", "no json here", "x.json: it is not JSON"),
        ("x.json", '{"a": 1}', "it is a dict"),
        ("x.jsonl", '{"ID": 1}\n{"ID"', "it is not JSON"),
        ("x.csv", "a,b\r\n1,2\r\n", "expected one row with the judge's list"),
        ("x.csv", "Evaluation\r\nnothing\r\n", "its Evaluation is not JSON"),
        ("x.csv", 'Evaluation\r\n"{""a"": 1}"\r\n', "its Evaluation is a dict"),
    ],
)
def test_files_that_hold_no_answers_are_refused(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    (tmp_path / name).write_bytes(content.encode())
    with pytest.raises(MediaError, match=sentence):
        vqa_answers.fn(tmp_path / name, {"questions": questions_as_dicts(QUESTIONS)})


def test_files_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(MediaError, match="not a UTF-8 text file"):
        read_answer_entries(tmp_path / "x.json")
