"""What is in a dataset of MBench, and what its suite could not score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.control.jobs import BatchRequest
from revisit.suites.authoring import DatasetDescription, DatasetTools, least_median_most_table, value_count_table
from revisit.suites.mbench.dataset import ListItem, open_mbench_dataset
from revisit.suites.mbench.jobs import jobs
from revisit.suites.mbench.read import find_object_anchor, is_mbench_dataset, object_description, segment_captions


def describe_dataset(folder: Path) -> DatasetDescription:
    """Counts by subset and condition, lengths, captions and anchors."""
    data, batch = open_mbench_dataset(folder), jobs(folder, None, BatchRequest("describe"))
    names = dict.fromkeys((job.subset, job.sample) for job in batch.jobs)
    samples = [data.sample_facts_and_problems(*name)[0] for name in names]
    seconds = [(job.frames - 1) / job.fps for job in batch.jobs]
    words = [len(job.prompt.split()) for job in batch.jobs]
    parts = [len(segment_captions(facts)) for facts in samples]
    facts = {
        "setting": data.setting, "samples": len(samples), "items": len(batch.jobs),
        "with an anchor": sum("object_anchor" in one for one in samples),
        "with a named target": sum(bool(object_description(one)) for one in samples),
    }  # fmt: skip
    histograms: dict[str, Sequence[float]] = {"seconds": seconds, "words of a caption": words}
    tables = [
        value_count_table("Items by subset", ("subset", "items"), (job.subset for job in batch.jobs)),
        value_count_table("Items by condition", ("condition", "items"), (job.condition for job in batch.jobs)),
        least_median_most_table("Lengths", {**histograms, "caption segments": parts}),
    ]
    return DatasetDescription(f"MBench-{data.setting}", facts, tables, histograms)


def dataset_problems(folder: Path) -> list[str]:
    """What could not be scored, as sentences."""
    data, batch = open_mbench_dataset(folder), jobs(folder, None, BatchRequest("check"))
    sentences = list(batch.left_out)
    for job in batch.jobs:
        facts, _ = data.sample_facts_and_problems(job.subset, job.sample)
        if job.image is None:
            sentences.append(f"{job.id}: its sample has neither first_frame.png nor a source_video")
        if data.setting == "T" and len(segment_captions(facts)) < 2:
            sentences.append(f"{job.id}: caption_segments are missing, or only one: nothing can leave and come back")
        if job.subset == "object" and data.setting == "T" and not object_description(facts):
            sentences.append(f"{job.id}: metadata.object_card is missing, or has no name")
        if job.subset == "object" and data.setting == "A":
            item = ListItem("", job.subset, job.sample, job.condition, 0, {}, facts, None, {})
            if find_object_anchor(data, item).target is None:
                sentences.append(f"{job.id}: metadata.object_anchor is missing, or lies in no frame")
    return sentences


DATASET = DatasetTools(is_mbench_dataset, describe_dataset, dataset_problems)
