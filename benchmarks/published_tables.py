"""Rank correlation of our scores with a benchmark's printed table, model by model.

    python benchmarks/published_tables.py RUN TABLE.json [OUT.json]

RUN has the clips of several models beside their references (cases <scene>/<model>/ref). TABLE.json is the printed
table, {"table2": {model: {column: number}}}. For each metric that claims what a column claims, the mean over scenes is
ranked against the column: Spearman's rho over the models, and a 95 % interval by drawing scenes with replacement
(models are the same in each draw, so the interval tells how far rho depends on these scenes, not on these models).
Rho is positive where both agree on what is better.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

import revisit

MODELS = {
    "lingbot": "LingBot-World", "wan": "Wan2.2", "fantasyworld": "FantasyWorld", "matrixgame": "Matrix-Game 2.0",
    "svc": "Stable Virtual Camera", "opensora": "Open-SoRA", "ltxvideo": "LTX-Video", "cogvideo": "CogVideoX",
}  # fmt: skip
CLAIMS = {  # metric -> the column that claims the same, and whether larger is better in both (1) or not (-1)
    "psnr": ("PSNR", 1), "ssim": ("SSIM", 1), "motion_smoothness": ("MotSmooth", 1), "camera_reach": ("CamCtrl", 1),
    "camera_scale": ("CamCtrl", 1), "camera_standstill": ("CamCtrl", -1), "camera_strays": ("CamCtrl", -1),
    "target_identity": ("ObjConsist", 1), "target_reappearance": ("ORS", 1), "visual_integrity_lite": ("3DConsist", 1),
}  # fmt: skip
LEAST_MODELS = 6
DRAWS = 2000


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, ties sharing their mean."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values))
    rank[order] = np.arange(1, len(values) + 1)
    for value in np.unique(values):
        rank[values == value] = rank[values == value].mean()
    return rank


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's rho; nan where one of them is constant."""
    x, y = ranks(a), ranks(b)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def correlate(scores: dict[tuple[str, str], float], column: dict[str, float]) -> dict[str, object]:
    """Rho of the means over scenes, with its interval; scores by (scene, model)."""
    scenes = sorted({scene for scene, _ in scores})

    def rho(drawn: list[str]) -> tuple[float, int]:
        means = {}
        for model in column:
            values = [scores[scene, model] for scene in drawn if (scene, model) in scores]
            if values:
                means[model] = float(np.mean(values))
        if len(means) < LEAST_MODELS:
            return float("nan"), len(means)
        names = list(means)
        return spearman(np.array([means[m] for m in names]), np.array([column[m] for m in names])), len(means)

    value, models = rho(scenes)
    row: dict[str, object] = {"models": models, "clips": len(scores), "scenes": len(scenes)}
    if np.isnan(value):
        return {**row, "rho": None, "why": f"fewer than {LEAST_MODELS} models have a score"}
    rng = np.random.default_rng(0)
    draws = [rho([scenes[k] for k in rng.integers(0, len(scenes), len(scenes))])[0] for _ in range(DRAWS)]
    low, high = np.nanquantile(draws, (0.025, 0.975))
    return {**row, "rho": round(value, 2), "interval": [round(float(low), 2), round(float(high), 2)]}


def main(run: Path, table: Path, out: Path | None) -> None:
    printed = json.loads(table.read_text(encoding="utf-8"))["table2"]
    results = revisit.load(run)
    scores: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for case in results.cases:
        name = case.id.partition("@")[0]
        if not name.endswith("/ref"):
            continue
        scene, model, _ = name.split("/")
        for metric in CLAIMS:
            value = results.score(case, metric)
            if model in MODELS and value is not None:
                scores[metric][scene, model] = float(value)
    rows = {}
    for metric, (column, direction) in CLAIMS.items():
        values = {model: direction * printed[title][column] for model, title in MODELS.items()}
        expected = "rises" if direction > 0 else "falls"
        rows[metric] = {"column": column, "expected": expected, **correlate(scores[metric], values)}
    text = json.dumps(rows, indent=1)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    given = parser.parse_args()
    main(given.run, given.table, given.out)
