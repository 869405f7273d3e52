"""The suite `worldmark`: does the camera follow its keys, and does the world stay as it is? (docs/worldmark.md)."""

from collections.abc import Mapping
from typing import Any

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.worldmark.arena import positive_option
from revisit.suites.worldmark.boards import boards, export, published
from revisit.suites.worldmark.describe import DATASET
from revisit.suites.worldmark.jobs import jobs
from revisit.suites.worldmark.metrics import metrics
from revisit.suites.worldmark.read import read, recognises
from revisit.suites.worldmark.summary import summarise


def settings(*, step: str | None = None, **_: Any) -> Mapping[str, Mapping[str, float]]:
    """Options that are parameters: the step of local memory, in pixels."""
    if step is None:
        return {}
    value = positive_option("step", step, "the way of half a second in pixels, a number above zero")
    return {name: {"step": value} for name in ("worldmark_local", "worldmark_local_small")}


WORLDMARK = suite(
    Suite(
        "worldmark", read_card(__package__), read, recognises, metrics, summarise, settings=settings,
        export=export, boards=boards, published=published, jobs=jobs, dataset=DATASET,
    )
)  # fmt: skip
