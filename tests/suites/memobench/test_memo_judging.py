"""MemoBench's judge as the public script asks it: banks of a whole dataset, one table per clip, words of one's own."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import METRICS, SUITES, UsageError
from revisit.engine.dependencies import ObserverSet, resolve_parameters
from revisit.engine.plan import make_plan
from revisit.observers.sets import load_roles
from revisit.suites.memobench.names import parse_clip_name
from revisit.suites.memobench.question_bank import find_bank_file, read_bank
from revisit.suites.memobench.questions import read_question_wording, wording_as_yaml, wording_from_repository
from tests.judging import MODEL, question_of, sees_cards, serving
from tests.memo import clip_folder_of_bank
from tests.suites.memobench.test_suite_memobench import FRAMES, generated, make_dataset

DIMENSIONS = ("Instruction Following", "Object and Background", "Continuity of Memory", "Physics Adherence")
# A script with the shape of the public one; its words are not those of the public one.
SCRIPT = '''
MODEL_ID = "x"

def generate_questions(img_path, generation_prompt):
    prompt = f"""
Write questions on: "{generation_prompt}". Columns [ID, Dimension, Dimension Polarity, Question]
"""
    return prompt

def evaluate_video(video_path, questions):
    short = f"{video_path}"
    prompt = f"""
AUDIT this: {questions}
  (columns ID and Question) {{literal}}
"""
    return prompt

def evaluate_video_with_hint(video_path, questions, hint):
    prompt = f"""
AUDIT WITH HINT "{hint}" this: {questions} and more words
"""
    return prompt
'''


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_dataset(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repo/evaluation/vqa"
    place.mkdir(parents=True)
    (place / "llm-vqa.py").write_text(SCRIPT)
    return tmp_path / "repo"


def written(polarities: tuple[str, str] = ("Positive", "Negative")) -> list[dict[str, Any]]:
    return [
        {"id": k + 1, "dimension": DIMENSIONS[k // 6], "polarity": polarities[k % 2].lower(), "question": f"Is it {k}?"}
        for k in range(24)
    ]


def table_of(text: str) -> list[dict[str, Any]]:
    """The questions in a request for a table."""
    start = text.index('[{"ID"')
    return json.JSONDecoder().raw_decode(text, start)[0]


def rows_of(text: str, passing: bool = True) -> list[dict[str, Any]]:
    made = []
    for one in table_of(text):
        positive = one["Dimension Polarity"] == "Positive"
        said = "Yes" if positive == passing else "No"
        made.append({"ID": one["ID"], "Dimension": one["Dimension"], "Answer": said,
                     "Verdict": "Pass" if passing else "Fail", "Reasoning": "it is so"})  # fmt: skip
    return made


def judge(body: dict[str, Any]) -> str:
    """Writes questions, and finds that every clip passes all of them."""
    if (card := sees_cards(body)) is not None:
        return "yes" if card else "no"
    text = question_of(body)
    if "Write yes-or-no questions" in text:
        return json.dumps(written())
    if '[{"ID"' in text:
        return json.dumps(rows_of(text))
    return "Yes" if int(re.search(r"Is it (\d+)", text)[1]) % 2 == 0 else "No"  # type: ignore[index]


def settings(tmp_path: Path, url: str, **more: Any) -> Path:
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps({"url": url, "model": MODEL, "canaries": False, **more}))
    return path


def test_banks_of_a_whole_dataset_are_made_in_one_call_and_found(data: Path, tmp_path: Path, revisit) -> None:
    with serving(judge) as server:
        file = settings(tmp_path, server.url)
        one = revisit("judge", "questions", data, "--judge", file, "--out", "one", "--frames", 2, "--limit", 1)
        assert "2 clips: 0 done before, 1 to do now, 1 left for later" in one.stderr
        done = revisit("judge", "questions", data, "--judge", file, "--out", "banks", "--frames", 2)
        assert "2 banks written; score with --option questions=banks" in done.stderr
        names = {path.name for path in (tmp_path / "banks").glob("*-questions.csv")}
        assert names == {"Barnyard-5-questions.csv", "Real-7-questions.csv"}
        calls = server.calls
        again = revisit("judge", "questions", data, "--judge", file, "--out", "banks", "--frames", 2)
        assert "0 banks written" in again.stderr and server.calls == calls  # what is there is kept
    assert clip_folder_of_bank(read_bank(tmp_path / "banks/Real-7-questions.csv")) == "007"
    plan = make_plan(
        SUITES["memobench"], generated(tmp_path / "mine"), ObserverSet("lite", load_roles("lite")),
        metrics=["vqa"], options={"gt": str(data), "questions": str(tmp_path / "banks")},
    )  # fmt: skip
    asked = {case.sample: len(case.annotations.get("questions", ())) for case in plan.cases}
    assert asked == {"Barnyard_005": 24, "007": 24}


@pytest.mark.parametrize("name", ["Real-7", "7", "real-7", "007"])
def test_a_real_clip_is_found_under_every_name(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}-questions.csv").touch()
    assert find_bank_file(tmp_path, "007") == tmp_path / f"{name}-questions.csv"
    assert find_bank_file(tmp_path, "008") is None and parse_clip_name("007") == parse_clip_name("real_7")


def test_what_a_single_clip_needs_is_said(tmp_path: Path, make_clip, revisit) -> None:
    make_clip(tmp_path / "a.mp4")
    done = revisit("judge", "questions", "a.mp4", "--judge", "http://127.0.0.1:9/v1", check=None)
    assert "a single clip needs --prompt, --scene and --number" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("video", [False, True])
def test_under_paper_the_judge_sees_every_frame_and_answers_in_one_table(
    video: bool, data: Path, tmp_path: Path, revisit
) -> None:
    with serving(judge) as server:
        file = settings(tmp_path, server.url, video=video)
        revisit("judge", "questions", data, "--judge", file, "--out", "banks", "--frames", 2)
        begun = len(server.requests)
        done = revisit(
            "eval", generated(tmp_path / "mine"), "--option", f"gt={data}", "--option", "questions=banks",
            "--protocol", "paper", "-m", "vqa", "--judge", file, "--json", "--no-report", "--workers", 0,
            "--out", "run",
        )  # fmt: skip
        asked = server.requests[begun:]
    assert len(asked) == 2  # a call per clip; the truth costs none
    content = asked[0]["messages"][-1]["content"]
    if video:
        [film] = [part["video_url"]["url"] for part in content if part["type"] == "video_url"]
        assert decoded(base64.b64decode(film.partition(",")[2]), tmp_path) == (FRAMES, (64, 48))
        assert not any(part["type"] == "image_url" for part in content)
    else:
        import cv2

        images = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        assert len(images) == FRAMES  # all of them
        jpeg = np.frombuffer(base64.b64decode(images[0].partition(",")[2]), np.uint8)
        assert cv2.imdecode(jpeg, cv2.IMREAD_COLOR).shape[:2] == (48, 64)  # at their own size
    scores = json.loads(done.stdout)["models"]["mine"]["scores"]
    assert {id: (scores[id]["n"], scores[id]["mean"]) for id in scores} == {
        f"memo_vqa_{name}": (2, 100) for name in ("if", "ob", "cm", "pa")
    }
    schema = asked[0]["response_format"]["json_schema"]["schema"]["properties"]["items"]["items"]
    assert schema["required"] == ["ID", "Dimension", "Answer", "Verdict", "Reasoning"]


def decoded(film: bytes, folder: Path) -> tuple[int, tuple[int, int]]:
    import av

    path = folder / "sent.mp4"
    path.write_bytes(film)
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return len(frames), (frames[0].width, frames[0].height)


def test_a_table_with_faults_costs_only_the_rows_that_have_them(data: Path, tmp_path: Path, revisit) -> None:
    def faulty(body: dict[str, Any]) -> str:
        text = question_of(body)
        if '[{"ID"' not in text:
            return judge(body)
        rows = rows_of(text)
        rows[0]["Answer"] = "perhaps"
        rows[1]["ID"] = str(rows[1]["ID"])
        return json.dumps({"items": [row for row in rows if row["ID"] != 3]})

    with serving(faulty) as server:
        file = settings(tmp_path, server.url)
        revisit("judge", "questions", data, "--judge", file, "--out", "banks", "--frames", 2)
        done = revisit(
            "eval", generated(tmp_path / "mine"), "--option", f"gt={data}", "--option", "questions=banks",
            "--protocol", "paper", "-m", "memo_vqa_if", "--judge", file, "--json", "--no-report", "--workers", 0,
            "--out", "run",
        )  # fmt: skip
    assert json.loads(done.stdout)["models"]["mine"]["scores"]["memo_vqa_if"]["mean"] == 100
    records = [json.loads(line) for line in (tmp_path / "run/records.jsonl").read_text().splitlines()]
    assert all(
        record["facts"]["unanswered"] == [1, 3] and record["facts"]["asked"] == 6
        for record in records
        if record["status"] == "scored"
    )


# ---- words of one's own -------------------------------------------------------------------------


def test_wording_is_taken_out_of_a_copy_of_the_repository(repository: Path, tmp_path: Path, revisit) -> None:
    revisit("judge", "wording", repository, "--out", "words.yaml")
    words = read_question_wording(tmp_path / "words.yaml")
    assert words == wording_from_repository(repository)
    assert words["judge"] == "AUDIT this: {questions}\n  (columns ID and Question) {literal}"
    assert words["hinted"].startswith('AUDIT WITH HINT "{hint}" this: {questions}')
    assert '"{prompt}"' in words["questions"] and "generation_prompt" not in words["questions"]
    again = revisit("judge", "wording", repository, "--out", "words.yaml", check=None)
    assert again.returncode != 0 and "already exists" in again.stderr
    with pytest.raises(UsageError, match=r"there is no llm-vqa\.py in it"):
        wording_from_repository(tmp_path / "banks")


def test_a_wording_without_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(wording_as_yaml({"judge": "Answer!"}))
    with pytest.raises(UsageError, match=r"judge does not say where \{questions\} goes"):
        read_question_wording(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("other: text\n")
    with pytest.raises(UsageError, match="unknown wording 'other'"):
        read_question_wording(tmp_path / "b.yaml")


@pytest.mark.slow
def test_questions_and_clips_are_asked_in_the_users_words(
    data: Path, repository: Path, tmp_path: Path, revisit
) -> None:
    def public(body: dict[str, Any]) -> str:
        text = question_of(body)
        if "Write questions on" in text:
            names = {"id": "ID", "dimension": "Dimension", "polarity": "Dimension Polarity", "question": "Question"}
            rows = [{names[key]: value for key, value in one.items()} for one in written(("Positive", "Positive"))]
            return "```json\n" + json.dumps(rows) + "\n```"
        assert "AUDIT this" in text
        return json.dumps(rows_of(text))

    revisit("judge", "wording", repository, "--out", "words.yaml")
    with serving(public) as server:
        file = settings(tmp_path, server.url)
        revisit("judge", "questions", data, "--judge", file, "--out", "banks", "--wording", "words.yaml", "--limit", 1)
        bank = read_bank(tmp_path / "banks/Real-7-questions.csv")
        assert len(bank.final) == 24 and all(one.positive for one in bank.final)
        revisit(
            "eval", generated(tmp_path / "mine"), "--option", f"gt={data}", "--option", "questions=banks",
            "--option", "wording=words.yaml", "--protocol", "upstream", "-m", "vqa", "--judge", file, "--no-report",
            "--workers", 0, "--out", "run",
        )  # fmt: skip
        assert "AUDIT this" in question_of(server.requests[-1])


# ---- who makes what under a protocol ------------------------------------------------------------


def test_the_papers_lpips_is_of_vgg_and_upstreams_of_alexnet(data: Path, tmp_path: Path) -> None:
    source = generated(tmp_path / "mine")
    for chosen in ("small", "perceptual", "paper"):
        for protocol, maker in (("paper", "torch.lpips_vgg"), ("upstream", "torch.lpips_alex")):
            plan = make_plan(
                SUITES["memobench"], source, ObserverSet(chosen, load_roles(chosen)), protocol=protocol,
                metrics=["memo_lpips"], options={"gt": str(data)},
            )  # fmt: skip
            assert plan.observers.roles["perceptual_distance"].id == maker
    lite = make_plan(
        SUITES["memobench"], source, ObserverSet("lite", load_roles("lite")), protocol="paper",
        metrics=["memo_lpips"], options={"gt": str(data)},
    )  # fmt: skip
    assert all("perceptual_distance" in wanted.absent for wanted in lite.wanted.values())  # told before any work


@pytest.mark.long
def test_lpips_is_scored_under_paper_with_a_set_that_we_ship(
    data: Path, tmp_path: Path, revisit, small_weights: Path
) -> None:
    done = revisit(
        "eval", generated(tmp_path / "mine"), "--option", f"gt={data}", "--protocol", "paper", "--set", "perceptual",
        "-m", "memo_lpips", "--json", "--no-report", "--workers", 0, "--out", "run",
        env={"REVISIT_WEIGHTS": str(small_weights)},
    )  # fmt: skip
    assert json.loads(done.stdout)["models"]["mine"]["scores"]["memo_lpips"]["n"] == 2
    records = [json.loads(line) for line in (tmp_path / "run/records.jsonl").read_text().splitlines()]
    scored = [record for record in records if record["status"] == "scored"]  # the truth has no reference
    assert len(scored) == 2 and all(record["facts"]["net"] == "lpips_vgg" for record in scored)


@pytest.mark.parametrize("protocol", ["upstream", "paper"])
def test_the_detector_is_asked_with_the_words_of_the_protocol(protocol: str) -> None:
    from revisit.core import OBSERVERS

    chosen = SUITES["memobench"].protocols[protocol]
    for id in ("paper.detections", "paper.detections_grounding"):
        assert resolve_parameters(OBSERVERS[id], chosen)["rule"] == protocol
    assert resolve_parameters(METRICS["memo_ors"], chosen)["rule"] == protocol
