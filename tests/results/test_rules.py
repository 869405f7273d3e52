"""Rules of showing results: digits, coverage, the best of several, what is unscored, headings."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.core.reasons import KINDS
from revisit.results import Cell
from revisit.results.display import (
    cell_text,
    name_of_significantly_best,
    number_text,
    scored_of_asked_text,
    table_heading_of_score,
    unscored_reason_lines,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.614, "0.61"), (1.0, "1.00"), (-0.5, "−0.50"), (27.314, "27.31"), (1234.5, "1234"), (0.0, "0.00"),
        (-1e-12, "0.00"), (0.0999, "0.10"), (0.0004, "0.00040"), (-0.0123, "−0.012"), (3.14e-7, "3.1e-07"),
        (None, "–"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_digits_are_significant(value: float | None, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("mean", "margin", "text"),
    [
        (0.95, 0.0084, "0.95 [0.94 to 0.96] (3/4)"),
        (0.97, 0.0023, "0.97 [0.968 to 0.972] (3/4)"),  # as many decimals as tell the ends apart
        (119.0, 3.27, "119 [116 to 122] (3/4)"),
        (3e-5, 1.4e-5, "3.0e-05 [0.00002 to 0.00004] (3/4)"),
        (0.0004, 0.3, "0.00040 [−0.30 to 0.30] (3/4)"),
        (1.0, 0.0, "1.00 [all equal] (3/4)"),
    ],
)
def test_a_mean_is_shown_with_both_ends_and_coverage(mean: float, margin: float, text: str) -> None:
    cell = Cell(3, 4, mean, (mean - margin, mean + margin))
    assert cell_text(cell) == text
    assert cell_text(cell, with_interval=False) == f"{number_text(mean)} (3/4)"
    assert cell_text(Cell(0, 4)) == "– (0/4)" and scored_of_asked_text(cell) == "3/4"


def test_what_is_unscored_has_a_line_per_kind() -> None:
    cell = Cell(1, 9, 0.5, None, 2, {"too_short": 4, "a sentence of an old run": 2})
    assert unscored_reason_lines(cell) == [
        f"4 × {KINDS['too_short'].title}",
        "2 × a sentence of an old run",
        "2 × failed",
    ]
    assert Cell.from_json(cell.as_json()) == cell


def _cell(values: list[float], of: int = 10) -> Cell:
    clips = {k: (value, f"scene {k}") for k, value in enumerate(values)}
    return Cell(len(values), of, sum(values) / len(values), clips=clips)


def test_the_best_value_is_named_only_where_it_can_be() -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, (2, 10))
    clear = {"a": _cell(list(0.9 + noise[0])), "b": _cell(list(0.5 + noise[1]))}
    assert name_of_significantly_best(clear, True) == "a"
    assert name_of_significantly_best(clear, False) == "b"
    assert name_of_significantly_best(clear, None) is None
    assert (
        name_of_significantly_best({**clear, "b": _cell(list(0.89 + noise[1]))}, True) is None
    )  # the pairs do not tell them apart
    assert (
        name_of_significantly_best({**clear, "b": _cell(list(0.5 + noise[1][:7]))}, True) is None
    )  # judged on other clips
    assert name_of_significantly_best({**clear, "b": Cell(0, 10)}, True) is None  # nothing to compare with
    assert (
        name_of_significantly_best({**clear, "b": Cell(10, 10, 0.5, (0.4, 0.6))}, True) is None
    )  # nobody knows on which clips


def test_metrics_stand_under_headings() -> None:
    assert [table_heading_of_score(id) for id in ("target_identity", "psnr", "style_consistency", "unheard_of")] == [
        "Memory", "Fidelity", "Appearance", "Other",
    ]  # fmt: skip
