"""Labels of projects and files: loading, export, import, and alignment with a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import join_names
from revisit.labels import formats
from revisit.labels.agreement import agreement_report
from revisit.labels.alignment import people_alignment
from revisit.labels.export import label_export_files, labels_of_project, project_export_files, write_files
from revisit.labels.label import Label, label_lines, orient_pairs_alike, read_label_files
from revisit.labels.project import FILE, open_project
from revisit.labels.store import Store
from revisit.labels.tables import agreement_tables, alignment_tables, figure_numbers
from revisit.media import file_digest
from revisit.media.files import write_text_atomically
from revisit.results.record_files import write_json
from revisit.results.run import Run

PEOPLE = "people.json"  # in a run: what people say of it, for its report


def load_labels(paths: Sequence[Path], store: str = "") -> list[Label]:
    """The labels of projects, straight from their stores, and of files."""
    labels: list[Label] = []
    for path in paths:
        if (path / FILE).is_file():
            project = open_project(path)
            labels += labels_of_project(project, Store(store or project.default_store, project.hashed_name))
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
        kept = Store(store or project.default_store, project.hashed_name)
        return write_files(project_export_files(project, kept, folder), folder)
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
