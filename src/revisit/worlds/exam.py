"""An exam for judges: rendered clips with questions whose right answers are known exactly.

<folder>/clips/<scene>-<kind>.mp4   what a model with a known failure (or none) makes of a scene
<folder>/scenes/<scene>.npz         the public description of each scene (`describe`)
<folder>/labels.jsonl               one line per question: clip, question, right answer (docs/judge-calibration.md)

Four things are asked of a clip, each in two ways, so that yes is right in one and no in the other: did the target go
out of sight (hidden), was it seen again (returned), and if so, in the right place (spatial) and as it should be by
then (state). A question whose answer the failure leaves open is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.media import encode_mp4, save_npz
from revisit.media.files import write_json_lines
from revisit.worlds.describe import public_scene_description, question_topics_and_negations
from revisit.worlds.events import EVENTS
from revisit.worlds.failures import camera_path, failure_of_kind, generate
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world
from revisit.worlds.story import film_along_poses
from revisit.worlds.workers import Progress
from revisit.worlds.world import World

SIZE, FRAMES, FPS = (144, 256), 25, 8.0  # as small as the target can still be told
FIRST = 2000  # added to a scene's number: no place of the demo or the audit is among these


@dataclass(frozen=True)
class Story:
    """A place, a target, what happens to it, and how it is lost and found."""

    place: str
    kind: str
    event: str
    script: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.event}-{self.script}"

    def world(self, seed: int) -> World:
        """Where it is played."""
        return make_world(seed, self.place, self.kind, block=EVENTS[self.event].needs_perch)


EXAM = read_package_yaml(__package__, "exam.yaml")
STORIES, KINDS = [Story(*story) for story in EXAM["stories"]], EXAM["kinds"]


def exam_film(number: int, story: Story, size: tuple[int, int] = SIZE) -> Film:
    """The film of a story; the number chooses the place and its things."""
    return play(story.world(FIRST + number), story.script, story.event, size, frames=FRAMES, fps=FPS)


def true_answers(film: Film, failure_kind: str) -> dict[str, bool]:
    """The right answers about what a model with a failure makes of a film; open ones are left out."""
    film_of_model = film_along_poses(film, camera_path(failure_kind, film))
    visible = [_is_target_seen_or_unknown(film_of_model, frame, failure_kind) for frame in range(len(film))]
    answers: dict[str, bool] = {}
    if None in visible:
        return answers
    hidden_at = visible.index(False) if False in visible else None
    answers["hidden"] = hidden_at is not None
    answers["returned"] = hidden_at is not None and True in visible[hidden_at:]
    if answers["returned"]:
        answers |= _true_place_and_state_answers(film, failure_kind)
    return answers


def exam_label_rows(film: Film, failure_kind: str) -> Iterator[dict[str, object]]:
    """The questions about a clip as lines of a label file, without the clip."""
    right = true_answers(film, failure_kind)
    for text, (ask, negate) in question_topics_and_negations(film).items():
        if ask in right:
            yield {
                "question": text,
                "label": "yes" if right[ask] != negate else "no",
                "subset": ask,
                "polarity": "negative" if negate else "positive",
                "about": {"ask": ask, "negate": negate},
            }


def render_exam(
    folder: Path,
    *,
    stories: Sequence[Story] = STORIES,
    kinds: Sequence[str] = KINDS,
    size: tuple[int, int] = SIZE,
    progress: Progress = lambda done, steps, what: None,
) -> Path:
    """Write clips, descriptions and labels, and return the path of the labels; clips that are there are kept."""
    lines: list[dict[str, object]] = []
    for number, story in enumerate(stories):
        progress(number, len(stories), story.name)
        name = f"{number:02d}-{story.name}"
        film = exam_film(number, story, size)
        if not (folder / "scenes" / f"{name}.npz").is_file():
            save_npz(folder / "scenes" / f"{name}.npz", public_scene_description(film), compress=True)
        for kind in kinds:
            if kind != "perfect" and not failure_of_kind(kind).applies(film):
                continue
            clip = f"clips/{name}-{kind}.mp4"
            if not (folder / clip).is_file():
                encode_mp4(folder / clip, generate(kind, film), FPS)
            for row in exam_label_rows(film, kind):
                lines.append({"clip": clip, "pair": f"{name}-{kind}-{row['subset']}", **row})
    progress(len(stories), len(stories), "done")
    path = folder / "labels.jsonl"
    write_json_lines(path, lines, ascii=True)
    return path


def _is_target_seen_or_unknown(film: Film, frame: int, failure_kind: str) -> bool | None:
    """Whether a frame shows the target; None where that depends on when a sudden event is put off."""
    if failure_kind == "vanish" and frame >= sum(film.phases) // 2:
        return False
    either = {film.target_visible(frame, state) for state in (film.states[0], film.states[frame])}
    same_path = np.array_equal(film.states[0].place, film.states[frame].place)
    if len(either) > 1 and not same_path and failure_of_kind(failure_kind).path is not None:
        return None
    return film.target_visible(frame)


def _true_place_and_state_answers(film: Film, failure_kind: str) -> dict[str, bool]:
    """Whether the target came back in the right place and in the right state."""
    first, last = film.states[0], film.states[-1]
    goes = float(np.linalg.norm(np.subtract(first.place, last.place))) > 0.1
    changes = first.look != last.look or abs(first.amount - last.amount) > 0.1
    event_is_lost = failure_kind in ("state_reset", "state_frozen")
    answers = {
        "spatial": failure_kind != "teleport" and not (event_is_lost and goes),
        "state": failure_kind != "colour_drift" and not (event_is_lost and changes),
    }
    if film.event in ("rolling", "falling"):
        del answers["state"]  # its place is all that these change, so wrong and right states are a matter of words
    return answers
