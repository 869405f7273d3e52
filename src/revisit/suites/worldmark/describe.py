"""What is in a folder of WorldMark's inputs, and what could not be generated from it."""

from __future__ import annotations

from pathlib import Path

from revisit.suites.authoring import DatasetDescription, DatasetTools, value_count_table
from revisit.suites.worldmark.arena import SECONDS, find_arena_folder, read_arena_cases, require_arena_folder
from revisit.suites.worldmark.evidence import KEYS, keys_undo_each_other


def is_worldmark_dataset(folder: Path) -> bool:
    """Whether the folder holds first_view or third_view."""
    return folder.is_dir() and find_arena_folder(folder) in (folder, folder / "arena_inputs")


def describe_worldmark_dataset(folder: Path) -> DatasetDescription:
    """Counts by split, action and number of keys, and how many lead back."""
    questions = list(read_arena_cases(require_arena_folder(folder)))
    back = [one for one in questions if keys_undo_each_other(tuple(one.keys))]
    facts = {
        "cases": len(questions),
        "scenes": len({(one.domain, one.image) for one in questions}),
        "cases that lead back": len(back),
        "pictures": len({one.picture for one in questions if one.picture is not None}),
        "hours": round(sum(SECONDS * len(one.keys) for one in questions) / 3600, 2),
    }
    tables = [
        value_count_table("Cases", ("split", "cases"), (f"{one.view}/{one.domain}" for one in questions)),
        value_count_table("Actions", ("keys", "cases"), (one.keys for one in questions)),
        value_count_table("Keys of a case", ("keys", "cases"), (f"{one.domain}: {len(one.keys)}" for one in questions)),
        value_count_table("Returns", ("kind", "cases"), (f"{one.domain}: {KEYS[one.keys[0]].family}" for one in back)),
    ]
    return DatasetDescription("WorldMark", facts, tables)


def worldmark_dataset_problems(folder: Path) -> list[str]:
    """What could not be generated or scored by the lens, as sentences."""
    sentences: dict[str, None] = {}
    for one in read_arena_cases(require_arena_folder(folder)):
        name = f"{one.view}_view/{one.domain}/{one.image:03d}"
        if one.picture is None:
            sentences[f"{name}: there is no picture"] = None
        if one.focal is None:
            sentences[f"{name}: there is no lens, so degrees are those of a field of view of 70"] = None
        if not one.prompt:
            sentences[f"{name}: there is no prompt"] = None
    return list(sentences)


DATASET = DatasetTools(is_worldmark_dataset, describe_worldmark_dataset, worldmark_dataset_problems)
