"""Strata: categories of clips, from their prompts or from the user's own file, and tables over them.

    trajectory    how the camera goes (Table S2), from what the prompt says
    process       what happens to the object of a real clip: told where the words of just one of the paper's seven
                  categories occur in the prompt, and left open elsewhere
    environment   of a synthetic scene; only a file tells it

`categories=FILE` (docs/memobench.md) comes before the words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from revisit.core import Case
from revisit.core.text import read_package_yaml
from revisit.results import Results
from revisit.results.cells import make_mean_cell
from revisit.results.tables import Table, make_table
from revisit.suites.memobench.exports import record_number_at
from revisit.suites.memobench.metadata import iter_numbered_table_rows
from revisit.suites.memobench.names import REAL, ClipName, canonical_scene_name, parse_clip_name

KINDS = ("trajectory", "process", "environment")
WORDS = read_package_yaml(__package__, "clip_categories.yaml")
PROCESSES: Mapping[str, str] = WORDS["processes"]
ORS = "memo_ors"

Categories = Mapping[str, Mapping[str, str]]  # clip id or scene -> kind -> value


def read_clip_categories(path: Path) -> Categories:
    """What a file of the user's own says of clips and scenes."""
    categories: dict[str, dict[str, str]] = {}
    for _, row in iter_numbered_table_rows(path, [("clip",), KINDS], f"clip and some of {', '.join(KINDS)}"):
        name = parse_clip_name(row["clip"])
        key = name.id if name is not None else canonical_scene_name(row["clip"])
        categories.setdefault(key, {}).update({kind: row[kind] for kind in KINDS if row.get(kind)})
    return categories


def categories_of_clip(name: ClipName, prompt: str, categories: Categories) -> dict[str, str]:
    """The kinds of a clip that are known, by the file or by the words of its prompt."""
    by_words = {"trajectory": camera_trajectory_in_prompt(prompt, name.subset)}
    if name.subset == REAL:
        by_words["process"] = process_category_of_prompt(prompt)
    declared = {**categories.get(name.scene, {}), **categories.get(name.id, {})}
    return {kind: value for kind, value in {**by_words, **declared}.items() if value}


def camera_trajectory_in_prompt(prompt: str, subset: str) -> str:
    """How the camera goes; nothing where the prompt does not say."""
    words = prompt.lower()
    if subset == REAL:
        return next((kind for phrase, kind in WORDS["pans"].items() if phrase in words), "")
    return next((kind for kind, pattern in WORDS["turns"].items() if re.search(pattern, words)), "")


def process_category_of_prompt(prompt: str) -> str:
    """The category whose words alone occur in the prompt; nothing where there is none, or more than one."""
    matching = [name for name, words in PROCESSES.items() if re.search(words, prompt.lower())]
    return matching[0] if len(matching) == 1 else ""


def trajectory_tables(results: Results) -> list[Table]:
    """Table S2: clips of each trajectory, how far the true camera turns, and how long the object is away."""
    kinds: dict[tuple[str, str], dict[str, Case]] = {}  # a clip is the same for every model
    for case in results.cases:
        kinds.setdefault((case.subset, case.annotations.get("trajectory", "not told")), {})[case.sample] = case
    rows = []
    for (subset, kind), clips in sorted(kinds.items()):
        marks = [(case.annotations.get("gt_phases"), sample) for sample, case in clips.items()]
        gaps = [(float(pair[1] - pair[0]), sample) for pair, sample in marks if pair and pair[0] < pair[1]]
        records = {sample: results.answer(case, "true_turn") for sample, case in clips.items()}
        farthest = [(record_number_at(record, ("farthest",)), sample) for sample, record in records.items()]
        turns = [(turn, sample) for turn, sample in farthest if turn is not None]
        if gaps or turns:
            rows.append((f"{subset}, {kind}", [make_mean_cell(values, len(clips)) for values in (turns, gaps)]))
    note = "clips of the dataset in this run; farthest turn of the true camera, and frames from leaving to return"
    return [make_table("Trajectories", note, ["rotation, degrees", "gap, frames"], rows)] if rows else []


def ors_tables_by_size_and_angle(results: Results) -> list[Table]:
    """ORS by the size of the object and by the turn of the true camera when it is back (beside Table S4)."""
    tables = []
    for title, note, strata, metric_id, fact in (
        ("Object reappearance by size", "share of the first frame that the object's mask covers", WORDS["sizes"],
         ORS, "target_area"),
        ("Object reappearance by angle", "turn of the true camera since its first view when the object is back",
         WORDS["angles"], "true_turn", "at_return"),
    ):  # fmt: skip
        rows = []
        for model, mine in results.groups().items():
            parts = [_results_with_fact_between(mine, metric_id, fact, low, high) for _, low, high in strata]
            if any(part.scores(ORS) for part in parts):
                rows.append((model, [part.cell(ORS) for part in parts]))
        if rows:
            tables.append(make_table(title, note, [name for name, _, _ in strata], rows))
    return tables


def _results_with_fact_between(results: Results, metric_id: str, fact: str, low: float, high: float) -> Results:
    """The clips of which a fact lies in a span."""
    values = {case.id: record_number_at(results.answer(case, metric_id), (fact,)) for case in results.cases}
    return results.only(lambda entry: (value := values.get(entry.id)) is not None and low <= value < high)
