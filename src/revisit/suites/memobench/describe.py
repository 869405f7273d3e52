"""What is in a dataset of MemoBench, and what its suite could not score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.control.jobs import BatchRequest
from revisit.geometry.rotations import angle_between_rotations
from revisit.suites.authoring import DatasetDescription, DatasetTools, least_median_most_table, value_count_table
from revisit.suites.memobench.ground_truth import TrueClip, find_dataset_root, open_memobench_dataset
from revisit.suites.memobench.jobs import jobs


def is_memobench_dataset(folder: Path) -> bool:
    """Whether the folder holds Synthetic_processed or Real_Raw."""
    return folder.is_dir() and find_dataset_root(folder) is not None


def describe_dataset(folder: Path) -> DatasetDescription:
    """Counts by split, scene and subject, lengths, gaps between leaving and returning, and turns."""
    data = open_memobench_dataset(folder)
    metadata = data.read_metadata()
    batch = jobs(folder, None, BatchRequest("describe"))
    lengths, gaps, shares = [], [], []
    for name, one in data.marks.items():
        truth = data.true_clip_or_problem(name)
        if isinstance(truth, TrueClip):
            rate = truth.frame_rate(name.subset)
            lengths.append(truth.frames)
            gaps.append((one.returns - one.exits) / rate)
            shares.append((one.returns - one.exits) / truth.frames)
    paths = [job.path[:, :3, :3] for job in batch.jobs if job.path is not None]
    turns = [float(angle_between_rotations(path[0], path).max()) for path in paths]
    words = [len(job.prompt.split()) for job in batch.jobs]
    ranges: dict[str, Sequence[float]] = {
        "frames": lengths, "seconds out of view": gaps, "share of the clip out of view": shares,
        "greatest turn, degrees": turns, "words of a prompt": words,
    }  # fmt: skip
    tables = [
        value_count_table("Clips by split", ("split", "clips"), (job.subset for job in batch.jobs)),
        value_count_table("Clips by scene", ("scene", "clips"), (job.condition for job in batch.jobs)),
        value_count_table("Subjects", ("subject", "clips"), (facts.get("subject", "") for facts in metadata.values())),
        least_median_most_table("Lengths, gaps and turns", ranges),
    ]
    facts = {
        "clips": len(batch.jobs), "with poses": len(turns),
        "question banks": len(list((data.root / "vqa_questions").glob("*-questions.csv"))),
        "turning by 90 degrees or more": sum(turn >= 90 for turn in turns),
    }  # fmt: skip
    histograms = {name: ranges[name] for name in ("seconds out of view", "greatest turn, degrees")}
    return DatasetDescription("MemoBench", facts, tables, histograms)


def dataset_problems(folder: Path) -> list[str]:
    """What could not be scored, as sentences."""
    data = open_memobench_dataset(folder)
    batch = jobs(folder, None, BatchRequest("check"))
    sentences = list(batch.left_out)
    if not data.marks_sheets:
        sentences.append("there is no sheet of exits and returns, so phases are not known")
    metadata = data.read_metadata()
    for name in (name for sheet in data.marks_sheets.values() for name in sorted(sheet.marks)):
        missing = [what for what in ("subject", "prompt") if not metadata.get(name, {}).get(what)]
        sentences += [f"{name.title}: the metadata has no {what}" for what in missing]
        truth = data.true_clip_or_problem(name)
        if isinstance(truth, TrueClip):
            sentences += [f"{name.title}: {note}" for note in truth.notes]
    return sentences


DATASET = DatasetTools(is_memobench_dataset, describe_dataset, dataset_problems)
