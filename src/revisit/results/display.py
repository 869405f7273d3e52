"""Rules of showing results: digits, coverage, what is unscored, the best of several, headings.

Console, page, `--by`, boards and the audit all take them from here, so that a number reads the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from revisit.core import SUITES
from revisit.core.reasons import KINDS
from revisit.core.text import count_and_noun, join_names
from revisit.results.cells import Cell, Interval
from revisit.results.file_types import Details
from revisit.results.score_names import find_metric_of_score, strip_held_suffix
from revisit.stats.pairwise import rank_models

COVERAGE_MAY_DIFFER = 0.2
BEST_RULE = (
    "A value is marked as best if its model beats each of the others on the clips that both have a score of: every "
    "pair is tested over scenes at 5 %, and the shares of clips scored differ by at most 20 points. Otherwise "
    "the column names no best. The second is the best of the others, by that rule. Of numbers as printed in a paper, "
    "the highest and the next are marked as the paper does."
)
NOTHING = "–"
HELD_TITLE = ", held to the truth"
ALL_EQUAL = "all equal"
ROUNDING = 1e-6  # of a number: values that differ by less are equal but for the order of sums
FEW_SCENES = "too few scenes to see rare failures"
NAMES = 8  # of models, in a sentence on their clips
MOST_PLACES = 5  # after the point; smaller numbers are written with a power of ten
# Families of metrics (the chapter a metric lives in) under the headings of tables, in their order. Where the metrics of
# a suite's own folder belong says its card, under `headings`.
FAMILIES = {
    "Memory": ("target_return", "returning", "outcome", "lcm", "gsc"),
    "Fidelity": ("fidelity",),
    "Appearance": ("appearance", "integrity", "visual", "distribution"),
    "Motion": ("motion", "camera_path", "cuts", "drift", "action", "camera"),
    "Signs of failures": ("camera_departure", "look_departure", "target_departure"),
}
OTHER = "Other"
HEADINGS = (*FAMILIES, OTHER)
Name = TypeVar("Name")


def number_text(value: float | None, decimals_like: float | None = None) -> str:
    """Two decimals, none from 100 on, two significant digits below 0.1: 0.67 30.45 119 0.00042; a dash for nothing.

    `decimals_like` another number it has no more decimals than that, unless nothing of it would be left.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    places = _decimals_of_number(value)
    if decimals_like is not None and round(value, _decimals_of_number(decimals_like)):
        places = min(places, _decimals_of_number(decimals_like))
    return _format_with_decimals(value, places)


def round_for_page(value: float, least_digits: int) -> float:
    """The value with so many digits, or with as many more as it takes to be written as the whole value is.

    0.19498 with three digits is 0.195, which a page would write as 0.20.
    """
    text = number_text(value)
    return next(short for n in range(least_digits, 18) if number_text(short := float(f"{value:.{n}g}")) == text)


def signed_number_text(value: float) -> str:
    """A difference with its sign: +0.21."""
    text = number_text(value)
    return text if text.startswith("−") or not value else f"+{text}"


def p_value_text(p: float) -> str:
    """A p with as many digits as it deserves: few scenes cannot show that one is smaller than 0.001."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _format_with_decimals(value: float, places: int) -> str:
    text = f"{value:.{places}f}" if places <= MOST_PLACES else f"{value:.1e}"
    digits = text.lstrip("-")
    return f"−{digits}" if value < 0 and float(text) else digits


def _decimals_of_number(value: float) -> int:
    size = abs(value)
    if not 1e-9 < size < 0.0995:  # what is written as 0.10 has two significant digits anyway
        return 0 if size >= 100 else 2
    return 1 - math.floor(math.log10(size))


def scored_of_asked_text(cell: Cell) -> str:
    """`12/20`: the clips scored, of those that were asked."""
    return f"{cell.n}/{cell.of}"


def cell_text(cell: Cell, with_interval: bool = True) -> str:
    """`0.71 [0.66 to 0.76] (12/20)`; a dash in place of the mean where nothing was scored."""
    between = (
        f" [{interval_ends_text(cell.interval)}]" if with_interval and cell.mean is not None and cell.interval else ""
    )
    few = f"; {FEW_SCENES}" if with_interval and cell.few_scenes else ""
    return f"{number_text(cell.mean)}{between} ({scored_of_asked_text(cell)}{few})"


def interval_ends_text(interval: Interval, of_difference: bool = False) -> str:
    """`0.66 to 0.76`: an interval as its two ends, with as many decimals as tell them apart, and two at least.

    One without width says what it rests on: values that are all equal do not tell how far others may be. From 100 on
    there are no decimals. An end of the interval of a difference is written as 0 only if it is 0: one that rounds to 0
    has as many further decimals as show on which side of 0 it lies, so that a difference which is beyond chance never
    seems to touch 0: `0.0004 to 0.37`.
    """
    low, high = interval
    if low == high:  # also where a damaged file has no number at either end
        return ALL_EQUAL
    width, largest = high - low, max(abs(low), abs(high))
    if width < ROUNDING * largest:
        return ALL_EQUAL
    places = max(0 if largest >= 100 else 2, -math.floor(math.log10(width)) if width > 1e-9 else 0)
    texts = []
    for end in interval:
        is_lost = of_difference and not (abs(end) <= 1e-12 * largest or round(end, places))
        texts.append(_format_with_decimals(end, -math.floor(math.log10(abs(end))) if is_lost else places))
    return " to ".join(texts)


def unscored_reason_lines(cell: Cell) -> list[str]:
    """What became of the clips without a score, a line per kind of reason: `3 × test not posed`."""
    lines = [f"{n} × {reason_title(kind)}" for kind, n in cell.unscored.items()]
    return lines + ([f"{cell.failed} × {reason_title('failed')}"] if cell.failed else [])


def reason_title(kind: str) -> str:
    """The name of a kind of reason; one that this version does not have is called as it is."""
    return KINDS[kind].title if kind in KINDS else kind


def name_of_significantly_best(cells: Mapping[Name, Cell], higher_is_better: bool | None) -> Name | None:
    """Whose value can be called best under BEST_RULE, or None; cells that do not know their clips name nobody."""
    scored = {name: cell for name, cell in cells.items() if cell.mean is not None}
    if higher_is_better is None or len(scored) < 2 or not all(cell.clips for cell in scored.values()):
        return None
    shares = [cell.n / cell.of for cell in scored.values()]
    if max(shares) - min(shares) > COVERAGE_MAY_DIFFER:
        return None
    names = {str(position): name for position, name in enumerate(scored)}
    scores = {
        position: {clip: value for clip, (value, _) in scored[name].clips.items()} for position, name in names.items()
    }
    scenes = {clip: scene for cell in scored.values() for clip, (_, scene) in cell.clips.items()}
    first = rank_models(scores, scenes, higher_is_better).best
    return None if first is None else names[first]


def some_look_beats_truth(score_name: str, means: Iterable[float | None], truth_mean: float | None) -> bool:
    """Whether a score is best for an unchanged look, and somebody looks less changed than the truth itself."""
    metric = find_metric_of_score(score_name)
    if metric is None or metric.id != score_name or not metric.rewards_unchanged or truth_mean is None:
        return False
    return any(mean is not None and mean > truth_mean for mean in means)


def mark_best_and_second(
    cells: Mapping[Name, Cell], higher_is_better: bool | None, by_order_alone: bool = False
) -> dict[Name, str]:
    """Which values are marked, as `best` and `second`; with `by_order_alone`, ties share a mark."""
    scored = {name: cell for name, cell in cells.items() if cell.mean is not None}
    if by_order_alone:
        if higher_is_better is None or len(scored) < 2:
            return {}
        order = sorted({cell.mean for cell in scored.values()}, reverse=higher_is_better)[:2]  # type: ignore[type-var]
        words = dict(zip(order, ("best", "second"), strict=False))
        return {name: words[cell.mean] for name, cell in scored.items() if cell.mean in words}
    first = name_of_significantly_best(scored, higher_is_better)
    if first is None:
        return {}
    del scored[first]
    second = name_of_significantly_best(scored, higher_is_better)
    return {first: "best", **({} if second is None else {second: "second"})}


def direction_arrow(higher_is_better: bool | None) -> str:
    """Which way is better; nothing where a metric only describes."""
    return {True: "↑", False: "↓", None: ""}[higher_is_better]


def score_title(score_name: str) -> str:
    """The title of a score, which says where it is held to the truth; of a plugin not installed here, the id."""
    metric, measured = find_metric_of_score(score_name), strip_held_suffix(score_name)
    return (measured if metric is None else metric.title) + (HELD_TITLE if score_name != measured else "")


def stand_in_suffix_text(head_facts: Details) -> str:
    """What follows the title of a metric that another than its published maker measured: ` (stand-in: DIS)`."""
    return f" (stand-in: {head_facts['stand_in']})" if head_facts.get("stand_in") else ""


def score_title_with_arrow(score_name: str) -> str:
    """The title of a score, and which way is better."""
    metric = find_metric_of_score(score_name)
    return f"{score_title(score_name)} {direction_arrow(None if metric is None else metric.higher_is_better)}".rstrip()


def table_heading_of_score(score_name: str) -> str:
    """The heading a score stands under; a plugin's metric behind a gate is taken for one of memory.

    A card that names a heading which tables do not have is passed over.
    """
    card = find_metric_of_score(score_name)
    if card is None:
        return OTHER
    from_suites = (name for suite in SUITES.values() if (name := suite.heading_by_metric.get(card.id)) in HEADINGS)
    from_families = (name for name, families in FAMILIES.items() if card.family in families)
    return next(filter(None, (*from_suites, *from_families)), "Memory" if card.gates else OTHER)


def observed_by_or_set(run_or_summary: Details) -> str:
    """Who really observed, of a run.json or summary.json; of one from before that is said, the set asked for."""
    return str(run_or_summary.get("observed_by") or run_or_summary["set"])


def clips_of_models_text(counts: Mapping[str, tuple[int, int]], plural: str, singular: str) -> str:
    """`all 3 clips of a turn to noise`, `1 of 4 clips of b and 1 of 3 of c turn to noise`; nothing without a count."""
    parts: list[str] = []
    for model, (n, of) in counts.items():
        some = f"{n} of {of}" if parts else f"{n} of {count_and_noun(of, 'clip')}"
        whole = {1: "the one clip", 2: "both clips"}.get(of, f"all {of} clips")
        parts.append(f"{whole if n == of else some} of {model}")
    alone = sum(n for n, _ in counts.values()) == 1
    return f"{join_names(parts, NAMES)} {singular if alone else plural}" if parts else ""
