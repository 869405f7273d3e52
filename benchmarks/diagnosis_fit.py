"""Fit: trains the diagnosis on rendered failures and tests it on other scenes.

    python benchmarks/diagnosis_fit.py TABLE.jsonl [RESPONSES.json]

renders the films of the training and the held-out seeds, observes and scores them without encoding, and keeps
the signs of every clip as a line of the table, so that the same command goes on where it stopped. Then it fits one
logistic model per kind on the training seeds, writes them, and prints F1 and the confusion matrix of the
held-out ones. The held-out films share no seed and no place with the training films.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

import revisit
from revisit.audit.analyse import score_kinds
from revisit.audit.grid import FPS, grid_film
from revisit.audit.schema import Content
from revisit.core import METRICS, SUITES, Case, Clip, Record, Target, digest
from revisit.core.cases import InMemory
from revisit.diagnosis.diagnose import SURE_ENOUGH
from revisit.diagnosis.kinds import CAMERA, KINDS, Scores, read_signs, sign_names_of_kind, sign_values_for_kind
from revisit.diagnosis.rules import LEFT
from revisit.engine.in_memory import observe_and_score_cases, plan_for_given_cases
from revisit.engine.request import load_observer_set
from revisit.worlds.failures import FAILURES, generate

FAMILIES = ("camera_departure", "look_departure", "target_departure")
TRAINING = (0, 1, 2, 4, 5, 8, 9, 103, 107, 110, 111, 114, 123, 124, 127)
HELD_OUT = (200, 203, 205, 206, 209, 211)  # rendered and looked at once, after everything else was settled
STRENGTHS = (0.5, 1.0)
RIDGE = 0.3  # weight of the squared weights: signs lie in 0 to 1, so a weight of 5 decides
HEAVIEST = 6.0  # most that a clip with the failure counts against one without
RARITY = 0.35  # share of the rest that all clips with a failure count as, up to that

Signs = Mapping[str, Mapping[str, float]]  # group -> sign -> 0 to 1
Box = tuple[float, float, float, float]


class FitLine(TypedDict):
    """The signs of one rendered clip."""

    seed: int
    kind: str
    strength: float
    signs: Signs


class LogisticModel(TypedDict):
    """A logistic model of one kind of failure."""

    offset: float
    weights: dict[str, float]


def diagnosis_metrics() -> list[str]:
    """The metrics that the diagnosis reads."""
    return [metric_id for metric_id in METRICS if METRICS[metric_id].family in FAMILIES]


def records_of(
    pictures: Iterable[np.ndarray], truth: Sequence[np.ndarray], phases: tuple[int, int], box: Box
) -> dict[str, Record]:
    """The answers of the diagnosis' metrics for one clip beside its reference."""
    clip, reference = (
        Clip(Path(name), fps=FPS, frames=InMemory(np.stack(list(frames))))
        for name, frames in (("clip", pictures), ("reference", truth))
    )
    target = Target("target", box)
    case = Case("clip", "folder", "model", "sample", clip, reference=reference, target=target, phases=phases)
    plan = plan_for_given_cases(SUITES["folder"], [case], load_observer_set("lite"), metrics=diagnosis_metrics())
    return dict(observe_and_score_cases(plan).of(case))


def lines_of(seed: int, strengths: Sequence[float], done: Iterable[tuple[int, str, float]] = ()) -> Iterator[FitLine]:
    """The signs of every failure at each strength in the film of a seed, but for those done already."""
    done = set(done)
    cells = [("perfect", 0.0), *((kind, strength) for kind in FAILURES for strength in strengths)]
    todo = [(kind, strength) for kind, strength in cells if (seed, kind, strength) not in done]
    if not todo:
        return
    scene = grid_film(seed)
    truth = [scene.truth(frame).rgb for frame in range(len(scene))]
    for kind, strength in todo:
        if kind != "perfect" and not FAILURES[kind].applies(scene):
            continue
        records = records_of(generate(kind, scene, strength, seed), truth, scene.phases, scene.target_box())
        yield {"seed": seed, "kind": kind, "strength": strength, "signs": read_signs(Scores(records))}


def memory_untested(signs_of_clip: Signs) -> bool:
    """Whether memory was not put to the test."""
    return CAMERA in signs_of_clip and signs_of_clip[CAMERA]["way"] < LEFT


def vector(kind_id: str, signs_of_clip: Signs) -> np.ndarray | None:
    """The signs that a kind is read from, as numbers; None where it is not asked."""
    if KINDS[kind_id].memory and memory_untested(signs_of_clip):
        return None
    evidence = sign_values_for_kind(KINDS[kind_id], signs_of_clip)
    return None if evidence is None else np.array(list(evidence.values()))


def fit(lines: Sequence[FitLine]) -> dict[str, LogisticModel]:
    """One logistic model per kind: an offset and a weight for each sign it looks at."""
    models: dict[str, LogisticModel] = {}
    for kind_id, kind in KINDS.items():
        names = sign_names_of_kind(kind)
        rows = [(vector(kind_id, line["signs"]), float(line["kind"] == kind_id)) for line in lines]
        x = np.array([row for row, _ in rows if row is not None])
        y = np.array([label for row, label in rows if row is not None])
        if not y.any():
            raise ValueError(f"no training clip shows {kind_id}; train on seeds in which it can happen")
        weight = np.where(y > 0, float(np.clip(RARITY * (len(y) - y.sum()) / y.sum(), 1, HEAVIEST)), 1.0)
        solved = logistic(x, y, weight, np.array([name in kind.speaks for name in names]))
        weights = {name: round(float(w), 3) for name, w in zip(names, solved[1:], strict=True)}
        models[kind_id] = {"offset": round(float(solved[0]), 3), "weights": weights}
    return models


def logistic(x: np.ndarray, y: np.ndarray, weight: np.ndarray, speaks_for: np.ndarray) -> np.ndarray:
    """Offset and weights of a ridge logistic regression in which each sign speaks for (or against) and never otherwise.

    By projected gradient with Nesterov's momentum. The bound on the signs' directions is what keeps a fit on a few
    films from learning what only these films have in common.
    """
    a = np.column_stack([np.ones(len(x)), x])
    ridge = np.r_[1e-3, np.full(x.shape[1], RIDGE)]
    low = np.r_[-np.inf, np.where(speaks_for, 0.0, -np.inf)]
    high = np.r_[np.inf, np.where(speaks_for, np.inf, 0.0)]
    rate = 1 / (0.25 * float(np.linalg.norm(a * np.sqrt(weight)[:, None], 2)) ** 2 + float(ridge.max()))
    solved = ahead = np.zeros(a.shape[1])
    for k in range(20000):
        p = 1 / (1 + np.exp(-np.clip(a @ ahead, -50, 50)))
        after = np.clip(ahead - rate * (a.T @ (weight * (p - y)) + ridge * ahead), low, high)
        ahead = after + k / (k + 3) * (after - solved)
        if k > 100 and np.abs(after - solved).max() < 1e-7:
            return np.asarray(after)
        solved = after
    return solved


def predict(models: Mapping[str, LogisticModel], signs_of_clip: Signs) -> dict[str, float]:
    """Confidence in every kind that can be asked."""
    confidences = {}
    for kind_id, model in models.items():
        row = vector(kind_id, signs_of_clip)
        if row is not None:
            total = model["offset"] + float(row @ np.array(list(model["weights"].values())))
            confidences[kind_id] = float(1 / (1 + np.exp(-total)))
    return confidences


def examine(models: Mapping[str, LogisticModel], lines: Sequence[FitLine]) -> Content:
    """F1 of every kind, their mean, and how often clips of a kind (rows) were found to show each kind (columns)."""
    judged = [line for line in lines if line["strength"] >= SURE_ENOUGH or line["kind"] == "perfect"]
    clips = [
        (line["kind"], {kind_id for kind_id, sure in predict(models, line["signs"]).items() if sure >= SURE_ENOUGH})
        for line in judged
    ]
    return score_kinds(list(models), clips)


def main(table: Path, out: Path) -> dict[str, Content]:
    """Complete the table, fit, write the responses, and return how they did."""
    lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()] if table.is_file() else []
    with table.open("a", encoding="utf-8") as file:
        for seed in (*TRAINING, *HELD_OUT):
            for line in lines_of(seed, STRENGTHS, ((row["seed"], row["kind"], row["strength"]) for row in lines)):
                file.write(json.dumps(line) + "\n")
                file.flush()
                lines.append(line)
    training = [line for line in lines if line["seed"] in TRAINING]
    models = fit(training)
    results = {
        "training": examine(models, training),
        "held_out": examine(models, [line for line in lines if line["seed"] in HELD_OUT]),
    }
    provenance = {
        "fitted": f"{len(training)} clips of {len(TRAINING)} films",
        "revisit": revisit.__version__,
        "training_seeds": list(TRAINING),
        "held_out_seeds": list(HELD_OUT),
        "strengths": list(STRENGTHS),
        "metrics": {metric_id: METRICS[metric_id].version for metric_id in diagnosis_metrics()},
        "table": digest(lines),
        "macro_f1": {name: result["macro_f1"] for name, result in results.items()},
    }
    content = {"provenance": provenance, "kinds": models, "held_out": results["held_out"]}
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return results


if __name__ == "__main__":
    import cv2

    cv2.setNumThreads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    default = Path(__file__).parents[1] / "src/revisit/diagnosis" / "responses.json"
    parser.add_argument("responses", type=Path, nargs="?", default=default)
    given = parser.parse_args()
    done = main(given.table, given.responses)
    sys.stdout.write(json.dumps(done["held_out"], indent=1) + "\n")
