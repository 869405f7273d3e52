"""Fits the probabilities of the target gate, and says how right they are on scenes that were left out.

    python benchmarks/target/target_fit.py TABLE.jsonl [TABLE.jsonl ...] [--model MODEL.json] [--figures FIGURES.json]
        [--exam OTHER.jsonl]
    python benchmarks/target/target_fit.py TABLE.jsonl --judge FIGURES.json [--training OTHER.jsonl]

A line of a table is a clip: its features, its label, where it comes from and which scenes it shows
(`benchmarks/target/table.py` and `labels.py` write them). Labels are by eye for real clips and counted from masks for
simulated ones.
For every scene, models are fitted on the clips that share no scene with it; temperature and the probability from which
on a label is decided are chosen on the predictions for other left-out scenes. The same with whole sources left out.
Clips that the gate does not judge, because the target is too small or looks like what is around it, are in no fit; they
count as undecided and have no confidence. Lines that are marked as an exam, and those of an exam's own table, are in no
fit and no choice: the model judges them as it is, and so does a fit without any picture of the scene that is judged.
`--judge` writes no model, and lets the one that is there judge all lines.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import revisit
from revisit.core import GATES, OBSERVERS, UsageError, digest
from revisit.metrics.target_return import (
    LABELS,
    LAYOUT,
    LOOKS,
    MODEL_FILE,
    Logistic,
    TargetModel,
    label_probabilities,
)
from revisit.results.record_files import write_json
from revisit.stats.intervals import interval_of_two_valued_mean, wilson_interval

# feature -> the sign that its weight may have: 1, -1, or 0 for either
HIDDEN_BY_LOOKS = {
    "lead_lowest": -1, "flow_lowest": -1, "inside_lowest": -1, "there_lowest": -1, "away": 1, "left_empty": 1,
    "rule_never": -1, "rule_returned": 1, "rule_stays_away": 1, "look_lowest": -1, "look_lowest_margin": -1,
    "look_before_lowest": -1, "look_rule_never": -1, "look_rule_returned": 1, "look_rule_stays_away": 1,
    "close_lowest": -1,
}  # fmt: skip
RETURNED_BY_LOOKS = {
    "end": 1, "stands_end": 1, "look_back_like": 1, "look_back_clear": 1, "close_back_ratio": 1, "close_back_view": 1,
    "close_back_colour": 1,
}  # fmt: skip
# By layout no cue is clear alone: what counts is one beside another, such as a match beside what the target reached
# before, or a clear place without a match. So all features take part in both models, with either sign.
ALL_OF_LAYOUT = dict.fromkeys((
    "stands_lowest", "there_lowest", "left_empty", "stands_end", "lead_lowest", "flow_lowest", "inside_lowest",
    "near_lowest", "part_lowest", "colour_lowest", "own_colour_lowest", "presence_lowest", "presence_usual",
    "flow_usual", "near_fall", "own_colour_fall", "away", "lead_before", "time_after", "back_share", "back_above",
    "back_colour", "back_box_colour", "back_peak", "back_ratio", "back_lead", "back_first", "back_early",
    "end", "near_end", "part_end", "inside_end", "own_colour_end", "place_again", "place_clearest", "place_end",
    "at_place_best", "at_place_end", "own_colour_best", "rule_never", "rule_returned", "rule_stays_away",
), 0)  # fmt: skip
HIDDEN = {LAYOUT: ALL_OF_LAYOUT, LOOKS: HIDDEN_BY_LOOKS}
RETURNED = {LAYOUT: ALL_OF_LAYOUT, LOOKS: RETURNED_BY_LOOKS}
RIDGE = 0.3
# Weight of a simulated clip beside a real one, by its source; many features need many clips.
SIMULATED = {LAYOUT: {"composites": 0.53, "worlds": 0.18}, LOOKS: {"composites": 0.125, "worlds": 0.075}}
RIGHT = 0.90  # share of decided labels that must be right where the level is chosen; simulated clips are harder
LEVELS = np.round(np.arange(0.5, 0.97, 0.02), 2)
TEMPERATURES = np.round(np.geomspace(0.4, 2.5, 19), 3)
FOLDS = 12  # of simulated scenes; real ones are left out one by one


class _LabelFields(TypedDict, total=False):
    """What only clips of benchmarks/target/labels.json have."""

    owner: str  # whose clip it is
    kind: str  # what such targets have in common
    exam: bool  # in no fit and no choice


class Line(_LabelFields):
    """A clip of the table."""

    clip: str
    source: str
    scenes: list[str]
    label: str
    simulated: bool
    features: dict[str, float]
    judges: list[str]  # the kinds of evidence by which the gate would judge it


def with_features(lines: Sequence[Line], names: Collection[str]) -> list[Line]:
    """The clips that have all these features."""
    return [line for line in lines if set(names) <= set(line["features"])]


def usable(lines: Sequence[Line], kind: str) -> list[Line]:
    """The clips that have the features of a kind of evidence."""
    return with_features(lines, {*HIDDEN[kind], *RETURNED[kind]})


def clip_weights(lines: Sequence[Line], simulated: Mapping[str, float]) -> np.ndarray:
    """Weights by which clips of one scene, which fail together, count less each, and simulated ones by their source."""
    count = Counter(line["scenes"][0] for line in lines)
    factors = [simulated[line["source"]] if line["simulated"] else 1.0 for line in lines]
    return np.array(factors) / np.sqrt([count[line["scenes"][0]] for line in lines])


def bounded_logistic(x: np.ndarray, y: np.ndarray, weight: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Offset and weights of a ridge logistic regression whose weights may not have the wrong sign.

    `sign` holds 1, -1, or 0 for a weight that may have either. By Newton's method on the weights that are free to move,
    projected on the bounds, with steps halved until the loss falls.
    """
    a = np.column_stack([np.ones(len(x)), x])
    ridge = np.r_[1e-3, np.full(x.shape[1], RIDGE)]
    low = np.r_[-np.inf, np.where(sign > 0, 0.0, -np.inf)]
    high = np.r_[np.inf, np.where(sign < 0, 0.0, np.inf)]

    def loss(beta: np.ndarray) -> float:
        z = a @ beta
        return float((weight * (np.logaddexp(0, z) - y * z)).sum() + (ridge * beta**2).sum() / 2)

    beta = np.zeros(a.shape[1])
    for _ in range(200):
        p = 1 / (1 + np.exp(-np.clip(a @ beta, -50, 50)))
        gradient = a.T @ (weight * (p - y)) + ridge * beta
        free = ~(((beta <= low) & (gradient > 0)) | ((beta >= high) & (gradient < 0)))
        hessian = (a[:, free] * (weight * p * (1 - p))[:, None]).T @ a[:, free] + np.diag(ridge[free])
        step = np.zeros_like(beta)
        step[free] = np.linalg.solve(hessian, gradient[free])
        before, size = loss(beta), 1.0
        while loss(np.clip(beta - size * step, low, high)) > before and size > 1e-6:
            size /= 2
        after = np.clip(beta - size * step, low, high)
        if np.abs(after - beta).max() < 1e-6:
            return after
        beta = after
    return beta


def _logistic(
    lines: Sequence[Line], names: Mapping[str, int], positive: Sequence[str], simulated: Mapping[str, float]
) -> Logistic:
    """A logistic model of whether the label is one of the positive ones."""
    lines = with_features(lines, names)
    features = np.array([[line["features"][name] for name in names] for line in lines])
    truth = np.array([line["label"] in positive for line in lines], dtype=float)
    solved = bounded_logistic(features, truth, clip_weights(lines, simulated), np.array(list(names.values())))
    weights = {name: round(float(value), 3) for name, value in zip(names, solved[1:], strict=True)}
    return {"offset": round(float(solved[0]), 3), "weights": {name: value for name, value in weights.items() if value}}


def fit(lines: Sequence[Line], kind: str) -> TargetModel:
    """Both logistic models, each from the clips that have its features; temperature and level are left at 1 and a half.

    The second one is of clips whose target hides.
    """
    lines = [line for line in lines if kind in line["judges"]]
    hiding = [line for line in lines if line["label"] != LABELS[0]]
    return {
        "hidden": _logistic(lines, HIDDEN[kind], LABELS[1:], SIMULATED[kind]),
        "returned": _logistic(hiding, RETURNED[kind], LABELS[1:2], SIMULATED[kind]),
        "temperature": 1.0,
        "decided": 0.5,
    }


def left_out(
    lines: Sequence[Line], kind: str, fold_of: Callable[[Line], str], training: Sequence[Line] | None = None
) -> np.ndarray:
    """(N, 3) probabilities of each clip's labels by a model of clips of other folds that share no scene with it.

    `training` are the clips that models are fitted on, by default the same ones.
    """
    chances = np.zeros((len(lines), 3))
    folds = [fold_of(line) for line in lines]
    candidates = [(line, fold_of(line)) for line in (lines if training is None else training)]
    for fold in sorted(set(folds)):
        mine = [k for k, name in enumerate(folds) if name == fold]
        own = {lines[k]["scenes"][0] for k in mine}
        others = [line for line, name in candidates if name != fold and not own & set(line["scenes"])]
        model = fit(others, kind)
        for k in mine:
            chances[k] = list(label_probabilities(model, lines[k]["features"]).values())
    return chances


def by_scene(line: Line) -> str:
    """The fold of a clip with whole scenes left out: its scene, or one of `FOLDS` groups of simulated ones."""
    scene = line["scenes"][0]
    return f"simulated {int(digest(scene, 8), 16) % FOLDS}" if line["simulated"] else scene


def by_source(line: Line) -> str:
    """The fold of a clip with whole sources left out."""
    return by_scene(line) if line["simulated"] else line["source"]


def tempered(chances: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities whose two log odds, of hiding and of returning, are divided by a temperature."""
    hidden = np.clip(1 - chances[:, 0], 1e-6, 1 - 1e-6)
    returned = np.clip(chances[:, 1] / hidden, 1e-6, 1 - 1e-6)
    hidden, returned = (1 / (1 + (1 / p - 1) ** (1 / temperature)) for p in (hidden, returned))
    return np.stack([1 - hidden, hidden * returned, hidden * (1 - returned)], axis=1)


def choose(chances: np.ndarray, label: np.ndarray, real: np.ndarray, least: float = RIGHT) -> tuple[float, float]:
    """Temperature by log loss, and the lowest level at which that share of decided labels is right.

    The temperature is the more cautious of those that real and simulated clips ask for. In the share both kinds
    together count the same: there are few real clips, and the level of some fifty of them alone jumps.
    """
    kinds = [some for some in (real, ~real) if some.any()]

    def best_temperature(some: np.ndarray) -> float:
        def loss(temperature: float) -> float:
            chance = tempered(chances[some], temperature)[np.arange(int(some.sum())), label[some]]
            return float(-np.log(np.maximum(chance, 1e-9)).mean())

        return float(min(TEMPERATURES, key=loss))

    temperature = max(best_temperature(some) for some in kinds)
    scaled = tempered(chances, temperature)
    sure, right = scaled.max(axis=1), scaled.argmax(axis=1) == label
    for level in LEVELS:
        decided = [right[(sure >= level) & some] for some in kinds]
        if np.mean([some.mean() if len(some) else 1.0 for some in decided]) >= least:
            return temperature, float(level)
    return temperature, float(LEVELS[-1])


def outcomes(chances: np.ndarray, label: np.ndarray, level: np.ndarray) -> dict[str, Any]:
    """Counts of right, wrong and undecided, of all clips and of those whose target really hides."""
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == label
    decided, hides = sure >= level, label > 0
    counted: dict[str, Any] = {
        "n": len(label), "decided": int(decided.sum()), "right": int((right & decided).sum()),
        "right_of_decided": _share(int((right & decided).sum()), int(decided.sum())),
        "hides": int(hides.sum()), "hides_right": int((right & decided & hides).sum()),
        "hides_right_share": _share(int((right & decided & hides).sum()), int(hides.sum())),
        "most_probable_right": _share(int(right.sum()), len(label)),
    }  # fmt: skip
    counted["labels"] = {
        name: {
            "n": int((label == k).sum()),
            **{
                said: int(((label == k) & decided & (chances.argmax(axis=1) == other)).sum())
                for other, said in enumerate(LABELS)
            },
            "cannot tell": int(((label == k) & ~decided).sum()),
        }
        for k, name in enumerate(LABELS)
    }
    return counted


def _share(part: int, whole: int) -> dict[str, Any]:
    return {"share": round(part / whole, 3) if whole else None, "interval": wilson_interval(part, whole)}


def calibration(chances: np.ndarray, label: np.ndarray) -> dict[str, Any]:
    """Reliability by tenths, Brier score over the three labels, and AUC of confidence for right against wrong."""
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == label
    curve = []
    for low in np.arange(0.3, 1.0, 0.1):
        some = (sure >= low) & (sure < low + 0.1 if low < 0.85 else True)
        if some.any():
            count = int(right[some].sum())
            curve.append({
                "from": round(float(low), 1), "n": int(some.sum()), "confidence": round(float(sure[some].mean()), 3),
                **_share(count, int(some.sum())),
            })  # fmt: skip
    around = (sure >= 0.85) & (sure < 0.95)
    truth = np.eye(3)[label]
    return {
        "n": len(label),
        "brier": round(float(((chances - truth) ** 2).sum(axis=1).mean()), 3),
        "auc": auc(sure, right),
        "at_0.9": {"n": int(around.sum()), **_share(int(right[around].sum()), int(around.sum()))},
        "curve": curve,
    }


def auc(score: np.ndarray, positive: np.ndarray) -> float | None:
    """The chance that a positive one scores higher than another one, ties counting half."""
    if positive.all() or not positive.any():
        return None
    apart = score[positive][:, None] - score[~positive][None]
    return round(float((apart > 0).mean() + (apart == 0).mean() / 2), 3)


def examine(lines: Sequence[Line], kind: str) -> tuple[dict[str, Any], float, float]:
    """Figures on scenes and sources left out, and temperature and level of the final model."""
    training, lines = lines, usable(lines, kind)
    label = np.array([LABELS.index(line["label"]) for line in lines])
    real = np.array([not line["simulated"] for line in lines])
    judgeable = np.array([kind in line["judges"] for line in lines])
    figures: dict[str, Any] = {
        "real": int(real.sum()), "simulated": int((~real).sum()), "unjudgeable": int((~judgeable).sum())
    }  # fmt: skip
    chosen = 1.0, 0.5
    for name, fold_of in (("scenes", by_scene), ("sources", by_source)):
        chances = left_out(lines, kind, fold_of, training)
        if name == "scenes":
            chosen = choose(chances[judgeable], label[judgeable], real[judgeable])
        folds = np.array([fold_of(line) for line in lines])
        levels, scaled = np.zeros(len(lines)), np.zeros_like(chances)
        for fold in set(folds):
            mine, others = folds == fold, judgeable & (folds != fold)
            temperature, level = choose(chances[others], label[others], real[others])
            levels[mine], scaled[mine] = level, tempered(chances[mine], temperature)
        levels[~judgeable] = np.inf
        entry: dict[str, Any] = {"real": outcomes(scaled[real], label[real], levels[real])}
        entry["by_source"] = {
            source: outcomes(scaled[some], label[some], levels[some])
            for source in sorted({line["source"] for line in lines if not line["simulated"]})
            if (some := np.array([line["source"] == source for line in lines])).any()
        }
        entry["real_calibration"] = calibration(scaled[real & judgeable], label[real & judgeable])
        if name == "scenes" and (~real).any():
            entry["simulated"] = outcomes(scaled[~real], label[~real], levels[~real])
            entry["simulated_calibration"] = calibration(scaled[~real & judgeable], label[~real & judgeable])
        rows = np.flatnonzero(real)
        entry["not_right"] = not_right([lines[k] for k in rows], scaled[real], label[real], levels[real])
        figures[f"{name}_left_out"] = entry
    return figures, *chosen


def read_table(path: Path) -> list[Line]:
    """The clips of a table."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(
    lines: Sequence[Line], models: Mapping[str, TargetModel], training: Sequence[Line] | None = None
) -> dict[str, Any]:
    """Figures of finished models on clips whose labels took no part in their fit, by kind of evidence.

    Simulated clips may show pictures of the same scenes. With `training`, each clip is judged by a fit of those lines
    that share no scene with it, at the models' temperature and level.
    """
    figures: dict[str, Any] = {}
    for kind, model in models.items():
        some = usable(lines, kind)
        if not some:
            continue
        if training is None:
            chances = np.array([list(label_probabilities(model, line["features"]).values()) for line in some])
        else:
            chances = tempered(left_out(some, kind, lambda line: line["scenes"][0], training), model["temperature"])
        label = np.array([LABELS.index(line["label"]) for line in some])
        judgeable = np.array([kind in line["judges"] for line in some])
        level = np.where(judgeable, model["decided"], np.inf)
        figures[kind] = {
            "scenes": len({line["scenes"][0] for line in some}),
            "outcomes": outcomes(chances, label, level),
            "calibration": calibration(chances[judgeable], label[judgeable]),
        }
        if any("owner" in line for line in some):
            figures[kind] |= _of_labelled(some, chances, label, level)
    return figures


def _of_labelled(lines: Sequence[Line], chances: np.ndarray, label: np.ndarray, level: np.ndarray) -> dict[str, Any]:
    """What more is told of targets labelled by eye: intervals over scenes, groups of them, and which are not right."""
    scenes = [line["scenes"][0] for line in lines]
    decided, hides = chances.max(axis=1) >= level, label > 0
    right = (chances.argmax(axis=1) == label) & decided

    def interval(some: np.ndarray) -> list[float] | None:
        ends = interval_of_two_valued_mean(
            right[some].astype(float).tolist(), [scenes[k] for k in np.flatnonzero(some)], (0, 1)
        )
        return None if ends is None else [round(end, 3) for end in ends]

    groups: dict[str, Any] = {}
    for name in ("owner", "kind"):
        values = [str(line.get(name, "")) for line in lines]
        groups[f"by_{name}"] = {
            value: outcomes(chances[some], label[some], level[some])
            for value in sorted(set(values))
            if (some := np.array([other == value for other in values])).any()
        }
    return {
        "right_of_decided_over_scenes": interval(decided),
        "hides_right_over_scenes": interval(hides),
        "auc_over_scenes": auc_interval(chances[np.isfinite(level)], label[np.isfinite(level)],
                                        [scene for scene, one in zip(scenes, level, strict=True) if np.isfinite(one)]),
        **groups,
        "not_right": not_right(lines, chances, label, level),
    }  # fmt: skip


def auc_interval(
    chances: np.ndarray, label: np.ndarray, scenes: Sequence[str], times: int = 2000
) -> list[float] | None:
    """95 % interval of the AUC of confidence, by drawing scenes anew; None where it is hardly ever defined."""
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == label
    rows = [np.flatnonzero(np.array(scenes) == scene) for scene in dict.fromkeys(scenes)]
    rng = np.random.default_rng(0)
    drawn = [np.concatenate([rows[k] for k in rng.integers(len(rows), size=len(rows))]) for _ in range(times)]
    values = [value for some in drawn if (value := auc(sure[some], right[some])) is not None]
    if len(values) < times / 2:
        return None
    low, high = np.quantile(values, (0.025, 0.975))
    return [round(float(low), 2), round(float(high), 2)]


def not_right(lines: Sequence[Line], chances: np.ndarray, label: np.ndarray, level: np.ndarray) -> list[dict[str, Any]]:
    """The clips whose label is wrong or not decided, with its probabilities."""
    return [
        {
            "clip": line["clip"], "label": line["label"], "decided": bool(chance.max() >= least),
            **{said: round(float(one), 2) for said, one in zip(LABELS, chance, strict=True)},
        }
        for line, chance, truth, least in zip(lines, chances, label, level, strict=True)
        if chance.argmax() != truth or chance.max() < least
    ]  # fmt: skip


def with_version(digests: Mapping[str, str], version: int, models: Mapping[str, TargetModel]) -> dict[str, str]:
    """Gate version -> digest of its models, with these as those of a version; another fit needs another version.

    What a run has stored is used again where versions are the same, so that two fits of one version would be mixed.
    """
    given, known = digest(models), digests.get(str(version))
    if known not in (None, given):
        raise UsageError(
            f"version {version} of the target gate has another model (digest {known}, now {given}); "
            "raise the version of `target_return` before it is fitted again"
        )
    return {**digests, str(version): given}


def main() -> None:
    """Fit, write the models and the figures, and print these."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--model", type=Path, default=Path(__file__).parents[2] / "src/revisit/metrics" / MODEL_FILE)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--exam", type=Path)
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--training", type=Path, help="with --judge: the table of that model's fit")
    given = parser.parse_args()
    lines = [line for table in given.tables for line in read_table(table)]
    before = json.loads(given.model.read_text(encoding="utf-8")) if given.model.is_file() else {}
    if given.judge is not None:
        provenance = {"gate": before["provenance"]["gate"], "model": digest(before["models"]), "table": digest(lines)}
        training = None if given.training is None else read_table(given.training)
        kept = [line for line in lines if line.get("exam")]
        judged = {"all": judge(lines, before["models"]), "exam": judge(kept, before["models"])}
        if training is not None:
            judged |= {
                "all_without_scene": judge(lines, before["models"], training),
                "exam_without_scene": judge(kept, before["models"], training),
            }
        write_json(given.judge, {"provenance": provenance, **judged})
        return
    set_aside = [line for line in lines if line.get("exam")]
    lines = [line for line in lines if not line.get("exam")]
    models: dict[str, TargetModel] = {}
    figures: dict[str, Any] = {}
    for kind in (LAYOUT, LOOKS):
        figures[kind], temperature, level = examine(lines, kind)
        models[kind] = {**fit(lines, kind), "temperature": temperature, "decided": level}
    version = GATES["target_return"].version
    provenance = {
        "revisit": revisit.__version__,
        "table": digest(lines),
        "clips": len(lines),
        "gate": version,
        "digests": with_version(before.get("provenance", {}).get("digests", {}), version, models),
        "observers": {name: OBSERVERS[name].version for name in ("lite.target", "small.looks")},
    }
    write_json(given.model, {"provenance": provenance, "models": models})
    if given.exam is not None:
        figures["exam"] = judge(read_table(given.exam), models)
    if set_aside:
        figures["by_eye"] = judge(set_aside, models)
        figures["by_eye_without_scene"] = judge(set_aside, models, lines)
    if given.figures is not None:
        write_json(given.figures, {"provenance": provenance, **figures})
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
