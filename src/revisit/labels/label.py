"""Label: one rater's answer to one question about one clip or one pair of clips; a line of labels.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import convert_read_errors, parse_numbered_json_lines

SCHEMA = 1
TASKS = ("trigger", "pairwise", "answer", "review", "marks", "failure")
PREFERENCES = ("a", "b", "tie", "both_bad", "cannot_judge")  # a is the clip of `case`, b that of `other`
CANNOT, JUDGEABLE = "cannot_judge", "judgeable"
HIDDEN = ("never hidden", "hidden, returned", "hidden, not returned", "cannot tell")  # answers of marks
GONE, BACK = "gone", "back"  # frames of marks: the first in which nothing of the target shows, and all of it again


@dataclass(frozen=True)
class Box:
    """A target in a frame, as fractions x0, y0, x1, y1 of it."""

    name: str
    box: tuple[float, float, float, float]
    frame: int = 0


@dataclass(frozen=True)
class Label:
    """What one rater said. `other` and its facts are those of the second clip of a pair."""

    task: str
    item: str
    rater: str
    question: str  # id of the question: a dimension, a number of the bank, `trigger`, `target`, `failure`
    answer: str
    case: str
    model: str = ""
    sample: str = ""
    subset: str = ""
    condition: str = ""
    seed: int = 0
    clip: str = ""  # path, from the folder of the file on
    digest: str = ""  # of the clip
    other: str = ""
    other_model: str = ""
    other_clip: str = ""
    other_digest: str = ""
    dimension: str = ""  # what the question is about
    text: str = ""  # the question as it was shown
    polarity: str = ""  # positive or negative, of questions of a bank
    frames: Mapping[str, int] = field(default_factory=dict)  # name -> frame, counted from 0 in the clip
    boxes: tuple[Box, ...] = ()
    comment: str = ""
    swapped: bool = False  # whether b stood on the left; `answer` is never swapped
    form: int = 0  # of a survey
    right: str = ""  # the known answer, of gold questions and examples
    example: bool = False  # shown with its answer, to practise: in no figure
    seconds: float = 0.0
    at: str = ""  # when, in UTC

    @property
    def scene(self) -> str:
        """What clips of one scene share."""
        return "/".join(part for part in (self.subset, self.sample) if part)

    @property
    def is_preference(self) -> bool:
        """Whether it prefers one clip of a pair to the other, and does not say which of them can be judged."""
        return self.task == "pairwise" and self.question != JUDGEABLE


def pair_and_question(label: Label) -> tuple[str, str, str]:
    """The clips that a label compares, and in what."""
    return label.case, label.other, label.question


def orient_pairs_alike(labels: Iterable[Label]) -> list[Label]:
    """The labels with the clips of a pair in the order in which they came first, whichever stood on the left for whom.

    Files of other tools may have the clips of a pair in another order for every rater.
    """
    order: dict[frozenset[str], str] = {}
    return [
        label if not label.other or order.setdefault(frozenset((label.case, label.other)), label.case) == label.case
        else _exchange_clips_of_pair(label)
        for label in labels
    ]  # fmt: skip


def _exchange_clips_of_pair(label: Label) -> Label:
    other = {"a": "b", "b": "a"}
    return replace(
        label, case=label.other, other=label.case, model=label.other_model, other_model=label.model,
        clip=label.other_clip, other_clip=label.clip, digest=label.other_digest, other_digest=label.digest,
        answer=other.get(label.answer, label.answer), right=other.get(label.right, label.right),
        swapped=not label.swapped,
    )  # fmt: skip


NAMES = tuple(part.name for part in fields(Label))


def label_to_json(label: Label) -> dict[str, object]:
    """The content of a label's line: schema, and every field that says something."""
    content = {"schema": SCHEMA, **asdict(label)}
    content["boxes"] = [{"name": one.name, "frame": one.frame, "box": list(one.box)} for one in label.boxes]
    needed = ("schema", "task", "item", "rater", "question", "answer", "case")
    return {name: value for name, value in content.items() if value or name in needed}


def label_from_json(line: Any, where: str) -> Label:
    """The label of a line; every fault is one sentence that names the place."""
    if not isinstance(line, dict):
        raise UsageError(f"{where}: expected a JSON object, a label")
    if line.get("schema", SCHEMA) != SCHEMA:
        raise UsageError(f"{where}: schema {line.get('schema')!r}; this Revisit reads schema {SCHEMA}")
    unknown = sorted(set(line) - set(NAMES) - {"schema"})
    missing = [name for name in ("task", "rater", "question", "answer", "case") if not str(line.get(name) or "")]
    if unknown or missing:
        what = f"unknown field {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise UsageError(f"{where}: {what}; docs/labels.md lists the fields")
    if line["task"] not in TASKS:
        raise UsageError(f"{where}: unknown task {line['task']!r}; choose one of {', '.join(TASKS)}")
    allowed = {"pairwise": PREFERENCES, "marks": HIDDEN}.get(line["task"], ())
    if allowed and line["question"] != JUDGEABLE and line["answer"] not in allowed:
        raise UsageError(f"{where}: the answer is {line['answer']!r}; expected one of {', '.join(allowed)}")
    try:
        values = {name: READERS.get(name, str)(value) for name, value in line.items() if name != "schema"}
        return Label(**{"item": values["case"], **values})
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}; docs/labels.md lists the fields") from None


def read_label_files(paths: Sequence[Path]) -> list[Label]:
    """The labels of files or of folders with a labels.jsonl, clips as paths from here on."""
    labels: list[Label] = []
    for place in paths:
        path = place / "labels.jsonl" if place.is_dir() else place
        if not path.is_file():
            run = place.parent if place.name == "labels" else "RUN"
            raise UsageError(
                f"{place}: neither a project nor a file of labels; `revisit annotate {run}` collects labels, and "
                "`revisit labels export` writes them to a labels.jsonl"
            )
        with convert_read_errors(path, "a file of labels"):
            for number, content in parse_numbered_json_lines(path.read_text(encoding="utf-8-sig")):
                where = f"{path}, line {number}"
                if content is None:
                    raise UsageError(f"{where}: not JSON; expected a label per line")
                labels.append(_change_clip_paths(label_from_json(content, where), path.parent.joinpath))
    return labels


def label_lines(labels: Iterable[Label], folder: Path) -> Iterator[str]:
    """Lines of labels.jsonl for a file in `folder`: paths of clips begin there."""
    for label in labels:
        moved = _change_clip_paths(label, lambda clip: os.path.relpath(clip, folder))
        yield json.dumps(label_to_json(moved), ensure_ascii=False, allow_nan=False)


def _change_clip_paths(label: Label, move: Callable[[str], str | Path]) -> Label:
    """The label with the paths of its clips changed, where it has any."""
    clip, other = (path and str(move(path)) for path in (label.clip, label.other_clip))
    return replace(label, clip=clip, other_clip=other)


def _parse_box(entry: Any) -> Box:
    box = tuple(float(value) for value in entry["box"])
    if not is_fraction_box(box):
        raise ValueError(f"the box {entry['box']!r} is not [x0, y0, x1, y1] as fractions of the frame")
    return Box(str(entry.get("name") or "target"), (box[0], box[1], box[2], box[3]), int(entry.get("frame", 0)))


def is_fraction_box(box: Sequence[float]) -> bool:
    """Whether numbers are x0, y0, x1, y1 as fractions of a frame."""
    return len(box) == 4 and 0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1


def _parse_frame_number(value: Any) -> int:
    frame = int(value)
    if frame != value or frame < 0:
        raise ValueError(f"a frame is {value!r}; frame numbers must be whole numbers from 0")
    return frame


# How the value of a field is read that is no text.
READERS: Mapping[str, Callable[[Any], Any]] = {
    "boxes": lambda boxes: tuple(map(_parse_box, boxes)),
    "frames": lambda frames: {str(name): _parse_frame_number(frame) for name, frame in dict(frames).items()},
    **dict.fromkeys(("seed", "form"), int),
    "seconds": float,
    **dict.fromkeys(("swapped", "example"), bool),
}
