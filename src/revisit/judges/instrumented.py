"""An instrumented judge for rendered worlds: it measures what a person would see, without a network.

It looks at the pixels of the frames it is shown, and at public descriptions of scenes (`revisit.worlds.describe`): the
empty place along the camera script, and the target in each state it can be in. It never sees masks, poses, states or
file names of a clip. For every frame it finds the view of the script that looks most alike, takes what differs from
the empty place for the target, and compares it with the target's known states. What it cannot place it leaves
unanswered.

It answers what `Question.about` asks under `ask` (with `negate` for the opposite): hidden, returned, spatial, state,
in_view. It knows the questions of descriptions by their wording, and those of a benchmark where that registers, beside
its questions, how a story answers them (`register_story_answers`), so that every judged metric can be exercised end to
end on clips whose truth is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from revisit.core import UsageError
from revisit.core.registry import Registry
from revisit.judges.canary import COLOURS
from revisit.judges.protocol import Frames, Judge, Reply, Usage
from revisit.judges.questions import Question
from revisit.media import load_npz

NOISE = 20.0  # grey levels: twice what noise and compression change in all but a hundredth of a picture
UNLIKE = 14.0  # median difference to the nearest view above which a frame shows none of the script's views
LEAST = 0.002  # share of the picture that the target covers at least, in one piece, where it counts as in sight
WHOLE = 0.5  # share of its usual size from which on it is in sight well enough to tell its place and state
KNOWN = 0.5  # share of a difference that a known state explains, where the state is taken for it
ALIKE = 0.45  # share of colours in common, times the ratio of sizes, where a state elsewhere is taken for a known one
OVERLAP = 0.5  # intersection over union of outlines, above which the place is taken for the same
PACE = 0.5  # share of what the time allows that a lasting event must have gone on
NEAR = 0.1  # metres within which two places are the same
DARK = 0.25  # share of the light below which nothing counts as seen
UNKNOWN, ELSEWHERE = -2, -1
FACTS = ("hidden", "returned", "spatial", "state", "in_view")  # what `Question.about` may ask of a story
HINT = "`revisit judge check --worlds` writes some"
THUMB = 8  # pixels of a picture per pixel of the thumbnail by which views are found


@dataclass(frozen=True)
class FrameReading:
    """What one frame shows."""

    time: float
    in_sight: bool  # the target
    place_in_sight: bool  # where it stood at first
    clear: bool  # the target is in sight well enough to tell its place and state
    place: int = UNKNOWN  # the state whose place it is in, or ELSEWHERE
    state: int = UNKNOWN  # the state that it looks like, or ELSEWHERE where it looks like none


@dataclass(frozen=True)
class SceneDescription:
    """A public description, read."""

    name: str
    views: np.ndarray
    pictures: np.ndarray
    lit: np.ndarray
    place: np.ndarray
    look: np.ndarray
    amount: np.ndarray
    went: np.ndarray
    prompt: str
    kind: str
    seconds: float
    questions: Mapping[str, tuple[str, bool]]  # text -> what it asks for, and whether for its opposite

    @cached_property
    def view_thumbnails(self) -> np.ndarray:
        return np.stack([downscale_eightfold(view) for view in self.views])

    @cached_property
    def target_masks(self) -> np.ndarray:
        """(states, views, h, w): where the target in each state changes the picture."""
        masks = []
        for state in self.pictures:
            masks.append([_smoothed_channel_difference(*pair) > NOISE for pair in zip(state, self.views, strict=True)])
        return np.array(masks)

    @cached_property
    def target_area_shares(self) -> np.ndarray:
        """(states, views): the share of the picture that the target covers; nothing in the dark."""
        return np.asarray(np.where(self.lit >= DARK, self.target_masks.mean(axis=(2, 3)), 0.0))

    @cached_property
    def median_full_area_share(self) -> float:
        """The share of the picture that the target covers where all of it is in view."""
        return float(np.median(self.target_area_shares.max(axis=1)))

    @cached_property
    def final_state(self) -> int:
        """The state that the event leaves behind."""
        return int(np.argmax(self.went))

    def nearest_view_and_difference(self, picture: np.ndarray) -> tuple[int, float]:
        """The view that looks most like a picture, and how unlike it is: the median difference in grey levels."""
        small = downscale_eightfold(_resize_to_height_width(picture, self.views.shape[1:3]))
        unlike = np.median(np.abs(self.view_thumbnails - small).mean(axis=3), axis=(1, 2))
        best = int(np.argmin(unlike))
        return best, float(unlike[best])

    def read_frame(self, picture: np.ndarray, time: float) -> FrameReading | None:
        """What a frame shows; None where it shows none of the script's views."""
        view, unlike = self.nearest_view_and_difference(picture)
        if unlike > UNLIKE:
            return None
        frame, empty = _resize_to_height_width(picture, self.views.shape[1:3]), self.views[view]
        place_in_sight = bool(self.target_area_shares[0, view] >= LEAST)
        foreign = _mask_of_large_components(_smoothed_channel_difference(frame, empty) > NOISE)
        if self.lit[view] < DARK or foreign.mean() < LEAST:
            return FrameReading(time, False, place_in_sight, False)
        clear = bool(foreign.mean() >= WHOLE * self.median_full_area_share)
        there = self.target_masks[:, view]
        explained = [
            _share_of_difference_explained(frame, empty, picture, foreign | outline)
            for picture, outline in zip(self.pictures[:, view], there, strict=True)
        ]
        place = state = int(np.argmax(explained))
        if explained[state] < KNOWN:
            overlaps = [(foreign & outline).sum() / max((foreign | outline).sum(), 1) for outline in there]
            near = int(np.argmax(overlaps))
            if overlaps[near] >= OVERLAP:
                place, state = self._event_state_at_place(near), ELSEWHERE
            else:
                place, state = ELSEWHERE, self._state_by_colour_and_size(frame, view, foreign)
        return FrameReading(time, True, place_in_sight, clear, place, state)

    def is_same_target_place(self, first_state: int, second_state: int) -> bool:
        """Whether the target is in the same place in two states."""
        return bool(np.linalg.norm(self.place[first_state] - self.place[second_state]) < NEAR)

    def _event_state_at_place(self, state: int) -> int:
        """The state of the event with the same place, if there is one."""
        candidates = [k for k in np.flatnonzero(self.went >= 0).tolist() if self.is_same_target_place(k, state)]
        return min(candidates, key=lambda k: float(np.linalg.norm(self.place[k] - self.place[state])), default=state)

    def _state_by_colour_and_size(self, frame: np.ndarray, view: int, foreign: np.ndarray) -> int:
        """The state that a target in an unknown place looks like, by its colours and its size."""
        colours, size = _colour_histogram(frame, foreign), foreign.sum()
        likeness = []
        for picture, outline in zip(self.pictures[:, view], self.target_masks[:, view], strict=True):
            common = float(np.minimum(colours, _colour_histogram(picture, outline)).sum())
            likeness.append(common * min(size, outline.sum()) / max(size, outline.sum()))
        best = int(np.argmax(likeness))
        return best if likeness[best] >= ALIKE else ELSEWHERE


def _first_false_after_true(flags: Sequence[bool]) -> int | None:
    """The first False after a True; None where there is none."""
    if True not in flags or False not in flags[flags.index(True) :]:
        return None
    return flags.index(False, flags.index(True))


@dataclass(frozen=True)
class ClipStory:
    """What the frames of a clip show, one after the other."""

    scene: SceneDescription
    readings: tuple[FrameReading | None, ...]

    @cached_property
    def valid_readings(self) -> list[FrameReading]:
        return [reading for reading in self.readings if reading is not None]

    @cached_property
    def target_in_sight_flags(self) -> list[bool]:
        return [reading.in_sight for reading in self.valid_readings]

    @cached_property
    def first_reading_without_target(self) -> int | None:
        """The first frame without the target after one with it."""
        return _first_false_after_true(self.target_in_sight_flags)

    @property
    def in_view(self) -> bool:
        return self.valid_readings[-1].in_sight

    @property
    def hidden(self) -> bool:
        return self.first_reading_without_target is not None

    @property
    def returned(self) -> bool:
        return self.hidden and any(self.target_in_sight_flags[self.first_reading_without_target :])

    @property
    def has_place_left_and_returned(self) -> bool:
        """Whether the target's place goes out of sight, or the target does, and the place comes into sight again."""
        there = [reading.place_in_sight for reading in self.valid_readings]
        hidden_from = _first_false_after_true(there)
        return hidden_from is not None and any(there[hidden_from:])

    @cached_property
    def last_clear_look_before_leaving(self) -> FrameReading | None:
        """The last good look before the target left."""
        looks = [reading for reading in self.valid_readings[: self.first_reading_without_target] if reading.clear]
        return looks[-1] if looks else None

    @cached_property
    def last_look_after_return(self) -> FrameReading | None:
        """The last good look after it came back; any look where there is no good one."""
        if not self.returned:
            return None
        looks = [reading for reading in self.valid_readings[self.first_reading_without_target :] if reading.in_sight]
        return ([reading for reading in looks if reading.clear][-1:] or looks)[-1]

    def _has_event_gone_on(self, now: FrameReading, state: int) -> bool:
        """Whether a lasting event has gone on, since it was last seen, for at least half of what the time allows."""
        then, share = self.last_clear_look_before_leaving, 0.0
        if then is not None and then.place >= 0:
            share = max(float(self.scene.went[then.state if then.state >= 0 else then.place]), 0.0)
        since = now.time - then.time if then is not None else now.time
        return bool(self.scene.went[state] >= min(share + PACE * since / self.scene.seconds, 0.9))

    @property
    def spatial(self) -> bool:
        """Whether the target came back to the place where the event puts it."""
        scene, now = self.scene, self.last_look_after_return
        if now is None or now.place < 0:
            return False
        if scene.seconds and not scene.is_same_target_place(0, scene.final_state):  # it is on its way
            return bool(scene.went[now.place] >= 0) and self._has_event_gone_on(now, now.place)
        return scene.is_same_target_place(now.place, scene.final_state)

    @property
    def state(self) -> bool:
        """Whether the target came back looking as the event leaves it by then."""
        scene, now = self.scene, self.last_look_after_return
        if now is None or now.state < 0 or scene.look[now.state] != scene.look[scene.final_state]:
            return False
        if scene.seconds and scene.is_same_target_place(0, scene.final_state):
            path = np.flatnonzero(scene.went >= 0)  # the event has gone as far as in one of these, wherever that is
            return self._has_event_gone_on(now, path[np.argmin(np.abs(scene.amount[path] - scene.amount[now.state]))])
        return True

    @property
    def event_progress(self) -> float:
        """The share of the event that lies behind the target in the end; 0 where it never came back."""
        now = self.last_look_after_return or self.last_clear_look_before_leaving
        if now is None or now.state < 0:
            return 0.0
        if self.scene.seconds:
            return max(float(self.scene.went[now.state]), 0.0)
        return float(self.spatial and self.state)


class InstrumentedJudge(Judge):
    """A judge that reads the pixels of scenes whose descriptions it was given."""

    batch = 64

    def __init__(self, folder: Path) -> None:
        paths = sorted(folder.glob("*.npz")) if folder.is_dir() else []
        if not paths:
            raise UsageError(f"{folder}: no scene descriptions (*.npz) found; {HINT}")
        self.paths = paths
        digests = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
        scenes = hashlib.sha256(digests).hexdigest()[:24]
        self.facts: Mapping[str, object] = {
            "judge": "instrumented", "model": "instrumented", "version": 1, "scenes": scenes,
        }  # fmt: skip
        self._stories: dict[tuple[str, str], ClipStory | None] = {}

    @cached_property
    def scenes(self) -> list[SceneDescription]:
        return [read_scene_description(path) for path in self.paths]

    def close(self) -> None:
        self._stories.clear()

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """A reply to each question it knows; an empty one, which is no answer, to the others."""
        pictures = frames.pictures()
        return [
            Reply(self._answer_text(frames, pictures, question), usage=Usage(int(k == 0)), model="instrumented")
            for k, question in enumerate(questions)
        ]

    def _answer_text(self, frames: Frames, pictures: Sequence[np.ndarray], question: Question) -> str:
        for colour in COLOURS:
            if f"filled with the colour {colour} from edge to edge" in question.text:
                return yes_no_text(plain_colour_name(pictures[-1]) == colour)
        tell = find_story_answer_function(question, self.scenes)
        story = self._story_of_frames(frames, pictures, question) if tell is not None else None
        return tell(story) if tell is not None and story is not None and len(story.valid_readings) >= 2 else ""

    def _story_of_frames(self, frames: Frames, pictures: Sequence[np.ndarray], question: Question) -> ClipStory | None:
        """The frames as a story of the scene they show; None where they show none that is described."""
        name = str(question.about.get("scene", ""))
        candidates = [one for one in self.scenes if (one.name == name if name else one.prompt in question.text)]
        # Frames of another scene than the one that is asked about are read as what they show.
        for some in (candidates, self.scenes):
            key = frames.digest, ",".join(scene.name for scene in some)
            if some and key not in self._stories:
                self._stories[key] = _story_of_nearest_scene(some, pictures, frames.times)
            if some and self._stories[key] is not None:
                return self._stories[key]
        return None


def _story_of_nearest_scene(
    scenes: Sequence[SceneDescription], pictures: Sequence[np.ndarray], times: Sequence[float]
) -> ClipStory | None:
    """The story of the scene that looks most like the pictures; None where none does."""
    differences = [[scene.nearest_view_and_difference(one)[1] for one in pictures] for scene in scenes]
    unlike = np.median(differences, axis=1)
    if min(unlike) > UNLIKE:
        return None
    scene = scenes[int(np.argmin(unlike))]
    return ClipStory(scene, tuple(map(scene.read_frame, pictures, times)))


# Given a question: how a story answers it, in the form that the question wants; None where it is not known.
StoryAnswerLookup = Callable[[Question], "StoryAnswerFunction | None"]
StoryAnswerFunction = Callable[[ClipStory], str]
KNOWN_QUESTIONS: Registry[StoryAnswerLookup] = Registry("kind of question that a story answers")


def register_story_answers(id: str) -> Callable[[StoryAnswerLookup], StoryAnswerLookup]:
    """Register how the questions of a benchmark are answered from what a clip shows."""
    return partial(KNOWN_QUESTIONS.add, id)


def find_story_answer_function(question: Question, scenes: Sequence[SceneDescription]) -> StoryAnswerFunction | None:
    """How a story answers a question; None where this judge does not know."""
    of_scenes = (scene.questions[question.text] for scene in scenes if question.text in scene.questions)
    ask, negate = question.about.get("ask"), bool(question.about.get("negate", False))
    if ask is None:
        ask, negate = next(of_scenes, ("", False))
    if ask in FACTS:
        return lambda story: yes_no_text(getattr(story, str(ask)) != negate)
    return next((answer for lookup in KNOWN_QUESTIONS.values() if (answer := lookup(question)) is not None), None)


def read_scene_description(path: Path) -> SceneDescription:
    """A scene description from its file."""
    arrays = load_npz(path)
    try:
        return SceneDescription(
            name=path.stem,
            **{name: arrays[name] for name in ("views", "lit", "place", "look", "amount", "went")},
            pictures=arrays["views"] + arrays["marks"],
            prompt=str(arrays["prompt"]),
            kind=str(arrays["kind"]),
            seconds=float(arrays["seconds"]),
            questions={
                str(text): (str(ask), bool(negate))
                for text, ask, negate in zip(*(arrays[name] for name in ("questions", "asks", "negate")), strict=True)
            },
        )
    except KeyError as error:
        raise UsageError(f"{path}: not a scene description: {error} is missing; {HINT}") from None


def plain_colour_name(picture: np.ndarray) -> str:
    """The name of the one colour that fills a picture; "" where it is not plain."""
    if picture.std(axis=(0, 1)).max() > 6:
        return ""
    return min(COLOURS, key=lambda name: float(np.abs(picture.mean(axis=(0, 1)) - COLOURS[name]).sum()))


def downscale_eightfold(picture: np.ndarray) -> np.ndarray:
    """A picture at an eighth of its size, as float."""
    import cv2

    size = max(picture.shape[1] // THUMB, 1), max(picture.shape[0] // THUMB, 1)
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.float32)


def _resize_to_height_width(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    import cv2

    if picture.shape[:2] == size:
        return picture
    return np.asarray(cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA))


def _smoothed_channel_difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """By how many grey levels two pictures differ around each pixel, in the colour in which they differ most.

    Both are smoothed first: compression moves colours by a pixel or two, which is not a difference.
    """
    import cv2

    one, other = (cv2.blur(picture.astype(np.float32), (5, 5)) for picture in (one, other))
    return np.asarray(np.abs(one - other).max(axis=2))


def _mask_of_large_components(mask: np.ndarray) -> np.ndarray:
    """The pieces of a mask that are at least half as large as the largest one."""
    import cv2

    _, labels, facts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    areas = facts[1:, cv2.CC_STAT_AREA]
    return np.isin(labels, np.flatnonzero(areas >= 0.5 * areas.max(initial=0)) + 1)


def _share_of_difference_explained(
    frame: np.ndarray, empty: np.ndarray, picture: np.ndarray, where: np.ndarray
) -> float:
    """The share of what sets a frame apart from the empty place that a known picture explains."""
    shown = frame[where].astype(np.float32)
    remaining, total = (np.abs(shown - reference[where]).mean() for reference in (picture, empty))
    return float(1 - remaining / max(total, 1e-6))


def _colour_histogram(picture: np.ndarray, where: np.ndarray) -> np.ndarray:
    """How often each of 384 colours occurs in a part of a picture."""
    import cv2

    lab = cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_RGB2LAB)[where].astype(int)
    bins = (lab[:, 0] * 6 // 256, *(np.clip((lab[:, k] - 64) * 8 // 128, 0, 7) for k in (1, 2)))
    counts = np.bincount(np.ravel_multi_index(bins, (6, 8, 8)), minlength=384)
    return np.asarray(counts / max(counts.sum(), 1))


def yes_no_text(yes: bool) -> str:
    """Yes or no."""
    return "yes" if yes else "no"
