"""Camera-pose artifacts for `revisit mbench prepare`: the estimators of `revisit poses`, at MBench's places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from revisit.core import Clip, UsageError
from revisit.posing.tasks import Estimator, Task, Tell, estimate
from revisit.suites.mbench.dataset import Dataset, Item, Problem, prepared_place
from revisit.suites.mbench.read import Filter


@dataclass(frozen=True)
class Prepared:
    """What was done."""

    made: int = 0
    kept: int = 0
    missing: int = 0  # items without a video
    failed: tuple[str, ...] = ()


def produce(
    data: Dataset, keep: Filter, estimator: Estimator, output: Path | None, *, tell: Tell | None = None
) -> Prepared:
    """Make the artifacts of the chosen items that have none of this estimator."""
    found = [entry for model in keep.models for entry in data.items(model)]
    items = [entry for entry in found if not isinstance(entry, Problem) and keep.takes(entry)]
    tasks = [
        Task(f"{item.id}@{item.model}", Clip(item.video), _place(data, item, output))
        for item in items
        if item.video is not None
    ]
    done = estimate(tasks, estimator, tell=tell)
    return Prepared(done.made, done.kept, len(items) - len(tasks), done.failed)


def _place(data: Dataset, item: Item, output: Path | None) -> Path:
    names = {
        "model_id": item.model, "subset": item.subset, "sample_id": item.sample, "condition_id": item.condition,
    }  # fmt: skip
    return data.place("artifact_da3", **names) if output is None else prepared_place(output, **names)


def one_name(producer: str, command: str) -> str:
    """What `revisit poses --with` would be given."""
    if (producer == "command") != bool(command):
        raise UsageError("--producer command and --command go together: a program that reads {video} and writes {npz}")
    return command or producer
