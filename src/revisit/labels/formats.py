"""Shapes: labels as other tools have them, out and in again.

WRBench and MBench publish no file of their votes that could be read here; their shapes follow the definitions of the
papers: WRBench's y is 1 (a is better), 0 (a tie) or -1, with whether the pair can be judged; MBench has a yes or no per
clip, and A, B or tie per pair and dimension. Label Studio's is the JSON that it imports and exports: frames count from
1, boxes are in percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.core.text import convert_read_errors, parse_json
from revisit.labels.label import BACK, CANNOT, GONE, TASKS, Box, Label

SIGNS = {"a": 1, "tie": 0, "both_bad": 0, "b": -1}
Row = dict[str, object]  # of a file that another tool reads
META = ("dimension", "text", "polarity")  # of a choice
FORMATS = ("label-studio", "wrbench", "mbench")


def wrbench_rows(labels: Iterable[Label]) -> list[Row]:
    """A row per rater, pair and dimension."""
    return [
        {
            "pair_id": label.item,
            "record": "/".join(part for part in (label.sample, label.condition) if part),
            "video_a": label.case,
            "video_b": label.other,
            "model_a": label.model,
            "model_b": label.other_model,
            "metric": label.question,
            "annotator": label.rater,
            "y": SIGNS.get(label.answer),
            "judgeable": label.answer != CANNOT,
            "both_bad": label.answer == "both_bad",
        }
        for label in labels
        if label.is_preference
    ]


def mbench_rows(labels: Iterable[Label]) -> list[Row]:
    """A row per rater and clip (trigger), or per rater, pair and dimension."""
    rows: list[Row] = []
    for label in labels:
        ids = {
            "subset": label.subset,
            "sample_id": label.sample,
            "condition_id": label.condition,
            "annotator": label.rater,
        }
        if label.task == "trigger" and label.answer != CANNOT:
            rows.append({"type": "trigger", **ids, "model_id": label.model, "triggered": label.answer == "yes"})
        elif label.is_preference and label.answer in SIGNS:
            choice = {1: "A", 0: "tie", -1: "B"}[SIGNS[label.answer]]
            models = {"model_a": label.model, "model_b": label.other_model}
            rows.append({"type": "pairwise", **ids, **models, "dimension": label.question, "preference": choice})
    return rows


def labels_from_rows(rows: Sequence[Mapping[str, Any]], file_format: str) -> list[Label]:
    """Labels of rows as `wrbench_rows` or `mbench_rows` writes them."""
    readers = {"wrbench": (_label_from_wrbench, "WRBench"), "mbench": (_label_from_mbench, "MBench")}
    read_row, name = readers[file_format]
    labels = []
    for number, row in enumerate(rows, 1):
        try:
            labels.append(read_row(row))
        except (KeyError, TypeError, ValueError) as error:
            fault = f"row {number} is not a label in {name}'s format: {error!s} is missing or invalid"
            raise UsageError(fault) from None
    return labels


def _label_from_wrbench(row: Mapping[str, Any]) -> Label:
    judged = bool(row.get("judgeable", True)) and row["y"] is not None
    tied = "both_bad" if row.get("both_bad") else "tie"
    answer = {1: "a", 0: tied, -1: "b"}[int(row["y"])] if judged else CANNOT
    sample, _, condition = str(row["record"]).partition("/")
    return Label(
        "pairwise", str(row["pair_id"]), str(row["annotator"]), str(row["metric"]), answer, str(row["video_a"]),
        str(row["model_a"]), sample, condition=condition, other=str(row["video_b"]), other_model=str(row["model_b"]),
        dimension=str(row["metric"]),
    )  # fmt: skip


def _label_from_mbench(row: Mapping[str, Any]) -> Label:
    """Cases are called as the suite calls them."""
    subset, sample, condition = (str(row[name]) for name in ("subset", "sample_id", "condition_id"))
    who, item = str(row["annotator"]), f"{subset}:{sample}:{condition}"
    if row.get("type") == "trigger" or "triggered" in row:
        model = str(row["model_id"])
        case, says = f"{item}@{model}", "yes" if row["triggered"] else "no"
        return Label("trigger", case, who, "trigger", says, case, model, sample, subset, condition, dimension="trigger")
    one, other, dimension = str(row["model_a"]), str(row["model_b"]), str(row["dimension"])
    answer = {"a": "a", "b": "b", "tie": "tie"}[str(row["preference"]).lower()]
    pair = "@".join((item, *sorted((one, other))))  # the models may stand in another order for every rater
    return Label(
        "pairwise", pair, who, dimension, answer, f"{item}@{one}", one, sample, subset, condition,
        other=f"{item}@{other}", other_model=other, dimension=dimension,
    )  # fmt: skip


def label_studio_tasks(labels: Iterable[Label]) -> list[Row]:
    """Tasks with the annotations of every rater."""
    tasks: list[Row] = []
    for number, labels_of_item in enumerate(group_items(labels, lambda label: label.item).values(), 1):
        first = labels_of_item[0]
        names = ("task", "item", "case", "model", "sample", "subset", "condition", "other", "other_model")
        data: Row = {name: getattr(first, name) for name in names if getattr(first, name)}
        data |= {"video": first.clip} | ({"video_b": first.other_clip} if first.other_clip else {})
        by_rater = group_items(labels_of_item, lambda label: label.rater)
        annotations = [
            {
                "completed_by": {"email": rater},
                "lead_time": own[0].seconds,
                "created_at": own[0].at,
                "result": [*map(_choice_part, own), *_box_frame_and_comment_parts(own[0])],
            }
            for rater, own in by_rater.items()
        ]
        tasks.append({"id": number, "data": data, "annotations": annotations})
    return tasks


def _annotation_part(id: str, name: str, kind: str, value: Row) -> Row:
    """A part of an annotation."""
    return {"id": id, "from_name": name, "to_name": "video", "type": kind, "value": value}


def _choice_part(label: Label) -> Row:
    meta = {name: getattr(label, name) for name in META if getattr(label, name)}
    choice = _annotation_part(f"q-{label.question}", label.question, "choices", {"choices": [label.answer]})
    return choice | ({"meta": meta} if meta else {})


def _box_frame_and_comment_parts(label: Label) -> list[Row]:
    regions: list[Row] = []
    for k, box in enumerate(label.boxes):
        x0, y0, x1, y1 = (100 * value for value in box.box)
        place: Row = {"frame": box.frame + 1, "enabled": True, "rotation": 0, "time": 0}
        place |= {"x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0}
        content: Row = {"sequence": [place], "labels": [box.name]}
        regions.append(_annotation_part(f"box-{k}", "box", "videorectangle", content))
    for name, frame in label.frames.items():
        value: Row = {"ranges": [{"start": frame + 1, "end": frame + 1}], "timelinelabels": [name]}
        regions.append(_annotation_part(f"at-{name}", "frames", "timelinelabels", value))
    if label.comment:
        regions.append(_annotation_part("comment", "comment", "textarea", {"text": [label.comment]}))
    return regions


def labels_from_label_studio(tasks: Any) -> list[Label]:
    """Labels of Label Studio's JSON: choices, boxes, ranges of frames and texts of each annotation."""
    if not isinstance(tasks, list):
        raise UsageError("expected the JSON list that Label Studio exports")
    labels: list[Label] = []
    for number, task in enumerate(tasks, 1):
        try:
            data = task["data"]
            kind = data.get("task") or ("pairwise" if data.get("video_b") else "trigger")
            if kind not in TASKS:
                raise UsageError(f"task {number}: there is no task {kind!r}; there are {', '.join(TASKS)}")
            case = str(data.get("case") or Path(str(data["video"])).stem)
            names = ("model", "sample", "subset", "condition", "other", "other_model")
            facts: dict[str, Any] = {name: str(data.get(name) or "") for name in names}
            facts |= {"clip": str(data.get("video") or ""), "other_clip": str(data.get("video_b") or "")}
            for annotation in task.get("annotations") or ():
                if not annotation.get("was_cancelled"):
                    labels += _labels_from_annotation(kind, str(data.get("item") or case), case, facts, annotation)
        except UsageError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"task {number} is not in Label Studio's format: {error!s}") from None
    return labels


def _labels_from_annotation(
    kind: str, item: str, case: str, facts: dict[str, Any], annotation: Mapping[str, Any]
) -> list[Label]:
    results = annotation.get("result") or []
    frames: dict[str, int] = {}
    boxes: list[Box] = []
    comment = ""
    for part in results:
        value = part["value"]
        if part["type"] == "videorectangle":
            first = value["sequence"][0]
            x, y = float(first["x"]) / 100, float(first["y"]) / 100
            far = min(1.0, x + float(first["width"]) / 100), min(1.0, y + float(first["height"]) / 100)
            boxes.append(Box(str((value.get("labels") or ["target"])[0]), (x, y, *far), int(first["frame"]) - 1))
        elif part["type"] == "timelinelabels":
            name = str(value["timelinelabels"][0])
            start, end = int(value["ranges"][0]["start"]) - 1, int(value["ranges"][0]["end"])
            frames |= {GONE: start, BACK: end} if name == "hidden" else {name: start}
        elif part["type"] == "textarea":
            comment = "\n".join(map(str, value["text"]))
    who = annotation.get("completed_by")
    who = (who.get("email") or who.get("id")) if isinstance(who, Mapping) else who
    rater = "unknown" if who is None else str(who)
    seconds, at = float(annotation.get("lead_time") or 0), str(annotation.get("created_at") or "")
    labels = []
    for part in results:
        if part["type"] == "choices":
            given = part.get("meta") or {}
            meta: dict[str, Any] = {name: str(given[name]) for name in META if name in given}
            labels += [
                Label(
                    kind, item, rater, str(part["from_name"]), str(choice), case, frames=frames, boxes=tuple(boxes),
                    comment=comment, seconds=seconds, at=at, **facts, **meta,
                )
                for choice in part["value"]["choices"]
            ]  # fmt: skip
    return labels


def read_foreign_labels(path: Path, file_format: str) -> list[Label]:
    """Labels of a file of another shape."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    if file_format not in FORMATS:
        raise UsageError(f"unknown format {file_format!r}; choose one of {', '.join(FORMATS)}")
    with convert_read_errors(path, f"a file of labels of {file_format}"):
        text = path.read_text(encoding="utf-8-sig")
        is_one_text = file_format == "label-studio"
        parts = [text] if is_one_text else [line for line in text.split("\n") if line.strip()]
        try:
            rows = [parse_json(part) for part in parts]
        except ValueError:
            raise UsageError(f"{path}: not JSON") from None
        return labels_from_label_studio(rows[0]) if is_one_text else labels_from_rows(rows, file_format)
