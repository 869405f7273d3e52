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

from revisit.core import Case, UsageError
from revisit.results import Results
from revisit.results.cells import cell_of
from revisit.results.clip_answers import Entry
from revisit.results.tables import Table, make_table
from revisit.suites.memobench.metadata import table_rows
from revisit.suites.memobench.names import REAL, ClipName, parse_clip, scene_name

KINDS = ("trajectory", "process", "environment")
PANS = {"pans to the left": "pan left", "pans to the right": "pan right", "tilts upward": "tilt up"}
VERTICAL = re.compile(
    r"look(s|ing)? (up|down)|upward|downward|jump|raises|lowers|squat|crouch|\brise|ascend|descend|lifts|bends"
)
HEAD = re.compile(r"turns? (the |its |his |her )?head|head (to|back)")
PROCESSES = {
    "combustion and heat": r"candle|flame|burn|match\b|lighter|\bfire|wax|melt|\bice\b|toast|charr|smok|incense|boil",
    "physical deformation": r"crush|crumpl|\btear|torn|bend|bent|squeez|sponge|balloon|inflat|deflat|spring|dough|clay|"
    r"collaps|stack|fold|snap|shatter|crack|stretch|press",
    "bubble and foam": r"foam|bubble|soap|froth|soda sits|carbonated|cola|beer",
    "viscous flow": r"honey|syrup|slime|viscous|drip|ketchup|sauce|shampoo|glue|lotion|ooz|hourglass|sand\b",
    "chemical reaction": r"iodine|vinegar|baking soda|react|effervesc|fizz|decolori|oxid|rust|permanganate|precipitat|"
    r"indicator|litmus|copper|bleach|disinfect",
    "diffusion and absorption": r"diffus|\bink\b|dye|absorb|soak|spread|food color|tea bag|\btea\b|wick|towel|tissue|"
    r"stain|seep",
    "dissolution": r"dissolv|salt|sugar|milk powder|powder|tablet|coffee|cube",
}
SIZES = (("small, below 2 %", 0.0, 0.02), ("medium, 2 to 10 %", 0.02, 0.10), ("large, above 10 %", 0.10, 1.01))
ANGLES = (
    ("up to 30°", 0.0, 30.0), ("30 to 60°", 30.0, 60.0), ("60 to 120°", 60.0, 120.0), ("above 120°", 120.0, 181.0),
)  # fmt: skip
ORS = "memo_ors"

Categories = Mapping[str, Mapping[str, str]]  # clip id or scene -> kind -> value


def read_categories(path: Path) -> Categories:
    """What a file of the user's own says of clips and scenes."""
    if not path.is_file():
        raise UsageError(f"--option categories={path}: there is no such file; expected a CSV with the column clip")
    categories: dict[str, dict[str, str]] = {}
    for _, row in table_rows(path, [("clip",), KINDS], f"clip and some of {', '.join(KINDS)}"):
        name = parse_clip(row["clip"])
        key = name.id if name is not None else scene_name(row["clip"])
        categories.setdefault(key, {}).update({kind: row[kind] for kind in KINDS if row.get(kind)})
    return categories


def kinds_of(name: ClipName, prompt: str, categories: Categories) -> dict[str, str]:
    """The kinds of a clip that are known, by the file or by the words of its prompt."""
    by_words = {"trajectory": trajectory_in_prompt(prompt, name.subset)}
    if name.subset == REAL:
        by_words["process"] = process_in_prompt(prompt)
    declared = {**categories.get(name.scene, {}), **categories.get(name.id, {})}
    return {kind: value for kind, value in {**by_words, **declared}.items() if value}


def trajectory_in_prompt(prompt: str, subset: str) -> str:
    """How the camera goes; nothing where the prompt does not say."""
    words = prompt.lower()
    if subset == REAL:
        return next((kind for phrase, kind in PANS.items() if phrase in words), "")
    if not words:
        return ""
    if "u-turn" in words:
        return "U-turn"
    return "vertical" if VERTICAL.search(words) else "head turn" if HEAD.search(words) else "forward"


def process_in_prompt(prompt: str) -> str:
    """The category whose words alone occur in the prompt; nothing where there is none, or more than one."""
    matching = [name for name, words in PROCESSES.items() if re.search(words, prompt.lower())]
    return matching[0] if len(matching) == 1 else ""


def trajectory_table(results: Results) -> list[Table]:
    """Table S2: clips of each trajectory, how far the true camera turns, and how long the object is away."""
    kinds: dict[tuple[str, str], dict[str, Case]] = {}  # a clip is the same for every model
    for case in results.cases:
        kinds.setdefault((case.subset, case.annotations.get("trajectory", "not told")), {})[case.sample] = case
    rows = []
    for (subset, kind), clips in sorted(kinds.items()):
        marks = [(case.annotations.get("gt_phases"), sample) for sample, case in clips.items()]
        gaps = [(float(pair[1] - pair[0]), sample) for pair, sample in marks if pair]
        farthest = [(_fact(results, case, "true_turn", "farthest"), sample) for sample, case in clips.items()]
        turns = [(turn, sample) for turn, sample in farthest if turn is not None]
        if gaps or turns:
            rows.append((f"{subset}, {kind}", [cell_of(values, len(clips)) for values in (turns, gaps)]))
    note = "clips of the dataset in this run; farthest turn of the true camera, and frames from leaving to return"
    return [make_table("Trajectories", note, ["rotation, degrees", "gap, frames"], rows)] if rows else []


def ors_tables(results: Results) -> list[Table]:
    """ORS by the size of the object and by the turn of the true camera when it is back (beside Table S4)."""
    tables = []
    for title, note, strata, metric_id, fact in (
        ("Object reappearance by size", "share of the first frame that the object's mask covers", SIZES,
         ORS, "target_area"),
        ("Object reappearance by angle", "turn of the true camera since its first view when the object is back", ANGLES,
         "true_turn", "at_return"),
    ):  # fmt: skip
        rows = []
        for model, mine in results.groups().items():
            parts = [_clips_between(mine, metric_id, fact, low, high) for _, low, high in strata]
            if any(part.scores(ORS) for part in parts):
                rows.append((model, [part.cell(ORS) for part in parts]))
        if rows:
            tables.append(make_table(title, note, [name for name, _, _ in strata], rows))
    return tables


def _clips_between(results: Results, metric_id: str, fact: str, low: float, high: float) -> Results:
    """The clips of which a fact lies in a span."""

    def inside(entry: Entry) -> bool:
        value = _fact(results, entry, metric_id, fact) if isinstance(entry, Case) else None
        return value is not None and low <= value < high

    return results.only(inside)


def _fact(results: Results, case: Case, metric_id: str, name: str) -> float | None:
    record = results.answer(case, metric_id)
    value = None if record is None else record.facts.get(name)
    return None if value is None else float(value)
