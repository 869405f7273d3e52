"""Results → tables: the standard ones by split, and the thirteen columns of each split as the benchmark prints them."""

from __future__ import annotations

from functools import partial
from typing import Any

from revisit.results import Results
from revisit.results.funnel import dataset_funnel
from revisit.results.stand_ins import separate_stand_ins
from revisit.results.tables import Table, make_table, standard_summary
from revisit.stats.correlation import spearman
from revisit.suites.worldmark.boards import published_worldmark_boards, results_by_split
from revisit.suites.worldmark.metrics import COLUMNS
from revisit.suites.worldmark.model_columns import aggregate_model_cell, asked_columns

MEMORY = ("worldmark_revisit", "worldmark_revisit_small")
NOTE = "means over keys for control, over clips for memory and quality; intervals over scenes"


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    standard = standard_summary(results, funnel=partial(dataset_funnel, memory=MEMORY), parts=results_by_split(results))
    return standard | {"headline": split_tables(separate_stand_ins(results))}


def split_tables(results: Results) -> list[Table]:
    """The thirteen columns of each split; what stand-ins measured has columns of its own."""
    columns = asked_columns(results)
    if len(columns) < 2:
        return []
    return [
        make_table(
            f"As the benchmark prints it, {name}",
            NOTE,
            [head for head, _ in columns],
            [
                (model, [aggregate_model_cell(mine, id, False) for _, id in columns])
                for model, mine in part.groups("model").items()
            ],
        )
        for name, part in results_by_split(results).items()
    ]


def page_findings() -> dict[str, float]:
    """What the benchmark's page says of its tables, recomputed from them.

    Examples
    --------
    >>> round(page_findings()["sd of Global"], 2)
    13.08
    """
    tables = {board.title.rpartition(", ")[2]: board for board in published_worldmark_boards()}

    def column_means_by_model(split: str, head: str) -> dict[str, float]:
        cells = {row.model: row.cells[COLUMNS[head]].mean for row in tables[split].rows}
        return {model: mean for model, mean in cells.items() if mean is not None}

    findings: dict[str, float] = {}
    for head in ("Local", "Global"):
        values = list(column_means_by_model("first/real", head).values())
        mean = sum(values) / len(values)
        findings[f"sd of {head}"] = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    quality = column_means_by_model("first/real", "QA_q")
    for head in ("Local", "Global", "Rev", "RL_t"):
        rho = spearman(list(quality.values()), [column_means_by_model("first/real", head)[model] for model in quality])
        findings[f"Spearman of QA_q with {head}"] = float("nan") if rho is None else rho[0]
    for head in ("DA_r", "DA_t"):
        first, third = column_means_by_model("first/real", head), column_means_by_model("third/real", head)
        common = first.keys() & third.keys()
        findings[f"third minus first of {head}"] = sum(third[model] - first[model] for model in common) / len(common)
    return findings
