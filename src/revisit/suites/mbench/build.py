"""Build: MBench-A and MBench-T over the same samples, from a folder of real videos and a judge (docs/build.md).

The judge rates three challenges, describes the video and its target, and tells the story in five parts. By action, the
camera turns away from the side on which the target stands, rests, and goes back the same way.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from revisit.core import RevisitError
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames
from revisit.judges.questions import Choice, JsonObject, Many, Number, Question, Rating, Schema, Text
from revisit.media import write_picture
from revisit.media.files import write_lines, write_text
from revisit.suites import authoring
from revisit.suites.mbench.dataset import CARD, PLACES
from revisit.suites.mbench.jobs import ASSIGNMENTS
from revisit.suites.mbench.names import SETTINGS

PARTS = 5
CHALLENGES = {
    "entity": "somebody or something is hidden for a while, changes its looks, or moves in a complicated way",
    "environment": "the camera moves a lot, the layout of the place changes, or the background is busy",
    "causal": "something changes its physical state, or one event leads to another",
}


def rate_question() -> Question:
    """How much a video asks of each kind of memory."""
    listed = "\n".join(f"- {name}: {what}" for name, what in CHALLENGES.items())
    text = (
        "These are frames of one video, in order. A generator will have to go on with it and remember it. Rate for "
        f"each of these how much of it the video has, from 1 (none) to 5 (very much):\n{listed}"
    )
    return Question("mbench.select", text, JsonObject({name: Rating() for name in CHALLENGES}))


def describe_question() -> Question:
    """What a video shows, and the one thing to remember."""
    text = (
        "These are frames of one video, in order. Describe the scene and what happens, with the looks and places of "
        "everybody and everything that matters, in the order of time. Name the one person or thing that is best "
        "followed: its kind, a short name, its core looks as single words or short phrases, and where the middle of it "
        "is in the first frame, from 0 (left, top) to 1 (right, bottom)."
    )
    fields: dict[str, Schema] = {
        "caption": Text(2000), "kind": Choice(("human", "object")), "name": Text(80),
        "attributes": Many(Text(60), 1, 6), "x": Number(), "y": Number(),
    }  # fmt: skip
    return Question("mbench.describe", text, JsonObject(fields))


def segments_question(caption: str, name: str) -> Question:
    """The description in five consecutive parts, in which the target leaves and comes back."""
    text = (
        f"These are frames of one video, in order. It is described so: {caption}\nTell it in {PARTS} consecutive parts "
        "of about five seconds each, one short paragraph per part, without a word about the camera. In the second part "
        f"the {name} goes out of view, in the third it is not in view and time goes on, in the fourth it comes back "
        "into view, in the fifth it is fully there again, as it must be by then. Say what it looks like whenever it is "
        "in view."
    )
    return Question("mbench.segments", text, Many(Text(800), PARTS, PARTS))


LEAST = 3  # of 5: a video that challenges no kind of memory more than a little is left out
SECONDS = 25
PHASES = (10, 5, 10)  # seconds: exit, wait, reenter
SUBSETS = {
    "environment": "The place, seen again.",
    "human": "A person who leaves and comes back.",
    "object": "A thing that leaves and comes back.",
    "causal": "What goes on while nobody looks.",
}
# kind of motion -> what the camera is told at the head of each part
CAMERA = {
    "rotation": ("The camera rests.", "The camera turns {away} on the spot until the {name} has left the view.",
                 "The camera rests, turned {away}.", "The camera turns back {back} on the spot.",
                 "The camera rests where it began."),
    "translation": ("The camera rests.", "The camera moves {away} until the {name} has left the view.",
                    "The camera rests at the side.", "The camera moves back {back}.",
                    "The camera rests where it began."),
    "zoom": ("The camera rests.", "The camera zooms in beside the {name} until it has left the view.",
             "The camera stays close.", "The camera zooms out again.", "The camera rests where it began."),
    "occlusion": ("The camera rests.", "Something large moves in front of the {name} until it is hidden.",
                  "The {name} stays hidden behind it.", "What hides the {name} moves on.",
                  "The camera rests where it began."),
}  # fmt: skip


@dataclass(frozen=True)
class SourceSample:
    """What the judge said of a video."""

    video: Path
    id: str
    subset: str
    ratings: Mapping[str, int]
    caption: str
    kind: str
    name: str
    attributes: Sequence[str]
    place: tuple[float, float]  # of the target in the first frame, as shares
    segments: Sequence[str]


def ask_about_video(asker: JudgeClient, video: Path, look: Callable[[Path], Frames]) -> SourceSample | str:
    """What the judge says of a video, or why it is left out."""
    frames = look(video)
    ratings = _ask_one(asker, frames, rate_question(), video)
    challenge = max(ratings, key=lambda name: (ratings[name], -list(ratings).index(name)))
    if ratings[challenge] < LEAST:
        return f"{video.name}: no challenge to memory is rated {LEAST} or more ({_list_ratings(ratings)})"
    facts = _ask_one(asker, frames, describe_question(), video)
    parts = _ask_one(asker, frames, segments_question(facts["caption"], facts["name"]), video)
    subset = facts["kind"] if challenge == "entity" else challenge
    digest = hashlib.sha256(video.read_bytes()).hexdigest()[:8]
    return SourceSample(
        video, f"{video.stem}_{digest}", subset, ratings, facts["caption"], facts["kind"], facts["name"],
        facts["attributes"], (facts["x"], facts["y"]), parts,
    )  # fmt: skip


def _ask_one(asker: JudgeClient, frames: Frames, question: Any, video: Path) -> Any:
    (answer,) = asker.ask(frames, [question])
    if answer.status != "answered":
        raise RevisitError(f"{video.name}: the judge did not answer {question.id}: {answer.reason}")
    return answer.value


def write_datasets(root: Path, samples: Sequence[SourceSample], *, licence: str, source: str) -> tuple[Path, Path]:
    """Both datasets of these videos."""
    folders = []
    for setting in "AT":
        place = authoring.empty_folder(root / f"MBench-{setting}")
        for number, one in enumerate(samples):
            _sample(place / "samples" / one.subset / one.id, one, setting, number)
        write_text(place / CARD, _card(setting, samples))
        rows = [{"subset": one.subset, "sample_id": one.id, "condition_id": condition(one, setting)} for one in samples]
        write_lines(place / ASSIGNMENTS, rows)
        counts = {"samples": len(samples), **Counter(one.subset for one in samples)}
        title = f"MBench-{setting} of {source}"
        authoring.write_card(place, "mbench", title=title, licence=licence, source=source, counts=counts)
        folders.append(place)
    return folders[0], folders[1]


def condition(one: SourceSample, setting: str) -> str:
    """The condition of a sample: text, or the sequence that loses its target soonest."""
    return "text" if setting == "T" else f"{_action(one)}_{SECONDS}s"


def _action(one: SourceSample) -> str:
    away, back = _directions(one)
    return f"{away}_then_wait_then_{back}"


def _directions(one: SourceSample) -> tuple[str, str]:
    """Where the camera turns, and back: away from the side on which the target stands."""
    return ("right", "left") if one.place[0] <= 0.5 else ("left", "right")


def _card(setting: str, samples: Sequence[SourceSample]) -> str:
    present = {name: {"description": what} for name, what in SUBSETS.items() if any(t.subset == name for t in samples)}
    exit_, wait, reenter = PHASES
    actions = {
        f"{away}_then_wait_then_{back}": [{away: exit_}, {"wait": wait}, {back: reenter}]
        for away, back in sorted({_directions(one) for one in samples})
    }
    card = {
        "dataset_id": SETTINGS[setting], "dataset_name": f"MBench-{setting}", "version": "1.0",
        "path_mode": "relative_to_dataset_root", "subsets": present,
        "condition_id": {"pattern": "text" if setting == "T" else "{action}_{length}"},
        "paths": {name: PLACES[name] for name in ("output_video", "artifact_da3")},
        **({"actions": actions} if setting == "A" else {}),
    }  # fmt: skip
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True)


def _sample(place: Path, one: SourceSample, setting: str, number: int) -> None:
    place.mkdir(parents=True)
    shutil.copyfile(one.video, place / f"source_video{one.video.suffix.lower()}")
    first = authoring.read_frame(one.video, 0)
    write_picture(place / "first_frame.png", first)
    write_picture(place / "reference.png", authoring.read_frame(one.video, -1))
    height, width = first.shape[:2]
    anchor = {
        "center_x": round(one.place[0] * width, 1), "center_y": round(one.place[1] * height, 1), "width": width,
        "height": height, "source": "judge",
    }  # fmt: skip
    away, back = _directions(one)
    motion = list(CAMERA)[number % len(CAMERA)]
    words = [text.format(away=away, back=back, name=one.name) for text in CAMERA[motion]]
    segments = [f"{camera} {text}" for camera, text in zip(words, one.segments, strict=True)]
    metadata: dict[str, object] = {
        "caption": one.caption, "challenges": dict(one.ratings), "object_name": one.name, "object_anchor": anchor,
        "object_card": {"name": one.name, "attributes": list(one.attributes)},
    }  # fmt: skip
    annotations: dict[str, object] = {"action": _action(one), "phases_seconds": list(PHASES)}
    if setting == "T":
        metadata |= {"caption_segments": segments}
        annotations = {"camera_motion": motion}
    content = {
        "sample_id": one.id, "subset": one.subset, "caption": one.caption,
        "ground_truth_media": {
            "source_video": f"source_video{one.video.suffix.lower()}", "first_frame": "first_frame.png",
            "reference": "reference.png",
        },
        "metadata": metadata, "annotations": annotations,
    }  # fmt: skip
    authoring.write_json(place / "sample.json", content)


def _list_ratings(ratings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {rating}" for name, rating in ratings.items())
