"""MBench from Python, with the call that its README documents, on our engine:

    from revisit.mbench import adapter_registry, aggregator_registry, metric_registry, run_eval

    items = adapter_registry.get("mbench-dir").load("data/MBench-A-Setup", subsets=["environment"], limit=4)
    metric = metric_registry.get("mbencha.environment.spatial_epipolar")
    summary = run_eval(items, [metric], aggregator_registry.get("mean"), "runs/python_api_demo")

The run folder is that of `revisit mbench eval`: calls into one folder add up, and `revisit report` and others read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revisit.core import Case, UsageError
from revisit.suites.mbench.names import dimensions_by_upstream_name, gates_of_setting, named_dimensions_or_all


@dataclass(frozen=True)
class Items(Sequence[Case]):
    """Items of a dataset that have a video, and how they were chosen."""

    source: Path
    options: Mapping[str, str]
    limit: int | None
    cases: Sequence[Case]

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, number: Any) -> Any:
        return self.cases[number]


@dataclass(frozen=True)
class NameRegistry:
    """Things by name, with a sentence for a name that is not there."""

    kind: str
    things: Mapping[str, Any]

    def get(self, name: str) -> Any:
        if name not in self.things:
            raise UsageError(f"there is no {self.kind} called {name!r}; choose one of {', '.join(self.things)}")
        return self.things[name]

    def names(self) -> list[str]:
        """All names."""
        return list(self.things)


class Adapter:
    """Reads a folder in MBench's layout."""

    def load(
        self,
        source: str | Path,
        models: Sequence[str] = (),
        subsets: Sequence[str] = (),
        conditions: Sequence[str] = (),
        sample_ids: Sequence[str] = (),
        limit: int | None = None,
    ) -> Items:
        """The items of the chosen models, subsets, conditions and samples; with a limit, so many, spread evenly."""
        from revisit.engine.dataset_cases import select_stratified_cases
        from revisit.suites.mbench.read import read

        filters = {"models": models, "subsets": subsets, "conditions": conditions, "samples": sample_ids}
        options = {name: ",".join(values) for name, values in filters.items() if values}
        cases = [entry for entry in read(Path(source), (), **options) if isinstance(entry, Case)]
        chosen = cases if limit is None else select_stratified_cases(cases, limit)
        return Items(Path(source), options, limit, chosen)


adapter_registry = NameRegistry("adapter", {"mbench-dir": Adapter()})
metric_registry = NameRegistry("metric", {name: name for name in dimensions_by_upstream_name()})
aggregator_registry = NameRegistry("aggregator", {"mean": "mean"})


def run_eval(
    items: Items,
    metrics: Sequence[str],
    aggregator: str,
    output: str | Path,
    *,
    set: str = "lite",
    protocol: str | None = None,
    judge: str = "",
    params: Sequence[str] = (),
    workers: int | None = None,
) -> dict[str, Any]:
    """Score items under metrics, write the files of a run to `output`, and return the content of its summary.json.

    Metrics are upstream's names, of the dataset's setting. `set`, `protocol`, `judge` and `params` are those of
    `revisit eval`.
    """
    from revisit.engine.request import Request, warn_or_raise_if_unavailable
    from revisit.engine.run import evaluate
    from revisit.suites.mbench.dataset import open_mbench_dataset

    aggregator_registry.get(aggregator)
    if not items:
        raise UsageError(f"{items.source}: none of the chosen items has a video")
    data = open_mbench_dataset(items.source)
    dimensions = named_dimensions_or_all(metrics, data.setting)
    ids = [*gates_of_setting(data.setting, bool(judge)), *(dimension.id for dimension in dimensions)]
    options = [f"{name}={value}" for name, value in items.options.items()]
    request = Request.from_options(
        items.source, "mbench", set, protocol, ids, items.limit, "auto", [], options, judge, list(params), truth=False
    )
    judge_choice = request.chosen_judge()
    plan = request.plan(judge=judge_choice.facts if judge_choice else None)
    warn_or_raise_if_unavailable(plan)
    run = evaluate(
        plan,
        Path(output),
        request=request.as_json(),
        workers=workers,
        judge=judge_choice,
        dataset_case_ids=data.all_case_ids(),
    )
    return dict(run.summary)
