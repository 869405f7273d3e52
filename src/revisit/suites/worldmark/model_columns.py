"""A model's thirteen numbers from the answers about its clips, as the benchmark adds them up.

Columns of control are means over keys, not over clips: a clip of three keys counts three times. Local memory multiplies
two means, and global memory is that of the mean error. Intervals are over scenes; those of the last two are of the
line that touches the formula at the means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from revisit.core import METRICS, Record
from revisit.results import Cell, Results
from revisit.results.cells import mean_and_interval
from revisit.results.score_names import STAND_IN
from revisit.results.stand_ins import stand_in_makers_by_metric
from revisit.suites.worldmark.metrics import COLUMNS, STAND_INS
from revisit.suites.worldmark.metrics.whole import SCALE

Values = list[tuple[float, str]]  # a number and its scene
BOUNDS = (0.0, 100.0)


def asked_columns(results: Results) -> list[tuple[str, str]]:
    """Head and metric of each column that was asked, with a column of its own behind it for what stand-ins measured."""
    makers = stand_in_makers_by_metric(results)
    columns = []
    for head, id in {**COLUMNS, **{METRICS[id].title: id for id in STAND_INS}}.items():
        if id in results.metrics or id in makers:
            columns.append((head, id))
        if id in makers:
            columns.append((f"{head} by {makers[id]} (stand-in)", id + STAND_IN))
    return columns


def aggregate_model_cell(results: Results, metric: str, upstream: bool) -> Cell:
    """The cell of a model under a metric; `upstream` counts a direction below zero as zero."""
    id = metric.removesuffix(STAND_IN)
    cell = replace(results.cell(metric), of=results.expected(id))
    records = results.scores(metric)
    collect = COLLECTORS.get(id, _key_score_values)
    if not records or (collect is _key_score_values and not any("keys" in record.facts for record in records)):
        return cell  # a mean over clips, with the interval that every table gives it
    bounds = (-100.0, 100.0) if "_direction_" in id else BOUNDS
    mean, interval = mean_and_interval(collect(records), bounds)
    if upstream and mean is not None and "_direction_" in id:
        mean, interval = max(mean, 0.0), None if interval is None else (max(interval[0], 0.0), max(interval[1], 0.0))
    return replace(cell, mean=mean, interval=interval, few_scenes=False)


def _key_score_values(records: Sequence[Record]) -> Values:
    """The scores of all keys; of a metric that is not about keys, those of the clips."""
    values: Values = []
    for record in records:
        keys = record.facts.get("keys")
        own = [record.value] if keys is None else [key["score"] for key in keys]
        values += [(float(one), record.case.sample) for one in own if one is not None]
    return values


def _local_memory_values(records: Sequence[Record]) -> Values:
    """100 (1 - share with a cut) (1 - mean share of mutations), as values whose mean that is."""
    whole = [0.0 if record.facts["cut"] else 1.0 for record in records]
    shares = [record.facts["mutations"] for record in records]
    shares_without = [1.0 - share for share in shares if share is not None]
    if not shares_without:
        return [(0.0, record.case.sample) for record in records]
    uncut, calm = sum(whole) / len(whole), sum(shares_without) / len(shares_without)
    return [
        (100 * (uncut * (calm if share is None else 1.0 - share) + calm * one - uncut * calm), record.case.sample)
        for record, one, share in zip(records, whole, shares, strict=True)
    ]


def _global_memory_values(records: Sequence[Record]) -> Values:
    """100 / (1 + mean error / 0.05), as values whose mean that is."""
    errors = [float(record.facts["error"]) for record in records]
    mean = sum(errors) / len(errors)
    top, slope = 100 / (1 + mean / SCALE), -100 / SCALE / (1 + mean / SCALE) ** 2
    return [(top + slope * (error - mean), record.case.sample) for error, record in zip(errors, records, strict=True)]


COLLECTORS = {
    "worldmark_local": _local_memory_values,
    "worldmark_local_small": _local_memory_values,
    "worldmark_global": _global_memory_values,
}
