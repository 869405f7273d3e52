"""A judge on a plain folder: questions that fit any clip, the user's own, or a sentence that nothing is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from revisit.core import SUITES, UsageError
from revisit.engine.request import Request, idle_judge_warning
from revisit.evidence.judged import bank_digest
from revisit.judges.banks import bank_questions_from_rows
from revisit.suites.folder.questions import QUESTIONS, read_own_questions
from revisit.suites.wrbench.questions import PROBES
from tests.judging import completion, question_of, sees_cards, serving

RETURN = QUESTIONS[0].text


def test_built_in_questions_have_the_form_of_a_users_own_and_the_digests_of_recorded_answers() -> None:
    with as_file(files("revisit.suites.folder") / "questions.yaml") as path:
        assert bank_questions_from_rows(read_own_questions(path)) == QUESTIONS
    assert (bank_digest(QUESTIONS), bank_digest(PROBES)) == ("995fd04da39e", "27c5a084cff8")


def test_a_folder_asks_its_questions_of_a_judge(
    tmp_path: Path, make_clip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clips: the judge sees a return in one of them only, and says yes to everything else."""
    for model, seed in (("one", 1), ("two", 2)):
        make_clip(tmp_path / f"videos/{model}/s.mp4", count=12, seed=seed)
    (tmp_path / "own.yaml").write_text(
        '- {text: "Is there a cup?", answer: yes, dimension: cup}\n- {text: "Is it raining?", answer: no}\n'
    )
    heard: list[str] = []

    def answer(body: dict[str, Any]) -> Any:
        card = sees_cards(body)
        if card is None:
            heard.append(question_of(body))
        returns = sum(RETURN in text for text in heard)
        no = RETURN in question_of(body) and returns == 2
        return completion("no" if no or card is False else "yes")

    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "cache"))
    with serving(answer) as server:
        judge = tmp_path / "judge.yaml"
        judge.write_text(f"url: {server.url}\nmodel: scripted-vlm\nconcurrency: 1\n")
        request = Request.from_options(
            tmp_path / "videos", judge=str(judge), options=[f"questions={tmp_path / 'own.yaml'}"],
            metrics=["judged_memory", "judged_own"], truth=False,
        )  # fmt: skip
        run = request.run(tmp_path / "run", workers=0)
    scores: dict[str, list[Any]] = {record.question: [] for record in run.results.records}
    for record in run.results.records:
        scores[record.question].append((record.value, record.reason.kind if record.reason else ""))
    assert sorted(scores["judged_memory"], key=str) == [(0.5, ""), (None, "gate_closed")]  # yes passes half of them
    assert scores["judged_own"] == [(0.5, "")] * 2
    assert sum(any(one.text in text for one in QUESTIONS[1:]) for text in heard) == len(QUESTIONS) - 1


def test_without_questions_it_says_that_it_asks_nothing(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    make_clip(tmp_path / "videos/one/s.mp4", count=12)
    (tmp_path / "answers.jsonl").write_text("")
    judge = {"judge": "replay", "model": "m"}
    asked = Request.from_options(tmp_path / "videos", metrics=["flicker"]).plan(judge=judge)
    assert idle_judge_warning(asked) == "the judge is asked nothing; -m judged_memory,judged_own would ask it"
    everything = Request.from_options(tmp_path / "videos").plan(judge=judge)
    assert idle_judge_warning(everything) == "" and {"judged_memory", "judged_own"} <= {
        m.id for m in everything.metrics
    }
    without = Request.from_options(tmp_path / "videos").plan()
    assert idle_judge_warning(without) == "" and [m.id for m in without.metrics] == list(SUITES["folder"].metrics())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text: x", "expected a list"),
        ("[]", "expected a list"),
        ("- {text: x, answer: maybe}", "question 1 needs a text and the right answer"),
        ("- {answer: yes}", "question 1 needs"),
        ("- {text: x, answer: no, weight: 2}", "has 'weight'"),
        ("- [", "neither YAML nor JSON"),
    ],
)
def test_a_file_of_questions_that_is_none_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "own.yaml").write_text(content)
    with pytest.raises(UsageError, match=said):
        read_own_questions(tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text(json.dumps([{"text": " Is it? ", "answer": "no"}]))
    assert read_own_questions(tmp_path / "own.yaml") == [{"text": "Is it?", "answer": "no", "dimension": "all"}]
