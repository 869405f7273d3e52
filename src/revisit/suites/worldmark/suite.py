"""The suite `worldmark`: does the camera follow its keys, and does the world stay as it is? (docs/worldmark.md)."""

from collections.abc import Mapping
from typing import Any

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.worldmark.arena import DATASET, parse_positive_option, worldmark_generation_jobs
from revisit.suites.worldmark.metrics import worldmark_metric_ids
from revisit.suites.worldmark.read import is_worldmark_delivery, read
from revisit.suites.worldmark.summary import (
    export_final_master_tables,
    published_worldmark_boards,
    summarise,
    worldmark_run_boards,
)


def worldmark_parameters_from_options(*, step: str | None = None, **_: Any) -> Mapping[str, Mapping[str, float]]:
    """Options that are parameters: the step of local memory, in pixels."""
    if step is None:
        return {}
    value = parse_positive_option("step", step, "the way of half a second in pixels, a number above zero")
    return {name: {"step": value} for name in ("worldmark_local", "worldmark_local_small")}


WORLDMARK = suite(
    Suite(
        "worldmark", read_card(__package__), read, is_worldmark_delivery, worldmark_metric_ids, summarise,
        settings=worldmark_parameters_from_options,
        export=export_final_master_tables, boards=worldmark_run_boards, published=published_worldmark_boards,
        jobs=worldmark_generation_jobs, dataset=DATASET,
    )
)  # fmt: skip
