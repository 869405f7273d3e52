"""Cases from a folder in MBench's layout: one per line of every model's list whose video is there.

Reading is lenient: a line that cannot be used is refused with its reason and the rest is scored. `check` is strict.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.core.text import count_and_noun, join_names, read_yaml_file, split_commas
from revisit.media import VIDEO_SUFFIXES
from revisit.media.files import file_exists
from revisit.suites.mbench.dataset import ANCHORS, DatasetProblem, ListItem, MBenchDataset, open_mbench_dataset
from revisit.suites.mbench.names import SUBSETS

SOURCE = "source_video"
POINT = 0.2  # side of the square around a point, as a share of the frame's shorter side: its size is not known
SAME = 0.05  # how far the size beside an anchor may be from the frame's to be that of the frame


def is_mbench_dataset(source: Path) -> bool:
    """Whether there is a dataset.yaml that names a dataset of MBench."""
    try:
        open_mbench_dataset(source)
    except UsageError:
        return False
    return True


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    models: str = "",
    subsets: str = "",
    conditions: str = "",
    samples: str = "",
    artifacts: str = "",
    questions: str = "",
) -> Iterator[Case | Rejected | Remark]:
    """Cases of the chosen models, subsets, conditions and samples, each a list with commas; all by default.

    `artifacts` are folders that `revisit mbench prepare --output` filled; `questions` is a file of wording.
    """
    wording = read_judge_wording(Path(questions)) if questions else {}
    data = open_mbench_dataset(source, roots, [Path(folder) for folder in split_commas([artifacts])])
    keep = Filter.from_options(data, models, subsets, conditions, samples)
    repeated: list[str] = []
    conditions_there, samples_there = set[str](), set[str]()
    for model in keep.models:
        for entry in data.items_and_problems(model):
            if isinstance(entry, ListItem):
                conditions_there.add(entry.condition)
                samples_there.add(entry.sample)
            if isinstance(entry, DatasetProblem):
                # A line that no filter can be asked about is always told; an item that is there twice is scored once.
                if entry.kind == "duplicate item":
                    repeated.append(f"{entry.item} of {model}")
                else:
                    yield Rejected(f"{entry.item or f'line {entry.line}'}@{model}", _problem_sentence(entry), model)
            elif keep.accepts(entry):
                case = case_or_rejected(data, entry)
                if wording and isinstance(case, Case):
                    ids = (f"trigger.{case.subset}", "progress")
                    own_wording = {question_id: words for question_id, words in wording.items() if question_id in ids}
                    case = replace(case, annotations={**case.annotations, "wording": own_wording})
                yield case
    data.refuse_unknown("condition", keep.conditions, conditions_there)
    data.refuse_unknown("sample", keep.samples, samples_there)
    if repeated:
        yield Remark(
            f"{count_and_noun(len(repeated), 'item')} on several lines of a model's list, of which the last counts: "
            f"{join_names(repeated)}; `revisit mbench validate` names the lines"
        )


@dataclass(frozen=True)
class Filter:
    """Which items are wanted."""

    models: Sequence[str]
    subsets: Sequence[str]
    conditions: Sequence[str]
    samples: Sequence[str]

    @classmethod
    def from_options(cls, data: MBenchDataset, models: str, subsets: str, conditions: str, samples: str) -> Filter:
        """The filter of lists with commas; a model or a subset that the dataset does not have is refused."""
        model_names, kinds = split_commas([models]), split_commas([subsets])
        data.refuse_unknown("model", model_names, data.models)
        data.refuse_unknown("subset", kinds, data.subsets)
        if not data.models:
            raise UsageError(f"{data.root}: no model has a list; expected models/<id>/samples.jsonl")
        return cls(model_names or data.models, kinds, split_commas([conditions]), split_commas([samples]))

    def accepts(self, item: ListItem) -> bool:
        """Whether an item is wanted."""
        filters = ((item.subset, self.subsets), (item.condition, self.conditions), (item.sample, self.samples))
        return all(not names or value in names for value, names in filters)


def case_or_rejected(data: MBenchDataset, item: ListItem) -> Case | Rejected:
    """The case of an item, or why there is none."""
    title = f"{item.id}@{item.model}"
    stray = next((problem for problem in item.problems if problem.kind == "wrong subset"), None)
    if stray is not None:
        return Rejected(title, _problem_sentence(stray), item.model, item.subset, item.condition)
    if item.video is None:
        video_problems = [problem for problem in item.problems if "video" in problem.kind and problem.violation]
        absent = not video_problems or video_problems[-1].kind in ("missing video", "broken video link")
        reason = _problem_sentence(video_problems[-1]) if video_problems else "missing video"
        return Rejected(title, reason, item.model, item.subset, item.condition, missing=absent)
    facts = item.facts
    segments = segment_captions(facts)
    anchor = find_object_anchor(data, item)
    card = facts.get("object_card")
    annotations: dict[str, object] = {
        "setting": data.setting,
        "item_id": item.id,
        "anchor": anchor.fields,
        "anchor_kind": anchor.kind,
        "anchor_from": anchor.source,
        "segments": segments,
        "caption_segments": segments,  # as the judges' questions read them
        "action": item.action if data.setting == "A" else "",
        "motion": data.declared_motion_of_item(item) if data.setting == "A" else None,
        "length": item.seconds_in_condition,
        "object_card": card if isinstance(card, Mapping) else None,
        "object": object_description(facts),
    }
    return Case(
        id=title,
        suite="mbench",
        model=item.model,
        sample=item.sample,
        clip=Clip(item.video),
        reference=find_source_video(data, item),
        subset=item.subset,
        condition=item.condition,
        prompt=caption_or_joined_segments(facts),
        camera=item.action if data.setting == "A" else "",
        target=anchor.target,
        target_name="" if anchor.target else object_description(facts),
        annotations=annotations,
        artifacts=item.artifacts,
    )


def find_source_video(data: MBenchDataset, item: ListItem) -> Clip | None:
    """The filmed video that a sample was made from, which is what the truth scores; None where it is not there."""
    sample = data.root / "samples" / item.subset / item.sample
    video = next((path for suffix in VIDEO_SUFFIXES if file_exists(path := sample / f"{SOURCE}{suffix}")), None)
    return None if video is None else Clip(video)


def caption_or_joined_segments(facts: Mapping[str, object]) -> str:
    """The caption of a clip, or those of its parts in a row."""
    caption = facts.get("caption")
    return caption.strip() if isinstance(caption, str) else " ".join(segment_captions(facts))


def segment_captions(facts: Mapping[str, object]) -> list[str]:
    """The captions of the parts of a clip, written as texts or as objects with a caption."""
    segments = facts.get("caption_segments")
    captions = []
    for part in segments if isinstance(segments, list) else ():
        if isinstance(part, dict):
            part = next((part[k] for k in ("caption", "text", "prompt") if k in part), None)
        if isinstance(part, str) and part.strip():
            captions.append(part.strip())
    return captions


@dataclass(frozen=True)
class ObjectAnchor:
    """Where the object is in the first frame, as far as anybody says."""

    fields: dict[str, object] | None = None
    source: str | None = None  # the sample, or the side file
    target: Target | None = None  # None where the anchor lies in no frame
    kind: str | None = None  # a point or a box


def find_object_anchor(data: MBenchDataset, item: ListItem) -> ObjectAnchor:
    """The anchor of the object of an item; an empty one where there is none."""
    anchors = {"sample": item.facts.get("object_anchor"), ANCHORS: data.anchors_from_side_file.get(item.sample)}
    for source, anchor in anchors.items():
        if isinstance(anchor, Mapping) and all(_is_pixel_number(anchor.get(name)) for name in ("center_x", "center_y")):
            return ObjectAnchor(dict(anchor), source, *_target_and_anchor_kind(data, item, anchor))
    return ObjectAnchor()


def _target_and_anchor_kind(
    data: MBenchDataset, item: ListItem, anchor: Mapping[str, object]
) -> tuple[Target | None, str | None]:
    """The target of an anchor, and whether the anchor is a point or a box.

    Beside the centre there are a width and a height. In the published demo these are the frame's, so the anchor is a
    point. Where the size of the first frame is known and another, they are the object's.
    """
    called = object_description(item.facts) or "target"
    frame = read_png_size(data.root / "samples" / item.subset / item.sample / "first_frame.png")
    x, y = (float(value) for name in ("center_x", "center_y") if _is_pixel_number(value := anchor[name]))
    sides = [float(value) for name in ("width", "height") if _is_pixel_number(value := anchor.get(name))]
    of_frame = frame is None or all(abs(a - b) <= SAME * b for a, b in zip(sides, frame, strict=False))
    if len(sides) == 2 and frame is not None and not of_frame:
        half = sides[0] / 2, sides[1] / 2
        corners = (x - half[0], y - half[1], x + half[0], y + half[1])
        box = _clip_box_to_frame([c / s for c, s in zip(corners, (*frame, *frame), strict=True)])
        return (None if box is None else Target(called, box)), "box"
    width, height = sides if len(sides) == 2 else frame or (0, 0)
    if not (0 <= x <= width and 0 <= y <= height and min(width, height) > 0):
        return None, None  # neither inside a frame of this size, nor in one that is known
    side = POINT * min(width, height) / 2
    box = _clip_box_to_frame([(x - side) / width, (y - side) / height, (x + side) / width, (y + side) / height])
    return (None if box is None else Target(called, box, (x / width, y / height))), "point"


def read_png_size(path: Path) -> tuple[int, int] | None:
    """Width and height of a PNG file from its head, or None."""
    try:
        with path.open("rb") as file:
            head = file.read(24)
    except OSError:
        return None
    return struct.unpack(">II", head[16:]) if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) == 24 else None


def _clip_box_to_frame(box: Sequence[float]) -> tuple[float, float, float, float] | None:
    x0, y0, x1, y1 = (round(min(max(value, 0.0), 1.0), 6) for value in box)
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _is_pixel_number(value: object) -> TypeGuard[float]:
    """Whether this is a number of pixels, not one that no picture has."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def object_description(facts: Mapping[str, object]) -> str:
    """What the object is called, as a detector is asked for it: core attributes, then the name; empty if nobody says.

    An object card is a mapping with a name and attributes (a list, a text, or a mapping of texts), or the words.
    """
    card = facts.get("object_card")
    if isinstance(card, str):
        return card.strip()
    fields: Mapping[str, object] = card if isinstance(card, Mapping) else {}
    name = fields.get("name") or facts.get("object_name") or ""
    attributes = fields.get("attributes") or ()
    if isinstance(attributes, Mapping):
        attributes = attributes.values()
    listed = list(attributes) if isinstance(attributes, Iterable) and not isinstance(attributes, str) else [attributes]
    words = [*listed, name] if name else []
    return " ".join(str(word).strip() for word in words if isinstance(word, str) and word.strip())


def _problem_sentence(problem: DatasetProblem) -> str:
    return f"{problem.kind}: {problem.text} ({problem.place})"


IDS = (*(f"trigger.{subset}" for subset in SUBSETS), "progress")
LONGEST = 20_000  # characters


def read_judge_wording(path: Path) -> dict[str, str]:
    """The user's own wording of the judge's questions, by question id; one that is left out is asked in our words."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file of questions")
    content = read_yaml_file(path, "neither YAML nor JSON")
    if not isinstance(content, dict) or not content:
        raise UsageError(f"{path}: expected question ids with their wording; the ids are {', '.join(IDS)}")
    for question_id, words in content.items():
        if question_id not in IDS:
            raise UsageError(f"{path}: unknown question {str(question_id)[:80]!r}; the ids are {', '.join(IDS)}")
        if not isinstance(words, str) or not 0 < len(words.strip()) <= LONGEST:
            raise UsageError(f"{path}: {question_id} is {str(words)[:60]!r}; expected the wording of a question")
    return {question_id: words.strip() for question_id, words in content.items()}
