"""What is in a folder of WRBench's prompts, and what its suite could not score."""

from __future__ import annotations

from pathlib import Path

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.suites.authoring import DatasetDescription, DatasetTools, least_median_most_table, value_count_table
from revisit.suites.wrbench.build import CAMERA
from revisit.suites.wrbench.jobs import PUBLISHED
from revisit.suites.wrbench.prompts import TIERS, read_json_lines_with_keys, read_natural25_tasks


def _prompts_folder(folder: Path) -> Path:
    return folder / PUBLISHED if (folder / PUBLISHED).is_dir() else folder


def is_wrbench_prompts_folder(folder: Path) -> bool:
    """Whether there are families and variants."""
    return all((_prompts_folder(folder) / name).is_file() for name in ("families.jsonl", "variants.jsonl"))


def describe_wrbench_prompts(folder: Path) -> DatasetDescription:
    """Families by venue, events by factor, prompts by length."""
    place = _prompts_folder(folder)
    tasks = read_natural25_tasks(place)
    families, variants = (read_json_lines_with_keys(place / f"{name}.jsonl") for name in ("families", "variants"))
    words = [len(row["ti2v_prompt"].split()) for row in variants]
    facts = {
        "families": len(families), "events": len(tasks), "variants": len(variants),
        "venues": len({row["scene"] for row in families}),
        "families with a first frame": len({task.family for task in tasks if task.first_frame}),
        "records with paths (static, yaw 30 and 60)": 5 * len(tasks),
    }  # fmt: skip
    tables = [
        value_count_table("Families by venue", ("venue", "families"), (row["scene"] for row in families)),
        value_count_table("Events by factor", ("factor", "events"), (task.factor for task in tasks)),
        value_count_table("Variants by camera in words", ("camera", "variants"), (row["oov_gap"] for row in variants)),
        least_median_most_table("Prompts", {"words": words}),
    ]
    return DatasetDescription("WRBench prompts", facts, tables, {"words of a prompt": words})


def wrbench_dataset_problems(folder: Path) -> list[str]:
    """What could not be scored, as sentences."""
    place = _prompts_folder(folder)
    try:
        tasks = read_natural25_tasks(place)
    except UsageError as error:
        return [str(error)]
    sentences = []
    for family, mine in group_items(tasks, lambda task: task.family).items():
        if {task.factor for task in mine} != set(TIERS.values()):
            sentences.append(f"{family}: it has {len(mine)} of the four events")
        if not any(task.first_frame for task in mine):
            sentences.append(f"{family}: it has no first frame in first_frames/")
    sentences += [
        f"{task.id}: the prompt without a camera speaks of one: {spoken[0]!r}"
        for task in tasks
        if (spoken := CAMERA.search(task.prompt.partition(".")[2] or task.prompt))
    ]
    return sentences


DATASET = DatasetTools(is_wrbench_prompts_folder, describe_wrbench_prompts, wrbench_dataset_problems)
