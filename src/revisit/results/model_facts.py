"""Facts of models: those that papers state, and a file of one's own beside the videos or the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from revisit.core import Case, MediaError, UsageError
from revisit.core.text import read_package_yaml, read_yaml_file
from revisit.results.file_types import Details
from revisit.results.run import Run
from revisit.results.tables import Table, make_table

FILE = "models.yaml"
GROUPS = ("category", "viewpoint", "camera", "backbone", "parameters")  # what models can be grouped by
FIELDS = (*GROUPS, "size", "fps", "frames", "from", "source", "aliases", "title", "cost")
# What generating costs, as `revisit generate` writes it: name -> head of a column, and its unit.
COSTS = {
    "seconds_per_clip": ("Seconds per clip", "s"),
    "seconds_per_video_second": ("Seconds per second of video", "s"),
    "gpu_seconds_per_video_second": ("GPU seconds per second of video", "s"),
    "peak_memory_gb": ("Peak memory", "GB"),
    "peak_gpu_memory_gb": ("Peak GPU memory", "GB"),
    "price_per_clip": ("Price per clip", ""),
}
COST_NUMBERS = (*COSTS, "clips", "gpus", "loading_seconds")
COST_WORDS = ("machine", "currency", "with_loading")
UNKNOWN = "not known"


@dataclass(frozen=True)
class ModelFacts:
    """Facts by the name of a model; their aliases lead to it."""

    facts: Mapping[str, Details]

    @cached_property
    def _name_by_alias(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for name, own in self.facts.items():
            for alias in (name, *own.get("aliases", ())):
                names.setdefault(_normalised_name(str(alias)), name)
        return names

    def canonical_name(self, model: str) -> str | None:
        """The name under which a model's facts stand, or None."""
        return model if model in self.facts else self._name_by_alias.get(_normalised_name(model))

    def facts_of(self, model: str) -> Details:
        """What is known of a model; nothing where nobody said anything."""
        name = self.canonical_name(model)
        return self.facts[name] if name else {}

    def group_name(self, model: str, fact: str) -> str:
        """A fact as the name of a group."""
        if fact not in GROUPS:
            raise UsageError(f"models are grouped by {', '.join(GROUPS)}, not by {fact!r}")
        fact_value = self.facts_of(model).get(fact, UNKNOWN)
        if isinstance(fact_value, bool):
            return "camera-conditioned" if fact_value else "without camera"
        return UNKNOWN if fact_value is None else str(fact_value)

    def cost_number(self, model: str, fact: str) -> float | None:
        """One number of what generating with a model costs; None where it is not known."""
        amount = self.facts_of(model).get("cost", {}).get(fact)
        return None if amount is None else float(amount)

    def predecessor_among(self, model: str, others: Sequence[str]) -> str | None:
        """Which of the others a model is a later size or version of."""
        origin = self.facts_of(model).get("from")
        if not origin:
            return None
        name = self.canonical_name(str(origin)) or str(origin)
        return next((other for other in others if (self.canonical_name(other) or other) == name), None)

    def merge_file(self, path: Path) -> ModelFacts:
        """These facts and those of a file, which count where both say something."""
        content = read_yaml_file(path) or {}
        new = content.get("models", content) if isinstance(content, Mapping) else None
        if not isinstance(new, Mapping) or not all(isinstance(one, Mapping) for one in new.values()):
            raise UsageError(f"{path}: expected names of models, each with facts such as category: CI2V")
        for model, facts in new.items():
            if unknown := [name for name in facts if name not in FIELDS]:
                raise UsageError(f"{path}: {model} has {unknown[0]!r}; facts are {', '.join(FIELDS)}")
            _validate_cost(facts.get("cost", {}), f"{path}: {model}")
        merged: dict[str, Details] = dict(self.facts)
        for model, facts in new.items():
            merged[self.canonical_name(str(model)) or str(model)] = {**self.facts_of(str(model)), **facts}
        return ModelFacts(merged)


def _validate_cost(cost: Any, where: str) -> None:
    """Raise UsageError where a cost is not written as `revisit generate` writes it."""
    if not isinstance(cost, Mapping):
        raise UsageError(f"{where}: cost is a mapping, such as cost: {{seconds_per_clip: 42}}")
    for name, value in cost.items():
        if name in COST_WORDS:
            continue
        if name not in COST_NUMBERS:
            raise UsageError(f"{where}: cost has {name!r}; it has {', '.join([*COST_NUMBERS, *COST_WORDS])}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise UsageError(f"{where}: cost.{name} is {value!r}; expected a number of 0 or more")


def cost_table(model_facts: ModelFacts, models: Sequence[str]) -> Table | None:
    """What generating costs, a row per model and a column per number that somebody has; None where nobody has one."""
    costs = {model: cost for model in models if (cost := model_facts.facts_of(model).get("cost"))}
    names = [name for name in COSTS if any(cost.get(name) is not None for cost in costs.values())]
    if not names:
        return None
    machines = {model: str(cost.get("machine", "")) for model, cost in costs.items()}
    rows = [(model, [*(_cost_text(cost, name) for name in names), machines[model]]) for model, cost in costs.items()]
    loading = [model for model, cost in costs.items() if cost.get("with_loading")]
    note = "means over clips, peaks over all of them, as measured where the clips were generated"
    note += f"; with the loading of weights: {', '.join(loading)}" if loading else ""
    note += "; on different machines" if len({*machines.values()}) > 1 else ""
    return make_table("Cost of generating", note, [*(COSTS[name][0] for name in names), "Machine"], rows)


def _cost_text(cost: Details, name: str) -> str:
    if cost.get(name) is None:
        return "–"
    unit = cost.get("currency", "") if name == "price_per_clip" else COSTS[name][1]
    return f"{float(cost[name]):.4g} {unit}".strip()


def _normalised_name(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


@cache
def published_model_facts() -> ModelFacts:
    """What papers state."""
    content = read_package_yaml(__package__, FILE)
    sources, models = content["sources"], content["models"]
    return ModelFacts({name: {**facts, "source": sources[facts["source"]]} for name, facts in models.items()})


def load_model_facts(runs: Sequence[Path], file: Path | None = None) -> ModelFacts:
    """Published facts, those beside the videos of these runs and beside the runs, and those of a named file."""
    model_facts = published_model_facts()
    places = []
    for path in runs:
        source = Path(str((Run(path).facts.get("request") or {}).get("source") or path))
        places += [(source if source.is_dir() else source.parent) / FILE, path / FILE]
    for place in [*filter(Path.is_file, dict.fromkeys(places)), *([] if file is None else [file])]:
        model_facts = model_facts.merge_file(place)
    return model_facts


def properties_of_first_readable_clip(cases: Sequence[Case]) -> dict[str, Any] | None:
    """`width`, `height`, `fps` and `frames` of the first of these clips that can be opened; nothing is decoded."""
    from revisit.media import read_clip_info

    for case in cases:
        with suppress(MediaError, OSError):
            info = read_clip_info(case.clip)
            return {"width": info.width, "height": info.height, "fps": info.fps, "frames": info.count}
    return None
