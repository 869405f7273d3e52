"""Scenes and prompts by a language model: asked over real HTTP, checked, recorded, and built into a dataset."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from revisit.judges.chat import ChatJudge, ChatSettings
from revisit.judges.questions import Malformed
from revisit.suites.wrbench.build import prompts_revealing_end_or_camera, read_scene_families
from revisit.suites.wrbench.generated_text import (
    NOTHING,
    RULES,
    next_scene_question,
    scene_prompts_question,
    write_or_extend_scenes_file,
)
from revisit.suites.wrbench.prompts import EVENTS, event_task_of_scene
from tests.judges.test_judge_wire import real  # noqa: F401 - a fixture
from tests.judging import MODEL, completion, question_of, serving, status
from tests.suites.test_authoring import ASKED, SCENES


def scene(number: int, **more: Any) -> dict[str, Any]:
    """A sound scene, another one for every number."""
    return {
        "name": f"yard_keeper_{number}", "place": f"yard number {number}",
        "subject": f"a keeper with a red hat {number}", "then": "the keeper", "with": "a wheelbarrow",
        "behind": ["a brick wall", "a water pump"],
        "rests": {"told": "stands and waits", "ends": "nobody has left the spot"},
        "moves": {"told": "walks over to the wheelbarrow", "ends": "hat and wheelbarrow are side by side"},
        "changes": {"told": "takes off the hat on the spot", "ends": "the hat hangs from one hand"},
        "both": {"told": "goes and tips the wheelbarrow over", "ends": "the load lies spread on the ground"},
        **more,
    }  # fmt: skip


def texts(about: str) -> dict[str, str]:
    body = f"In {about} somebody stands on the left while a thing waits on the right and the ground between is free"
    return {"picture": body, **{event: f"{body}; then {event}" for event in EVENTS}}


def number_of(body: dict[str, Any]) -> int:
    return int(re.search(r"scene number (\d+)", question_of(body))[1])


def judge_file(folder: Path, url: str, **more: Any) -> Path:
    path = folder / "writer.yaml"
    path.write_text(yaml.safe_dump({"url": url, "model": MODEL, "pause": 0.01, **more}))
    return path


def test_the_request_is_that_of_the_official_client():
    openai = pytest.importorskip("openai")
    question = next_scene_question(1, {})
    with serving(lambda body: completion(json.dumps(scene(1)))) as server:
        judge = ChatJudge(ChatSettings(url=server.url, model=MODEL))
        reply = judge.reply(NOTHING, [question], [""])[0]
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        theirs = client.chat.completions.create(**judge.request_body(NOTHING, question))
    sent, official = server.requests
    assert sent == official and theirs.choices[0].message.content == reply.text
    system, user = sent["messages"]
    assert system == {"role": "system", "content": RULES} and [part["type"] for part in user["content"]] == ["text"]
    wanted = sent["response_format"]["json_schema"]["schema"]
    assert set(wanted["required"]) == {"name", "place", "subject", "then", "with", "behind", *EVENTS}
    assert question.read(reply.text)["name"] == "yard_keeper_1"


@pytest.mark.slow
def test_a_real_server_takes_the_question(real):  # noqa: F811
    """A tiny random model writes nothing sensible; the server accepts the form, and what comes back is checked."""
    url, model = real
    judge = ChatJudge(ChatSettings(url=url, model=model, max_tokens=96))
    reply = judge.reply(NOTHING, [next_scene_question(1, {})], [""])[0]
    assert reply.text.lstrip().startswith("{") and reply.usage.tokens_in > 100
    with pytest.raises(Malformed):
        next_scene_question(1, {}).read(reply.text)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"name": "Yard 1"}, "lower-case words"),
        ({"name": "known_one"}, "is taken"),
        ({"behind": ["a wall"]}, "behind"),
        ({"moves": {"told": "walks until hat and wheelbarrow are side by side", "ends": scene(1)["moves"]["ends"]}},
         "tells how it ends"),
        ({"rests": {"told": "waits while the camera pans", "ends": "x y"}}, "speaks of the camera"),
        ({"both": {"told": "goes"}}, "ends"),
    ],
)  # fmt: skip
def test_a_scene_that_cannot_be_used_says_why(more, says):
    form = next_scene_question(2, {"known_one": scene(9)}).schema
    with pytest.raises(Malformed, match=says):
        form.check(scene(1, **more))
    checked = form.check(scene(1))
    assert isinstance(checked, dict) and checked["with"] == "a wheelbarrow"


@pytest.mark.slow
def test_scenes_are_written_one_after_the_other_checked_and_recorded(tmp_path, revisit):
    def answer(body):
        number = number_of(body)
        if number == 2 and "could not be used" not in question_of(body):
            return completion(json.dumps(scene(2, rests={"told": "waits for the camera", "ends": "x"})))
        return completion(json.dumps(scene(number)))

    with serving(answer) as server:
        words = ["build", "scenes", "--writer", judge_file(tmp_path, server.url), "--out", tmp_path / "s.yaml"]
        told = json.loads(revisit(*words, "--count", 3, "--about", "gardens", "--json").stdout)
        assert told["written"] == 3 and told["calls"] == 4 and server.calls == 4
        assert "speaks of the camera: 'camera'" in question_of(server.requests[2])  # the fault is named
        assert "about this: gardens" in question_of(server.requests[0])
        assert "yard_keeper_1: yard number 1" in question_of(server.requests[-1])
        found = read_scene_families(tmp_path / "s.yaml")
        assert list(found) == [
            "yard_keeper_1",
            "yard_keeper_2",
            "yard_keeper_3",
        ] and not prompts_revealing_end_or_camera(found)
        more = json.loads(revisit(*words, "--count", 4, "--about", "gardens", "--json").stdout)
        assert (more["recorded"], more["calls"]) == (3, 1) and len(read_scene_families(tmp_path / "s.yaml")) == 4
    # Without the server, and without the cache: the answers beside the file.
    again = revisit(
        *words[:2], "--writer", tmp_path / "s.answers.jsonl", "--out", tmp_path / "again.yaml", "--count", 4, "--about",
        "gardens", env={"REVISIT_CACHE": str(tmp_path / "empty")},
    )  # fmt: skip
    assert again.returncode == 0
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "s.yaml").read_text()


def test_a_budget_and_a_scene_that_is_not_to_be_had_lose_nothing_else(tmp_path, revisit):
    def answer(body):
        number = number_of(body)
        return completion("no" if number == 2 else json.dumps(scene(number)))

    with serving(answer) as server:
        words = ["build", "scenes", "--out", tmp_path / "s.yaml", "--count", 3]
        little = revisit(*words, "--writer", judge_file(tmp_path, server.url, budget={"calls": 1}), check=1)
        assert "scene 2: the writer could not be asked: the judge's budget of 1 calls is used up" in little.stderr
        assert list(read_scene_families(tmp_path / "s.yaml")) == ["yard_keeper_1"]
        rest = revisit(*words, "--writer", judge_file(tmp_path, server.url, again=0), check=1)
    assert "scene 2: the writer gave no usable text" in rest.stderr
    assert list(read_scene_families(tmp_path / "s.yaml")) == ["yard_keeper_1", "yard_keeper_3"]


def test_a_file_of_somebody_else_stays(tmp_path, revisit):
    (tmp_path / "s.yaml").write_text("notes: mine\n")
    with serving(lambda body: completion(json.dumps(scene(number_of(body))))) as server:
        words = ["build", "scenes", "--writer", judge_file(tmp_path, server.url), "--count", 1, "--out"]
        said = revisit(*words, tmp_path / "s.yaml", check=2)
        assert "holds no scenes; choose another --out" in said.stderr
        assert (tmp_path / "s.yaml").read_text() == "notes: mine\n"
        write_or_extend_scenes_file(tmp_path / "t.yaml", {"yard_keeper_1": {"place": "elsewhere"}})
        said = revisit(*words, tmp_path / "t.yaml", check=2)
        assert "another scene called 'yard_keeper_1'" in said.stderr


def test_written_prompts_reach_the_dataset(tmp_path, revisit):
    text = SCENES.read_text()
    (tmp_path / "scenes.yaml").write_text(text[: text.index("  greenhouse_gardener_watering:")])
    families = read_scene_families(tmp_path / "scenes.yaml")

    def answer(body):
        asked = question_of(body)
        if "pottery" in asked and "could not be used" not in asked:
            return completion(json.dumps({**texts("a pottery"), "moves": "the camera turns " * 8}))
        return completion(json.dumps(texts("a pottery" if "pottery" in asked else "a garage")))

    with serving(answer) as server:
        server.faults = [status(503)]
        writer = judge_file(tmp_path, server.url)
        revisit("build", "prompts", tmp_path / "scenes.yaml", "--writer", writer, "--out", tmp_path / "full.yaml")
        assert server.calls == 4  # one fault, one reply that speaks of the camera
    full = read_scene_families(tmp_path / "full.yaml")
    assert full["studio_potter_wheel"]["picture"] == texts("a pottery")["picture"]
    revisit("build", "wrbench", tmp_path / "full.yaml", "--out", tmp_path / "built", *ASKED)
    said = revisit("build", "check", tmp_path / "built", check=1).stdout  # nobody drew first frames
    assert said.count("it has no first frame") == 2 and "2 problems" in said
    lines = [json.loads(line) for line in (tmp_path / "built/variants.jsonl").read_text().splitlines()]
    prompts = {line["variant_id"]: line["ti2v_prompt"] for line in lines}
    assert prompts["garage_mechanic_hood__T1__none"] == texts("a garage")["moves"]
    assert prompts["garage_mechanic_hood__T1__yaw_LR"].startswith(texts("a garage")["moves"] + " The camera turns")
    family = json.loads((tmp_path / "built/families.jsonl").read_text().splitlines()[1])
    assert family["t2i_scene"] == texts("a garage")["picture"]
    # Scenes without texts of their own are told in our words, as before.
    name, facts = next(iter(families.items()))
    assert event_task_of_scene(name, facts, "moves").prompt.startswith("A realistic, steady shot")


def test_prompts_may_not_give_away_the_end():
    facts = scene(1)
    form = scene_prompts_question("yard", facts).schema
    good = texts("the yard")
    assert form.check(good) == good
    for part, text, says in [
        ("both", f"{good['both']}, and the load lies spread on the ground", "tells how it ends"),
        ("picture", f"{good['picture']}, a tracking shot", "speaks of the camera"),
        ("rests", "too short", "12 to 120 words"),
        ("moves", "word " * 121, "12 to 120 words"),
    ]:
        with pytest.raises(Malformed, match=says):
            form.check({**good, part: text})


def test_a_judge_that_only_looks_refuses_to_write(tmp_path):
    pytest.importorskip("torch")
    from revisit.judges.local import LocalJudge
    from revisit.judges.protocol import Refused

    with pytest.raises(Refused, match="name a server that writes text"):
        LocalJudge.reply(object(), NOTHING, [next_scene_question(1, {})], [""])  # type: ignore[arg-type]
