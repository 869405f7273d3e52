"""Labels of projects and files: loading, import, alignment with a run, and export, also as other tools and suites read.

In export several raters become one by majority (verdicts, answers), or by the median (frames, boxes). What they are
split on has no verdict.
"""

from __future__ import annotations

import io
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from revisit.core import Case, MissingPrerequisite, UsageError
from revisit.core.grouping import group_items
from revisit.core.text import join_names
from revisit.labels import formats
from revisit.labels.agreement import agreement_report
from revisit.labels.alignment import people_alignment
from revisit.labels.label import (
    BACK,
    CANNOT,
    GONE,
    NAMES,
    Box,
    Label,
    label_lines,
    orient_pairs_alike,
    pair_and_question,
    read_label_files,
)
from revisit.labels.project import FILE, Project, open_project
from revisit.labels.store import RaterAnswer, Store
from revisit.labels.tables import agreement_tables, alignment_tables, figure_numbers
from revisit.media import file_digest
from revisit.media.files import write_text_atomically
from revisit.media.text_files import csv_text
from revisit.results.record_files import write_json
from revisit.results.run import Run
from revisit.stats.agreement import most_frequent_vote

Files = dict[str, str | bytes]
PEOPLE = "people.json"  # in a run: what people say of it, for its report


def labels_of_project(project: Project, store: Store) -> list[Label]:
    """Every answer of every rater, a label each, with positions un-swapped."""
    names = {rater.id: rater.name for rater in store.raters()}
    return [label for answer in store.all_answers() for label in _labels_of_answer(project, answer, names)]


def _labels_of_answer(project: Project, answer: RaterAnswer, names: Mapping[str, str]) -> list[Label]:
    item = project.item_by_id.get(answer.item)
    if item is None:
        return []
    case = project.cases[item.cases[0]]
    other = project.cases[item.cases[1]] if len(item.cases) == 2 else None
    questions = {question.id: question for question in item.questions}
    boxes = tuple(Box(box["name"], tuple(box["box"]), box["frame"]) for box in answer.boxes)
    labels = []
    for question_id, text in answer.answers.items():
        question = questions.get(question_id) or item.questions[0]  # kinds of failure are answers to one question
        labels.append(
            Label(
                item.task, item.id, names.get(answer.rater, answer.rater), question_id, text, case.id, case.model,
                case.sample, case.subset, case.condition, case.seed, str(case.clip.path),
                project.digests.get(case.id, ""), other=other.id if other else "",
                other_model=other.model if other else "",
                other_clip=str(other.clip.path) if other else "",
                other_digest=project.digests.get(other.id, "") if other else "",
                dimension=question.dimension, text=answer.texts.get(question_id) or question.text,
                polarity=question.polarity, frames=dict(answer.frames), boxes=boxes,
                comment=answer.comment, swapped=answer.swapped,
                form=item.form, right=item.gold.get(question_id, ""), example=item.example,
                seconds=answer.seconds, at=answer.at,
            )
        )  # fmt: skip
    return labels


def project_export_files(project: Project, store: Store, folder: Path) -> Files:
    """All files of a project, for a folder."""
    return label_export_files(labels_of_project(project, store), folder, project.cases)


def label_export_files(labels: Sequence[Label], folder: Path, cases: Mapping[str, Case] | None = None) -> Files:
    """Name -> content of every file that these labels give."""
    rated = [label for label in labels if not label.example]
    files: Files = {"labels.jsonl": "".join(f"{line}\n" for line in label_lines(labels, folder))}
    with suppress(MissingPrerequisite):
        files["labels.parquet"] = labels_parquet(labels, folder)
    files["label_studio.json"] = json.dumps(formats.label_studio_tasks(labels), indent=1, ensure_ascii=False) + "\n"
    by = {
        "targets.json": _json_or_empty(targets_by_clip(rated)),
        "marks.csv": key_frame_csv(rated),
        "judge_labels.jsonl": _json_lines_text(judge_label_rows(rated, folder)),
        "wrbench_labels.jsonl": _json_lines_text(formats.wrbench_rows(rated)),
        "mbench_labels.jsonl": _json_lines_text(formats.mbench_rows(rated)),
        "preferences.jsonl": _json_lines_text(preference_pairs(rated, cases or {})),
        "reviews.json": _json_or_empty(review_decisions(rated)),
    }
    return files | {name: text for name, text in by.items() if text}


def write_files(files: Files, folder: Path) -> list[Path]:
    """Write files into a folder; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [folder / name for name in files]


def labels_parquet(labels: Sequence[Label], folder: Path) -> bytes:
    """Labels as a Parquet file: a column per field; frames and boxes as JSON."""
    try:
        import pyarrow
        from pyarrow import parquet as writer
    except ModuleNotFoundError:
        raise MissingPrerequisite("Parquet needs pyarrow: pip install 'revisit-bench[tables]'") from None
    kinds = dict.fromkeys(("schema", "seed", "form"), pyarrow.int64()) | {"seconds": pyarrow.float64()}
    kinds |= dict.fromkeys(("swapped", "example"), pyarrow.bool_())
    empty = {**asdict(Label("", "", "", "", "", "")), "frames": "", "boxes": ""}
    rows = [{**empty, **json.loads(line)} for line in label_lines(labels, folder)]
    for row in rows:
        row |= {name: json.dumps(row[name]) for name in ("frames", "boxes") if row[name]}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in (*NAMES, "schema")])
    buffer = io.BytesIO()
    writer.write_table(pyarrow.Table.from_pylist(rows, schema), buffer)
    return buffer.getvalue()


def targets_by_clip(labels: Sequence[Label]) -> dict[str, dict[str, object]]:
    """Clip -> box of its target in the first frame and what becomes of it, as `import scan --targets` and suites read.

    A clip is called by its file's name; by model/name where several models' files are called alike; MemoBench's by
    clip_model.
    """
    marks = (label for label in labels if label.task == "marks")
    by_clip = group_items(marks, lambda one: (one.case, one.model, one.sample, Path(one.clip).stem or one.sample))
    stems = Counter(stem for _, _, _, stem in by_clip)
    entries = {}
    for (_, model, _, stem), marks_of_clip in by_clip.items():
        verdicts = [label.answer for label in marks_of_clip]
        boxes = [box for label in marks_of_clip for box in label.boxes if box.frame == 0]
        gate = most_frequent_vote(verdicts)
        if gate in (None, "cannot tell"):
            gate = "borderline"
        entry: dict[str, object] = {"gate": gate, "raters": len(marks_of_clip)}
        if boxes:
            middle = [round(statistics.median(box.box[k] for box in boxes), 4) for k in range(4)]
            entry = {"box": middle, "target": Counter(box.name for box in boxes).most_common(1)[0][0], **entry}
        for name, frame in ((GONE, "first_hidden_frame"), (BACK, "first_returned_frame")):
            marked = [label.frames[name] for label in marks_of_clip if name in label.frames and label.answer == gate]
            if marked:
                entry[frame] = round(statistics.median(marked))
        notes = " / ".join(dict.fromkeys(label.comment for label in marks_of_clip if label.comment))
        entries[stem if stems[stem] == 1 else f"{model}/{stem}"] = entry | ({"note": notes} if notes else {})
    return entries


def key_frame_csv(labels: Sequence[Label]) -> str:
    """MemoBench's sheet of key frames: video_folder, exits, re-enter; of clips whose target is hidden and returns."""
    marks = (label for label in labels if label.task == "marks")
    rows = []
    for sample, marks_of_sample in sorted(group_items(marks, lambda label: label.sample).items()):
        of_truth = [label for label in marks_of_sample if label.model == "reference"] or marks_of_sample
        several = len({label.model for label in of_truth}) > 1
        if several or most_frequent_vote([label.answer for label in of_truth]) != "hidden, returned":
            continue  # key frames are of one clip, the ground truth
        agreeing = [label.frames for label in of_truth if label.answer == "hidden, returned"]
        marked = [frames for frames in agreeing if GONE in frames and BACK in frames]
        if marked:  # labels of other tools may have the answer without the frames
            rows.append([sample, *(round(statistics.median(one[name] for one in marked)) for name in (GONE, BACK))])
    return csv_text(["video_folder", "exits", "re-enter"], rows, "\n") if rows else ""


def judge_label_rows(labels: Sequence[Label], folder: Path) -> list[dict[str, str]]:
    """Rows that `revisit judge check` reads: yes and no of each rater; who could not judge is left out."""
    rows = []
    for label in labels:
        if label.task in ("answer", "trigger") and label.answer != CANNOT:
            moved = json.loads(next(label_lines([label], folder)))
            row = {"clip": moved.get("clip", ""), "question": label.text, "label": label.answer, "rater": label.rater}
            row |= {"subset": label.dimension} if label.dimension else {}
            rows.append(row | ({"polarity": label.polarity} if label.polarity else {}))
    return rows


def preference_pairs(labels: Sequence[Label], cases: Mapping[str, Case]) -> list[dict[str, object]]:
    """Pairs for training: the clip that most raters prefer and the other one, with prompts, digests and the rule.

    Only where more than half of all who were asked prefer the same one. Gold questions are in it, examples are not.
    """
    pairs_of_clips: list[dict[str, object]] = []
    compared = (label for label in labels if label.is_preference)
    for (case, other, question), votes_of_pair in group_items(compared, pair_and_question).items():
        votes = Counter(label.answer for label in votes_of_pair)
        if max(votes["a"], votes["b"]) * 2 <= len(votes_of_pair):
            continue
        first = votes_of_pair[0]
        sides = [
            {"case": case, "model": first.model, "video": first.clip, "digest": first.digest},
            {"case": other, "model": first.other_model, "video": first.other_clip, "digest": first.other_digest},
        ]
        chosen, rejected = sides if votes["a"] > votes["b"] else reversed(sides)
        pairs_of_clips.append(
            {
                "prompt": cases[case].prompt if case in cases else "",
                "dimension": question,
                "chosen": chosen,
                "rejected": rejected,
                "votes": dict(sorted(votes.items())),
                "rule": {"by": "people", "majority": "more than half of all votes", "raters": len(votes_of_pair)},
            }
        )
    return pairs_of_clips


def review_decisions(labels: Sequence[Label]) -> dict[str, dict[str, object]]:
    """Sample -> number of a question -> what reviewers decide, the new words and their reasons."""
    decisions: dict[str, dict[str, object]] = defaultdict(dict)
    reviews = (label for label in labels if label.task == "review")
    for (sample, question), votes in group_items(reviews, lambda label: (label.sample, label.question)).items():
        edits = [label.text for label in votes if label.answer == "edit"]
        decisions[sample][question] = {
            "decision": most_frequent_vote([label.answer for label in votes]) or "undecided",
            "votes": dict(Counter(label.answer for label in votes)),
            **({"text": Counter(edits).most_common(1)[0][0]} if edits else {}),
            "reasons": [f"{label.rater}: {label.comment}" for label in votes if label.comment],
        }
    return dict(decisions)


def _json_or_empty(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n" if content else ""


def _json_lines_text(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def load_labels(paths: Sequence[Path], store: str = "") -> list[Label]:
    """The labels of projects, straight from their stores, and of files."""
    labels: list[Label] = []
    for path in paths:
        if (path / FILE).is_file():
            project = open_project(path)
            labels += labels_of_project(project, project.open_store(store))
        else:
            labels += read_label_files([path])
    if not labels:
        raise UsageError("there are no labels yet")
    return orient_pairs_alike(labels)


def export_files(source: Path, out: Path | None, store: str = "") -> list[Path]:
    """Write the files of a project, or of a file of labels; return where they are."""
    folder = out or (source if source.is_dir() else source.parent)
    if (source / FILE).is_file():
        project = open_project(source)
        return write_files(project_export_files(project, project.open_store(store), folder), folder)
    return write_files(label_export_files(orient_pairs_alike(read_label_files([source])), folder), folder)


def import_labels(source: Path, file_format: str, out: Path) -> int:
    """Write the labels of another tool as labels.jsonl; return how many there are."""
    labels = formats.read_foreign_labels(source, file_format)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(out, "".join(f"{line}\n" for line in label_lines(labels, out.parent)))
    return len(labels)


def write_people_alignment(
    run: Path, paths: Sequence[Path], metric_options: Sequence[str], seed: int, store: str = ""
) -> tuple[dict[str, Any], Path]:
    """Agreement and alignment of a run, kept in its people.json and shown in its report, the page."""
    from revisit.report.write_html import write_report

    metrics: dict[str, list[str]] = {}
    for text in metric_options:
        dimension, _, metric = text.partition("=")
        if not dimension or not metric:
            raise UsageError(f"--metric is DIMENSION=METRIC, such as same_look=return_consistency, not {text!r}")
        metrics.setdefault(dimension, []).append(metric)
    opened = Run(run)
    for metric in dict.fromkeys(name for names in metrics.values() for name in names):
        if metric not in opened.results.metrics:
            raise UsageError(f"--metric: {run} did not ask {metric!r}; it asked {join_names(opened.results.metrics)}")
    labels = load_labels(paths, store)
    report = agreement_report(labels)
    alignment_of_run = people_alignment(opened.results, labels, metrics, seed)
    notes = list(alignment_of_run.notes)
    if alignment_of_run.split_votes:
        notes.append(f"{alignment_of_run.split_votes} pairs with a full tie of votes are left out")
    content = {
        "schema": 1,
        "records": file_digest(run / "records.jsonl"),  # the scores that were compared
        "tables": [*alignment_tables(alignment_of_run), *agreement_tables(report)],
        "figures": figure_numbers(report, alignment_of_run),
        "notes": notes,
        "alignment": {**asdict(alignment_of_run), "answers": alignment_of_run.answers or {}},
        "agreement": asdict(report),
    }
    write_json(run / PEOPLE, content)
    return content, write_report(opened)
