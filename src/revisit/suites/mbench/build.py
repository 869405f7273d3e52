"""Build: MBench-A and MBench-T over the same samples, from a folder of real videos and a judge (docs/build.md).

The judge rates three challenges, describes the video and its target, and tells the story in five parts. By action, the
camera turns away from the side on which the target stands, rests, and goes back the same way.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from revisit.core import RevisitError
from revisit.core.text import read_package_yaml
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames
from revisit.judges.questions import Choice, JsonObject, Many, Number, Question, Rating, Schema, Text
from revisit.media import write_picture
from revisit.media.files import write_json_lines, write_text_atomically
from revisit.suites import authoring
from revisit.suites.mbench.dataset import CARD, PLACES
from revisit.suites.mbench.jobs import ASSIGNMENTS
from revisit.suites.mbench.names import SETTINGS

WORDS = read_package_yaml(__package__, "build.yaml")
PARTS = 5
LEAST = 3  # of 5: a video that challenges no kind of memory more than a little is left out
SECONDS = 25
PHASES = (10, 5, 10)  # seconds: exit, wait, reenter
RATINGS = JsonObject({name: Rating() for name in WORDS["challenges"]})
DESCRIPTION = JsonObject(
    {
        "caption": Text(2000), "kind": Choice(("human", "object")), "name": Text(80),
        "attributes": Many(Text(60), 1, 6), "x": Number(), "y": Number(),
    }
)  # fmt: skip


@dataclass(frozen=True)
class SourceSample:
    """What the judge said of a video."""

    video: Path
    id: str
    subset: str
    ratings: Mapping[str, int]
    facts: Mapping[str, Any]  # the fields of DESCRIPTION
    segments: Sequence[str]

    @property
    def turn_directions(self) -> tuple[str, str]:
        """Where the camera turns, and back: away from the side on which the target stands."""
        return ("right", "left") if self.facts["x"] <= 0.5 else ("left", "right")

    @property
    def action(self) -> str:
        away, back = self.turn_directions
        return f"{away}_then_wait_then_{back}"


def describe_source_video(client: JudgeClient, video: Path, frames: Frames) -> SourceSample:
    """What the judge says of a video; RevisitError where it is left out."""

    def ask_topic(topic: str, schema: Schema, **values: object) -> Any:
        question = Question(f"mbench.{topic}", WORDS[topic].format(**values), schema)
        (answer,) = client.ask(frames, [question])
        if answer.status != "answered":
            raise RevisitError(f"{video.name}: the judge did not answer {question.id}: {answer.reason}")
        return answer.value

    challenges = "\n".join(f"- {name}: {what}" for name, what in WORDS["challenges"].items())
    ratings = ask_topic("select", RATINGS, challenges=challenges)
    challenge = max(ratings, key=ratings.__getitem__)
    if ratings[challenge] < LEAST:
        rated = ", ".join(f"{name} {rating}" for name, rating in ratings.items())
        raise RevisitError(f"{video.name}: no challenge to memory is rated {LEAST} or more ({rated})")
    facts = ask_topic("describe", DESCRIPTION)
    segments = Many(Text(800), PARTS, PARTS)
    parts = ask_topic("segments", segments, caption=facts["caption"], name=facts["name"], parts=PARTS)
    subset = facts["kind"] if challenge == "entity" else challenge
    digest = hashlib.sha256(video.read_bytes()).hexdigest()[:8]
    return SourceSample(video, f"{video.stem}_{digest}", subset, ratings, facts, parts)


def write_mbench_a_and_t(
    root: Path, samples: Sequence[SourceSample], *, licence: str, source: str
) -> tuple[Path, Path]:
    """Both datasets of these videos; a sample's condition is text, or the sequence that loses its target soonest."""
    folders = []
    for setting in "AT":
        place = authoring.make_empty_folder(root / f"MBench-{setting}")
        rows = []
        for number, one in enumerate(samples):
            _write_sample(place / "samples" / one.subset / one.id, one, setting, number)
            condition = "text" if setting == "T" else f"{one.action}_{SECONDS}s"
            rows.append({"subset": one.subset, "sample_id": one.id, "condition_id": condition})
        write_text_atomically(place / CARD, _dataset_card_yaml(setting, samples))
        write_json_lines(place / ASSIGNMENTS, rows)
        counts = {"samples": len(samples), **Counter(one.subset for one in samples)}
        title = f"MBench-{setting} of {source}"
        authoring.write_dataset_card(place, "mbench", title=title, licence=licence, source=source, counts=counts)
        folders.append(place)
    return folders[0], folders[1]


def _dataset_card_yaml(setting: str, samples: Sequence[SourceSample]) -> str:
    subsets = {one.subset for one in samples}
    exit_, wait, reenter = PHASES
    actions = {
        one.action: [{one.turn_directions[0]: exit_}, {"wait": wait}, {one.turn_directions[1]: reenter}]
        for one in sorted(samples, key=lambda one: one.turn_directions)
    }
    card = {
        "dataset_id": SETTINGS[setting], "dataset_name": f"MBench-{setting}", "version": "1.0",
        "path_mode": "relative_to_dataset_root",
        "subsets": {name: {"description": what} for name, what in WORDS["subsets"].items() if name in subsets},
        "condition_id": {"pattern": "text" if setting == "T" else "{action}_{length}"},
        "paths": {name: PLACES[name] for name in ("output_video", "artifact_da3")},
        **({"actions": actions} if setting == "A" else {}),
    }  # fmt: skip
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True)


def _write_sample(place: Path, sample: SourceSample, setting: str, number: int) -> None:
    place.mkdir(parents=True)
    media = {
        "source_video": f"source_video{sample.video.suffix.lower()}", "first_frame": "first_frame.png",
        "reference": "reference.png",
    }  # fmt: skip
    shutil.copyfile(sample.video, place / media["source_video"])
    first = authoring.read_video_frame(sample.video, 0)
    write_picture(place / media["first_frame"], first)
    write_picture(place / media["reference"], authoring.read_video_frame(sample.video, -1))
    height, width = first.shape[:2]
    facts, name = sample.facts, sample.facts["name"]
    metadata: dict[str, object] = {
        "caption": facts["caption"], "challenges": dict(sample.ratings), "object_name": name,
        "object_anchor": {
            "center_x": round(facts["x"] * width, 1), "center_y": round(facts["y"] * height, 1),
            "width": width, "height": height, "source": "judge",
        },
        "object_card": {"name": name, "attributes": list(facts["attributes"])},
    }  # fmt: skip
    annotations: dict[str, object] = {"action": sample.action, "phases_seconds": list(PHASES)}
    if setting == "T":
        away, back = sample.turn_directions
        motion = list(WORDS["camera"])[number % len(WORDS["camera"])]
        heads = [text.format(away=away, back=back, name=name) for text in WORDS["camera"][motion]]
        metadata["caption_segments"] = [f"{head} {text}" for head, text in zip(heads, sample.segments, strict=True)]
        annotations = {"camera_motion": motion}
    content = {
        "sample_id": sample.id, "subset": sample.subset, "caption": facts["caption"],
        "ground_truth_media": media, "metadata": metadata, "annotations": annotations,
    }  # fmt: skip
    authoring.write_json_file(place / "sample.json", content)
