"""Writing: scenes and prompts by a language model, checked as those of people are.

A scene comes back in the form of scenes.yaml. What a generator is told may neither give away how an event ends nor
speak of the camera; a reply that does is asked for again with that sentence. Prompts are added to scenes under
`picture` (what a text-to-image model is told) and `prompt` of each event, where people can read and change them before
a dataset is built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from revisit.core import UsageError
from revisit.core.text import parse_yaml
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames, JudgeAnswer
from revisit.judges.questions import JsonObject, Malformed, Many, Question, Schema, Text
from revisit.media.files import write_text_atomically
from revisit.suites.wrbench.build import CAMERA, prompts_revealing_end_or_camera
from revisit.suites.wrbench.prompts import EVENTS, WORDS, Scene

RULES: str = WORDS["writer"]
LENGTHS = (12, 120)  # least and most words of a prompt
NOTHING = Frames.of([])  # nothing is shown to who writes


EVENT = JsonObject({"told": Text(200), "ends": Text(200)})
SCENE: Mapping[str, Schema] = {
    "name": Text(60), "place": Text(120), "subject": Text(120), "then": Text(60), "with": Text(120),
    "behind": Many(Text(80), 2, 2), **dict.fromkeys(EVENTS, EVENT),
}  # fmt: skip
PROMPTS: Mapping[str, Schema] = {"picture": Text(1200), **dict.fromkeys(EVENTS, Text(1000))}


@dataclass(frozen=True)
class SceneForm(JsonObject):
    """A scene in the form of scenes.yaml, under a name that is not taken."""

    scene_names: tuple[str, ...] = ()

    def check(self, value: object) -> dict[str, Any]:
        """The scene, without a leak; Malformed with the sentence of what is wrong."""
        scene = super().check(value)
        name = scene["name"]
        if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name):
            raise Malformed(f"name: expected two or more lower-case words joined by underscores, got {name!r}")
        if name in self.scene_names:
            raise Malformed(f"name: {name!r} is taken by another scene")
        problems = prompts_revealing_end_or_camera({name: scene})
        if problems:
            raise Malformed(problems[0])
        return scene


@dataclass(frozen=True)
class PromptForm(JsonObject):
    """What a text-to-image model is told of a scene, and a prompt for each of its events."""

    name: str = ""
    facts: Scene = field(default_factory=dict)

    def check(self, value: object) -> dict[str, Any]:
        """The texts, without a leak; Malformed with the sentence of what is wrong."""
        texts = super().check(value)
        for part, text in texts.items():
            count = len(text.split())
            if not LENGTHS[0] <= count <= LENGTHS[1]:
                raise Malformed(f"{part}: expected {LENGTHS[0]} to {LENGTHS[1]} words, got {count}")
        if spoken := CAMERA.search(texts["picture"]):
            raise Malformed(f"picture: it speaks of the camera: {spoken[0]!r}")
        problems = prompts_revealing_end_or_camera({self.name: add_prompts_to_scene(self.facts, texts)})
        if problems:
            raise Malformed(problems[0])
        return texts


def next_scene_question(number: int, scenes: Mapping[str, Scene], topic: str = "") -> Question:
    """The question for one further scene."""
    descriptions = "; ".join(f"{name}: {facts['place']}, {facts['subject']}" for name, facts in scenes.items())
    text = WORDS["scene"].format(number=number)
    text += f" The scene is about this: {topic.strip()}." if topic.strip() else ""
    text += f" It must differ from these in place and in subject: {descriptions}." if descriptions else ""
    return Question("wrbench.scene", text, SceneForm(SCENE, tuple(scenes)), {"number": number}, RULES)


def scene_prompts_question(name: str, facts: Scene) -> Question:
    """The question for the prompts of a scene."""
    one, other = facts["behind"]
    events = "; ".join(f"{event}: {facts['then']} {facts[event]['told']}" for event in EVENTS)
    things = {"place": facts["place"], "subject": facts["subject"], "with": facts["with"], "one": one, "other": other}
    text = WORDS["prompts"].format(**things, events=events, least=LENGTHS[0], most=LENGTHS[1])
    return Question("wrbench.prompts", text, PromptForm(PROMPTS, name, facts), {"scene": name}, RULES)


def add_prompts_to_scene(facts: Scene, texts: Mapping[str, str]) -> Scene:
    """A scene with its written texts."""
    events = {event: {**facts[event], "prompt": texts[event]} for event in EVENTS}
    return {**facts, "picture": texts["picture"], **events}


def generate_scenes(client: JudgeClient, count: int, topic: str = "") -> tuple[dict[str, Scene], list[str]]:
    """Scenes one after the other, each told of those before, and a sentence for each that was not to be had."""
    scenes: dict[str, Scene] = {}
    trouble = []
    for number in range(1, count + 1):
        (answer,) = client.ask(NOTHING, [next_scene_question(number, scenes, topic)])
        if answer.status != "answered":
            trouble.append(f"scene {number}: {_no_answer_reason(answer)}")
            continue
        scene = dict(answer.value)
        scenes[scene.pop("name")] = scene
    return scenes, trouble


def generate_scene_prompts(client: JudgeClient, families: Mapping[str, Scene]) -> tuple[dict[str, Scene], list[str]]:
    """The scenes with prompts, several asked for at a time; a scene without them stays as it is, with a sentence."""
    futures = {
        name: client.submit_questions(NOTHING, [scene_prompts_question(name, facts)])[0]
        for name, facts in families.items()
    }
    scenes: dict[str, Scene] = {}
    trouble = []
    for name, future in futures.items():
        answer = future.result()
        scenes[name] = families[name]
        if answer.status == "answered":
            scenes[name] = add_prompts_to_scene(families[name], answer.value)
        else:
            trouble.append(f"{name}: {_no_answer_reason(answer)}")
    return scenes, trouble


def write_or_extend_scenes_file(path: Path, families: Mapping[str, Scene]) -> None:
    """Write scenes. A file that is there may only grow: whatever else it holds is refused."""
    if path.exists():
        try:
            there = parse_yaml(path.read_text(encoding="utf-8"))["families"]
            changed = [name for name, facts in there.items() if families.get(name) != facts]
        except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
            raise UsageError(f"{path} is there and holds no scenes; choose another --out") from None
        if changed:
            raise UsageError(f"{path} is there and holds another scene called {changed[0]!r}; choose another --out")
    text = yaml.safe_dump({"families": {name: dict(facts) for name, facts in families.items()}}, sort_keys=False,
                          allow_unicode=True, width=120)  # fmt: skip
    write_text_atomically(path, text)


def _no_answer_reason(answer: JudgeAnswer) -> str:
    reason = "the writer gave no usable text" if answer.status == "unanswered" else "the writer could not be asked"
    return f"{reason}: {answer.reason}"
