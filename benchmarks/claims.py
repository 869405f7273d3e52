"""How often claims about equal models are false, and how often a better model is named, in simulation.

python benchmarks/claims.py --draws 2000 --jobs 2 --out build/claims.json
python benchmarks/claims.py --former ../former/src ...     # the same with another version, to compare
python benchmarks/claims.py --show benchmarks/claims/*.json  # the tables of docs/statistics.md

Everything goes through the interface that tables and commands use: `rank_question` (the verdict), `Results.ranks`
(places), `display.best` (marks in tables) and `compare` with 20 metrics (the gate). Scores come from a latent normal of
each clip: what a model makes of the scene, and what is the clip's own; the better model has `shift` more.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from revisit.results import Results

SHARED = "yes or no, shared scenes"  # scenes are easy or hard for all models alike
KINDS = ("continuous", "skewed", "yes or no", "3 levels", "5 levels", SHARED)
MODELS, SCENES, CLIPS = (2, 5, 10), (3, 6, 10, 20, 40), (1, 3)
OWN, CLIP = 0.7, 0.3  # of the variance that differs between models: shared by the clips of a scene, and each clip's own
SCENE = 0.3  # of the variance, what all models have in common in a scene (of the kind SHARED only)
METRIC_OF = {"continuous": "psnr", "skewed": "psnr", "yes or no": "target_reappearance", SHARED: "target_reappearance"}
GATED = 20
OUT = Path(__file__).parents[1] / "build" / "claims.json"  # what is kept lies in claims/
Counts = dict[tuple[Any, ...], dict[str, float]]  # setting -> claims, draws


def scale(kind: str, z: np.ndarray) -> np.ndarray:
    """Scores of a kind from a latent normal."""
    share = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z.ravel()]).reshape(z.shape)
    return {
        "continuous": 30 + 3 * z,
        "skewed": 20 + 3 * np.exp(0.8 * z),
        "yes or no": (z > 0.5).astype(float),  # three of ten come back
        "3 levels": np.floor(3 * share).clip(0, 2) / 2,
        "5 levels": np.floor(5 * share).clip(0, 4) / 4,
        SHARED: (z > 0).astype(float),  # every second one comes back
    }[kind]


def draw(rng: np.random.Generator, kind: str, models: int, scenes: int, clips: int, shift: float) -> np.ndarray:
    """Scores (models, scenes, clips); the first model is better by `shift`."""
    own = rng.standard_normal((models, scenes, 1)) * math.sqrt(OWN if clips > 1 else 1.0)
    alone = rng.standard_normal((models, scenes, clips)) * math.sqrt(CLIP if clips > 1 else 0.0)
    latent = own + alone
    if kind == SHARED:
        latent = math.sqrt(1 - SCENE) * latent + math.sqrt(SCENE) * rng.standard_normal((1, scenes, 1))
    latent[0] += shift
    return scale(kind, latent)


class Cell:
    """One setting: its cases are made once, its scores for every draw."""

    def __init__(self, kind: str, models: int, scenes: int, clips: int, shift: float) -> None:
        from revisit.core import Case, Clip

        self.setting = kind, models, scenes, clips, shift
        self.metric = METRIC_OF.get(kind, "event_outcome")
        self.cases = [
            Case(f"{scene}-{clip}@m{model}#0", "folder", f"m{model}", f"{scene}-{clip}" if clips == 1 else f"s{scene}",
                 Clip(Path("x")), seed=0 if clips == 1 else clip)
            for model in range(models) for scene in range(scenes) for clip in range(clips)
        ]  # fmt: skip
        # Ids end with the seed: former versions tell clips of a scene apart by it alone.
        from dataclasses import replace

        self.cases = [replace(case, id=f"{case.id.rpartition('#')[0]}#{case.seed}") for case in self.cases]

    def results(self, values: np.ndarray, metrics: tuple[str, ...] = ()) -> Results:
        """Results with these scores; of several metrics (metrics, models, scenes, clips)."""
        from revisit.core import Record
        from revisit.results import Results

        rows = values.reshape(len(metrics) or 1, -1).tolist()
        return Results(
            self.cases,
            [
                Record(case, metric, False, "scored", value)
                for metric, row in zip(metrics or (self.metric,), rows, strict=True)
                for case, value in zip(self.cases, row, strict=True)
            ],
        )


def claims(setting: tuple[str, int, int, int, float], draws: int, seed: int) -> dict[str, int]:
    """How often each claim is made in a setting."""
    from revisit.results.display import name_of_significantly_best
    from revisit.results.question_ranking import SuiteQuestion, rank_question

    kind, models, scenes, clips, shift = setting
    cell, rng = Cell(*setting), np.random.default_rng([seed, KINDS.index(kind), models, scenes, clips])
    ask = SuiteQuestion("?", (cell.metric,))
    count = dict.fromkeys(("verdict", "best", "places", "mark"), 0)
    for _ in range(draws):
        results = cell.results(draw(rng, *setting))
        answer = rank_question(results, ask)
        count["verdict"] += any(pair.decided for pair in answer.pairs)
        count["best"] += len(answer.best) == 1 and (not shift or answer.best == ("m0",))
        if not shift:
            count["places"] += any((rank.low, rank.high) != (1, models) for rank in results.ranks(cell.metric))
            count["mark"] += name_of_significantly_best(results.mean(cell.metric), True) is not None
    return count


def gates(setting: tuple[str, int, int, int, float], draws: int, seed: int) -> dict[str, int]:
    """How often a gate of 20 metrics says that something is worse, or (with a shift) finds that the second is."""
    from revisit.core import METRICS
    from revisit.results.compare import Contender, compare_with_first

    kind, _, scenes, clips, shift = setting
    metric = METRIC_OF.get(kind, "event_outcome")
    known = [METRICS[id] for id in METRICS]
    alike = [one.id for one in known if one.higher_is_better and one.range == METRICS[metric].range]
    rest = [one.id for one in known if one.higher_is_better]  # few metrics have the range of decibels
    ids = tuple(dict.fromkeys([metric, *alike, *rest]))[:GATED]
    cell, rng = Cell(kind, 2, scenes, clips, 0.0), np.random.default_rng([seed, 99, KINDS.index(kind), scenes, clips])
    count = {"gate": 0}
    for _ in range(draws):
        values = np.stack([draw(rng, kind, 2, scenes, clips, shift if k == 0 else 0.0) for k in range(GATED)])
        results = cell.results(values, ids)
        first, second = (Contender(name, results.where(model=name)) for name in ("m0", "m1"))
        deltas = compare_with_first(first, [second], ids)
        count["gate"] += any(delta.significantly_better_side == "m0" for delta in (deltas[:1] if shift else deltas))
    return count


def _work(job: tuple[str, tuple[str, int, int, int, float], int, int]) -> tuple[Any, ...]:
    what, setting, draws, seed = job
    start = time.perf_counter()
    made = (gates if what == "gate" else claims)(setting, draws, seed)
    return what, setting, draws, made, time.perf_counter() - start


def settings(quick: bool) -> list[tuple[str, tuple[str, int, int, int, float]]]:
    scenes = (3, 6, 20) if quick else SCENES
    jobs = [("claims", (kind, m, s, c, 0.0)) for kind in KINDS for m in MODELS for s in scenes for c in CLIPS]
    jobs += [("gate", (kind, 2, s, c, 0.0)) for kind in KINDS for s in scenes for c in CLIPS]
    jobs += [("claims", (kind, m, s, c, 1.0)) for kind in KINDS for m in (2, 5) for s in scenes for c in CLIPS]
    jobs += [("gate", (kind, 2, s, c, 2.0)) for kind in KINDS for s in scenes for c in CLIPS]
    return sorted(jobs, key=lambda job: -job[1][1] * job[1][2] * job[1][3] * (10 if job[0] == "gate" else 1))


def write(total: Counts, path: Path) -> None:
    """Write counts, a line per setting."""
    path.write_text("[\n" + ",\n".join(json.dumps([list(key), value]) for key, value in total.items()) + "\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", type=Path, nargs="+", help="print the table of these files, and work out nothing")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop handing out work after so long")
    parser.add_argument("--quick", action="store_true", help="three numbers of scenes only")
    parser.add_argument("--kind", choices=KINDS, help="scores of this kind only")
    parser.add_argument("--only", default="", help="claims or gate, null or power, such as claims-null")
    parser.add_argument("--former", default="", help="the folder src of another version, which is used instead")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    if asked.show:
        print(false_claims(added(asked.show)))
        return
    if asked.former:
        sys.path.insert(0, asked.former)
    from revisit.core import import_registering_modules

    import_registering_modules()
    wanted = [
        (what, setting)
        for what, setting in settings(asked.quick)
        if (not asked.only or asked.only in (what, f"{what}-{'power' if setting[4] else 'null'}"))
        and asked.kind in (None, setting[0])
    ]
    jobs = [
        (what, setting, asked.chunk, asked.seed + part)
        for part in range(asked.draws // asked.chunk)
        for what, setting in wanted
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    total: Counts = {}
    begun = time.perf_counter()
    with Pool(asked.jobs) as pool:
        for done, (what, setting, draws, made, seconds) in enumerate(pool.imap_unordered(_work, jobs), start=1):
            mine = total.setdefault((what, *setting), {"draws": 0, "seconds": 0.0})
            for name, value in (*made.items(), ("draws", draws), ("seconds", seconds)):
                mine[name] = mine.get(name, 0) + value
            if done % 50 == 0:
                print(f"{done} of {len(jobs)} parts, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
            if done % 200 == 0 or done == len(jobs):
                write(total, asked.out)
            if time.perf_counter() - begun > asked.seconds:
                pool.terminate()
                break
    write(total, asked.out)
    print(false_claims(total))


def added(files: list[Path]) -> Counts:
    """The counts of several files together."""
    total: Counts = {}
    for file in files:
        for key, value in json.loads(file.read_text()):
            mine = total.setdefault(tuple(key), {})
            for name, count in value.items():
                mine[name] = mine.get(name, 0) + count
    return total


def false_claims(total: Counts) -> str:
    """The worst of all settings of equal models, for every kind of scores and every claim."""
    names = {
        "verdict": "a pair or a best, in the verdict",
        "places": "a place excluded",
        "mark": "a best marked in a table",
        "gate": "worse, of 20 metrics in a gate",
    }
    lines = [
        "| scores | claim | false, median setting | worst setting | its models, scenes, clips a scene | draws |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for name, told in names.items():
            null = [
                (value[name] / value["draws"], key, value["draws"])
                for key, value in total.items()
                if key[1] == kind and not key[5] and name in value
            ]
            if null:
                share, key, draws = max(null)
                middle = 100 * float(np.median([one for one, _, _ in null]))
                where = f"{key[2]}, {key[3]}, {key[4]}"
                lines.append(f"| {kind} | {told} | {middle:.1f} % | {100 * share:.1f} % | {where} | {draws:.0f} |")
    return "\n".join(lines)


def power(now: Counts, former: Counts) -> str:
    """How often the better model is named the best, beside another version."""
    lines = ["| scores | models | clips a scene | 3 scenes | 6 | 10 | 20 | 40 |", "|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        for models in (2, 5):
            for clips in CLIPS:
                keys = [("claims", kind, models, scenes, clips, 1.0) for scenes in SCENES]
                if all(key in now and key in former for key in keys):
                    shares = [[100 * side[key]["best"] / side[key]["draws"] for side in (now, former)] for key in keys]
                    told = " | ".join(f"{mine:.0f} ({other:.0f})" for mine, other in shares)
                    lines.append(f"| {kind} | {models} | {clips} | {told} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
