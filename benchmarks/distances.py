"""Whether the distances between sets keep what they promise, on Gaussians whose distance is known.

    python benchmarks/distances.py [--draws 1000] [--only 400] [--seconds 600]

For 16, 64 and 400 dimensions and n from the least number of scenes on: the bias of the corrected Fréchet distance, and
how often its 95 % interval holds the true distance; below the least number, and for the kernel distance, the same.
Results are added to benchmarks/distances/*.json, which a test reads; it fails where the code has changed since.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from revisit.stats import distribution_distance
from revisit.stats.distribution_distance import (
    SetDistance,
    frechet_distance,
    kernel_distance,
    least_scenes,
    least_scenes_of_kernel,
)

HERE = Path(__file__).with_suffix("")
PAGE, MARK = Path(__file__).parents[1] / "docs" / "distances.md", "<!-- benchmarks/distances.py --page -->"
SIZES = (16, 64, 400)
SHAPES = ("even", "decaying", "paired", "two clips a scene", "heavy tails")
Distance = Callable[..., SetDistance]


def code_digest() -> str:
    """Of the code of the distances, without docstrings, comments and blank lines."""
    source = Path(distribution_distance.__file__).read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            text = body[0].value
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                docstrings.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines = (line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in docstrings)
    kept = "\n".join(line for line in lines if line and not line.startswith("#"))
    return hashlib.sha256(kept.encode()).hexdigest()[:16]


def spreads(dimensions: int, shape: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances of both sets, and how far their means are apart; the distance is an eighth of the variance."""
    first = np.ones(dimensions)
    if shape == "decaying":
        first = 1 / np.arange(1, dimensions + 1) ** 0.75
        first *= dimensions / first.sum()
    return first, first * 1.25**2, np.sqrt(first / 16)


def draw(rng: np.random.Generator, n: int, dimensions: int, shape: str) -> tuple:
    """Two sets of n scenes, and the scenes of their rows."""
    first, second, apart = spreads(dimensions, shape)
    clips = 2 if shape == "two clips a scene" else 1

    def noise() -> np.ndarray:
        if shape == "heavy tails":  # Student's t with 8 degrees of freedom in every dimension
            return rng.standard_t(8, size=(n, dimensions)) * np.sqrt(6 / 8)
        if clips == 1:
            return rng.normal(size=(n, dimensions))
        common = np.repeat(rng.normal(size=(n, dimensions)), clips, axis=0)
        return np.sqrt(0.5) * (common + rng.normal(size=common.shape))

    one, two = noise(), noise()
    if shape == "paired":  # a model's clip is like the truth of its scene
        two = 0.8 * one + 0.6 * two
    names = [k // clips for k in range(n * clips)]
    same = shape == "paired"
    return (
        0.5 + one * np.sqrt(first),
        0.5 + apart + two * np.sqrt(second),
        [("a", k) if not same else k for k in names],
        [("b", k) if not same else k for k in names],
    )


def true_distance(dimensions: int, shape: str, kernel: bool) -> float:
    """In closed form."""
    first, second, apart = spreads(dimensions, shape)
    if not kernel:
        return float((apart**2).sum() + ((np.sqrt(first) - np.sqrt(second)) ** 2).sum())
    base = np.full(dimensions, 0.5)

    def expected(mean_a: np.ndarray, a: np.ndarray, mean_b: np.ndarray, b: np.ndarray) -> float:
        """Of (x·y / d + 1)³ for independent normal x and y."""
        u, both = float(mean_a @ mean_b), float((a * b).sum())
        ends = float((mean_b**2 * a).sum() + (mean_a**2 * b).sum())
        second_moment = both + ends + u * u
        third = u**3 + 3 * u * ends + 3 * u * both + 6 * float((mean_a * b * a * mean_b).sum())
        return 1 + 3 * u / dimensions + 3 * second_moment / dimensions**2 + third / dimensions**3

    other = base + apart
    return (
        expected(base, first, base, first)
        + expected(other, second, other, second)
        - 2 * expected(base, first, other, second)
    )


def simulate(kernel: bool, dimensions: int, n: int, shape: str, draws: int, seconds: float = 1e9) -> Iterator[dict]:
    """Bias and coverage over more and more draws, to so many or to as many as fit into the time."""
    true, distance = true_distance(dimensions, shape, kernel), kernel_distance if kernel else frechet_distance
    rng, rows, started = np.random.default_rng([dimensions, n, SHAPES.index(shape), kernel]), [], time.monotonic()
    while len(rows) < draws and time.monotonic() - started < seconds:
        found = distance(*draw(rng, n, dimensions, shape))
        low, high = found.interval
        rows.append((found.value, found.plain, found.error, low <= true <= high))
        if len(rows) % 20 and len(rows) < draws:
            continue
        value, plain, error, inside = np.array(rows, dtype=float).T
        yield {
            "distance": "kernel" if kernel else "frechet", "dimensions": dimensions, "n": n, "shape": shape,
            "draws": len(rows), "true": round(true, 4), "plain_bias": round(float(plain.mean() / true - 1), 4),
            "bias": round(float(value.mean() / true - 1), 4), "sd": round(float(value.std(ddof=1)), 4),
            "error": round(float(np.sqrt((error**2).mean())), 4), "coverage": round(float(inside.mean()), 4),
        }  # fmt: skip


def cells(kernel: bool) -> list[tuple[int, int, str]]:
    """Dimensions, n and shape of all simulations."""
    least = least_scenes_of_kernel if kernel else least_scenes
    some = [(d, least(d) * times, "even") for d in SIZES for times in (1, 2, 4) if kernel or d < 400 or times < 4]
    some += [(d, least(d), shape) for d in SIZES for shape in SHAPES[1:] if kernel or d < 400 or shape == "decaying"]
    return some + ([] if kernel else [(400, 50, "even"), (400, 200, "even")])


def tables() -> str:
    """What docs/distances.md shows of the stored results."""
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in HERE.glob("*-*-*.json")]
    lines = ["| distance | dimensions | scenes | sets | draws | bias, plain | bias, corrected | coverage |"]
    lines.append("|---|--:|--:|---|--:|--:|--:|--:|")
    for row in sorted(stored, key=lambda r: (r["distance"], r["dimensions"], r["n"], SHAPES.index(r["shape"]))):
        plain = f"{row['plain_bias']:+.0%}" if row["distance"] == "frechet" else "–"
        lines.append(
            f"| {row['distance']} | {row['dimensions']} | {row['n']} | {row['shape']} | {row['draws']} | {plain} | "
            f"{row['bias']:+.1%} | {row['coverage']:.1%} |"
        )
    lines += [
        "",
        '| scores | scenes | trainings | false "better" in 20 looks | the same at 5 % a look |',
        "|---|--:|--:|--:|--:|",
    ]
    for row in json.loads((HERE / "stopping.json").read_text(encoding="utf-8")):
        lines.append(
            f"| {row['scores']} | {row['scenes']} | {row['trainings']} | {row['false_better']:.1%} | "
            f"{row['false_better_when_peeking']:.1%} |"
        )
    return "\n".join(lines)


def write_page() -> None:
    """Put the tables into docs/distances.md."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    tail = rest.partition(MARK)[2]
    PAGE.write_text(f"{head}{MARK}\n{tables()}\n{MARK}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", type=int, help="dimensions")
    parser.add_argument("--n", type=int, help="scenes")
    parser.add_argument("--distance", choices=("both", "frechet", "kernel"), default="both")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most for one cell")
    parser.add_argument("--page", action="store_true", help="only write the stored results into docs/distances.md")
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    HERE.mkdir(exist_ok=True)
    for kernel in (False, True):
        for dimensions, n, shape in cells(kernel):
            wanted = given.only in (None, dimensions) and given.distance in ("both", "kernel" if kernel else "frechet")
            if wanted and (given.n is None or n == given.n):
                row: dict = {}
                for row in simulate(kernel, dimensions, n, shape, given.draws, given.seconds):
                    row["code"] = code_digest()
                    name = f"{row['distance']}-{dimensions}-{n}-{shape.replace(' ', '_')}.json"
                    (HERE / name).write_text(json.dumps(row) + "\n", encoding="utf-8")
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
