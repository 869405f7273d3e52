"""Distances of models: how far the clips of each are, as a set, from the truth of the run (FVD, KVD, FID, KID).

They are made of the features that two metrics record with every clip (`metrics/distribution.py`). A model is compared
with the truth of the scenes that it has clips of. With fewer scenes than a simulation supports there is no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revisit.core import Case
from revisit.core.text import read_package_yaml
from revisit.results.cells import Cell
from revisit.results.display import interval_ends_text, number_text
from revisit.results.file_types import Details
from revisit.results.results import Results
from revisit.results.tables import Table, make_table
from revisit.stats.distance_formulas import FRECHET, KERNEL, DistanceFormula
from revisit.stats.distribution_distance import SetDistance

TOO_FEW = "too_few"
TITLE = "Distance to the truth, as sets of clips"
# A distance of all models, as summary.json has it: its id, such as kvd, or kid_efficientnet-lite0, as another network
# makes other numbers; network, digest of the weights (empty where nobody knows it), dimensions, frames, size,
# least_scenes, the best model, and of each model clips, scenes, and value with interval, or why it is unscored.
DistanceEntry = dict[str, Any]


@dataclass(frozen=True)
class DistanceKind:
    """A distance between sets of clips: what it compares, by which formula, and which failures it grows with."""

    title: str
    metric: str  # whose features are compared
    features: str
    formula: DistanceFormula
    description: str
    paper: str
    responds_to: Sequence[str] = ()
    blind_to: Sequence[str] = ()


FORMULAS = {"frechet": FRECHET, "kernel": KERNEL}
KINDS = {
    id: DistanceKind(**{**card, "formula": FORMULAS[card["formula"]]})
    for id, card in read_package_yaml(__package__, "distances.yaml").items()
}


@dataclass(frozen=True)
class FeatureSet:
    """Features of clips, their scenes, and what they were made by and of."""

    rows: np.ndarray
    scenes: list[str]
    clips: int
    facts: Details  # of the last of them


def model_to_truth_distances(results: Results, digests: Mapping[str, str] | None = None) -> list[DistanceEntry]:
    """All distances of all models; empty where no clip, or no truth, has features."""
    kinds = {id: kind for id, kind in KINDS.items() if results.truths and kind.metric in results.metrics}
    entries = [_make_distance_entry(results, id, kind, digests or {}) for id, kind in kinds.items()]
    return [entry for entry in entries if entry is not None]


def distance_table(entries: list[DistanceEntry]) -> Table:
    """Models down, distances across."""
    models = list(dict.fromkeys(model for entry in entries for model in entry["models"]))
    rows = [(model, [_distance_cell(entry["models"].get(model)) for entry in entries]) for model in models]
    networks = []
    for entry in entries:
        digest = f" (sha256 {entry['digest'][:12]})" if entry["digest"] else ""
        networks.append(
            f"{distance_title(entry)}: {entry['network']}{digest}, {entry['dimensions']} dimensions, {entry['frames']} "
            f"frames a clip at {entry['size']}, {entry['least_scenes']} scenes or more; {entry['best'] or 'no model'} "
            "is the nearest beyond doubt"
        )
    note = "Lower is nearer; corrected for the number of clips, with 95 % intervals over scenes. "
    heads = [f"{distance_title(entry)} ↓" for entry in entries]
    return make_table(TITLE, f"{note}{'. '.join(networks)}.", heads, rows)


def distance_sentences(entries: list[DistanceEntry]) -> list[str]:
    """What the distances say, a sentence each; one for all that have too few scenes."""
    sentences, few = [], []
    for entry in entries:
        scored = {model: distance for model, distance in entry["models"].items() if "value" in distance}
        if not scored:
            most = max((distance["scenes"] for distance in entry["models"].values()), default=0)
            few.append(f"{distance_title(entry)} needs {entry['least_scenes']} scenes and has {most}")
            continue
        numbers = ", ".join(
            f"{model} {number_text(distance['value'])} [{interval_ends_text(distance['interval'])}]"
            for model, distance in scored.items()
        )
        verdict = f"; {entry['best']} is nearest" if entry["best"] else "; undecided" if len(scored) > 1 else ""
        sentences.append(f"{distance_title(entry)} to the truth: {numbers}{verdict}")
    return sentences + ([f"Unscored, too few: {'; '.join(few)}"] if few else [])


def distance_title(entry: DistanceEntry) -> str:
    """Such as KVD, or KID (efficientnet-lite0)."""
    base, _, network = entry["id"].partition("_")
    return f"{base.upper()} ({network})" if network else base.upper()


def _make_distance_entry(
    results: Results, id: str, kind: DistanceKind, digests: Mapping[str, str]
) -> DistanceEntry | None:
    groups = {model: part for model, part in results.groups("model").items() if model not in results.floors}
    sets = {model: _features_of_common_scenes(results, part, kind.metric) for model, part in sorted(groups.items())}
    pairs = {model: pair for model, pair in sets.items() if pair is not None}
    if not pairs:
        return None
    first = next(iter(pairs.values()))[0]
    dimensions, maker = first.rows.shape[1], str(first.facts["maker"])
    least, distances = kind.formula.least_scenes(dimensions), {}
    models: dict[str, dict[str, Any]] = {}
    for model, (clips, truth) in pairs.items():
        models[model] = {"clips": clips.clips, "scenes": len(set(clips.scenes))}
        if models[model]["scenes"] < least:
            models[model]["unscored"] = f"{least} scenes are needed, and {models[model]['scenes']} have features"
            continue
        distances[model] = kind.formula.compute(clips.rows, truth.rows, clips.scenes, truth.scenes)
        models[model]["value"] = distances[model].value
        models[model]["interval"] = list(distances[model].interval)
    scenes = {model: frozenset(clips.scenes) for model, (clips, _) in pairs.items()}
    return {
        "id": id if kind.metric == "video_action" else f"{id}_{maker}",
        "network": maker, "digest": digests.get(maker, ""), "dimensions": dimensions,
        "frames": int(first.facts["frames"]),
        "size": f"{first.facts['size']} px" if "size" in first.facts else "the network's own size",
        "least_scenes": least,
        "best": _significantly_nearest_model(distances, scenes), "models": models,
    }  # fmt: skip


def _features_of_common_scenes(results: Results, part: Results, metric: str) -> tuple[FeatureSet, FeatureSet] | None:
    """Features of a model's clips and of the truth of the same scenes."""
    pairs = [(case, truth) for case in part.cases if (truth := results.truth_of(case)) is not None]
    clips = {case.id: (case, case.scene) for case, _ in pairs}
    truths = {truth.id: (truth, case.scene) for case, truth in pairs}
    mine, theirs = _collect_features(results, clips, metric), _collect_features(results, truths, metric)
    if mine is None or theirs is None or mine.facts["maker"] != theirs.facts["maker"]:
        return None
    both = set(mine.scenes) & set(theirs.scenes)
    return (_select_scenes(mine, both), _select_scenes(theirs, both)) if both else None


def _collect_features(results: Results, cases: Mapping[str, tuple[Case, str]], metric: str) -> FeatureSet | None:
    rows: list[np.ndarray] = []
    scenes: list[str] = []
    clips, facts = 0, {}
    for case, scene in cases.values():
        record = results.of(case).get(metric)
        series = results.series(case, metric) if record is not None and record.scored else None
        if record is None or series is None or "feature" not in series.columns:
            continue
        feature = np.asarray(series["feature"], dtype=np.float64)
        feature = feature[None] if feature.ndim == 1 else feature
        rows.append(feature)
        scenes += [scene] * len(feature)
        clips, facts = clips + 1, {**record.facts}
    if not rows:
        return None
    return FeatureSet(np.concatenate(rows), scenes, clips, facts)


def _select_scenes(features: FeatureSet, scenes: set[str]) -> FeatureSet:
    rows = [row for row, scene in enumerate(features.scenes) if scene in scenes]
    return replace(features, rows=features.rows[rows], scenes=[features.scenes[row] for row in rows])


def _significantly_nearest_model(
    distances: Mapping[str, SetDistance], scenes: Mapping[str, frozenset[str]]
) -> str | None:
    """The model that is nearer than each of the others, tested over their common scenes; None where that is open."""
    if len(distances) < 2 or len({scenes[model] for model in distances}) > 1:
        return None
    first = min(distances, key=lambda model: distances[model].value)
    others = [other for model, other in distances.items() if model != first]
    level = 1 - 0.05 / len(others)  # Bonferroni: any false word among them in 5 % of runs at most
    nearest = all(other.estimate_of_difference(distances[first]).interval(level)[0] > 0 for other in others)
    return first if nearest else None


def _distance_cell(distance: Details | None) -> Cell:
    if distance is None:
        return Cell(0, 0)
    if "value" not in distance:
        return Cell(0, distance["scenes"], unscored={TOO_FEW: distance["scenes"]})
    return Cell(distance["scenes"], distance["scenes"], distance["value"], tuple(distance["interval"]))
