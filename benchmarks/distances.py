"""Whether the distances between sets keep what they promise, on Gaussians whose distance is known.

    python benchmarks/distances.py [--draws 1000] [--only 400] [--workers 16] [--seconds 240]

For 16, 64 and 400 dimensions and n from the least number of scenes on: the bias of the corrected Fréchet distance, and
how often its 95 % interval holds the true distance; below the least number, and for the kernel distance, the same.
Every draw has a seed of its own, so that the number of workers changes nothing, and a run that was stopped goes on
with the next draws. Results go to benchmarks/distances/*.json, which a test reads; it fails where the code has changed
since.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import multiprocessing
import os
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from revisit.stats import distribution_distance, frechet_distance, kernel_distance
from revisit.stats.distance_formulas import FRECHET, KERNEL, DistanceFormula
from revisit.stats.distribution_distance import SetDistance

HERE = Path(__file__).with_suffix("")
PAGE, MARK = Path(__file__).parents[1] / "docs" / "distances.md", "<!-- benchmarks/distances.py --page -->"
SIZES = (16, 64, 400)
SEED = 20261117  # nothing was chosen on these draws
BLOCK = 5  # draws that a worker makes at a time
SEVERAL_CLIPS = "two clips a scene"
# Fields of syntax trees that change nothing when the code runs.
NOT_RUN = ("annotation", "returns", "ctx", "kind", "type_comment", "type_ignores", "type_params")
SHAPES = ("even", "decaying", "paired", SEVERAL_CLIPS, "heavy tails")
FORMULAS: dict[str, DistanceFormula] = {"frechet": FRECHET, "kernel": KERNEL}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One simulation: a distance, between sets of so many scenes in so many dimensions, of a shape."""

    distance: str
    dimensions: int
    n: int
    shape: str

    @property
    def file_name(self) -> str:
        """Of its results."""
        return f"{self.distance}-{self.dimensions}-{self.n}-{self.shape.replace(' ', '_')}.json"


@dataclass
class Sums:
    """Sums over the first draws of a cell."""

    draws: int = 0
    value: float = 0.0
    square: float = 0.0  # of values
    plain: float = 0.0
    error: float = 0.0  # squared
    inside: int = 0  # intervals that hold the true distance

    def add(self, distance: SetDistance, true: float) -> None:
        """Count one draw."""
        low, high = distance.interval
        one = Sums(1, distance.value, distance.value**2, distance.plain, distance.error**2, int(low <= true <= high))
        self.__dict__.update(asdict(self.plus(one)))

    def plus(self, other: Sums) -> Sums:
        """Of the draws of both."""
        return Sums(**{name: value + getattr(other, name) for name, value in asdict(self).items()})


def own_names(tree: ast.AST) -> set[str]:
    """Names that a module chooses itself: what it defines, assigns and takes, and what it imports from this package."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("revisit"):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def tree_without_names(node: object, numbers: dict[str, int], own: set[str]) -> str:
    """A syntax tree as text that stays the same on every Python, without docstrings, imports and annotations.

    An own name is the number of its first appearance in `numbers`.
    """
    if isinstance(node, str):
        return f"#{numbers.setdefault(node, len(numbers))}" if node in own else node
    if isinstance(node, list):
        statements = [one for one in node if not isinstance(one, ast.Import | ast.ImportFrom)]
        return "".join(f"({tree_without_names(one, numbers, own)})" for one in statements)
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if name not in NOT_RUN}
    body = fields.get("body")
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        fields["body"] = body[1:]
    inner = "".join(f"({tree_without_names(value, numbers, own)})" for value in fields.values())
    return type(node).__name__ + inner


@cache
def digest_of(*modules: ModuleType) -> str:
    """Of the code of modules, without comments, docstrings, annotations and imports, whatever it calls its things."""
    return digest_of_sources(*(Path(module.__file__ or "").read_text(encoding="utf-8") for module in modules))


def digest_of_sources(*sources: str) -> str:
    trees = [ast.parse(source) for source in sources]
    own = set().union(*map(own_names, trees))
    numbers: dict[str, int] = {}
    return hashlib.sha256("".join(tree_without_names(tree, numbers, own) for tree in trees).encode()).hexdigest()[:16]


def code_digest(distance: str) -> str:
    """Of the code of a distance."""
    return digest_of(distribution_distance, frechet_distance if distance == "frechet" else kernel_distance)


def spreads(dimensions: int, shape: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances of both sets, and how far their means are apart; the distance is an eighth of the variance."""
    first = np.ones(dimensions)
    if shape == "decaying":
        first = 1 / np.arange(1, dimensions + 1) ** 0.75
        first *= dimensions / first.sum()
    return first, first * 1.25**2, np.sqrt(first / 16)


def draw(
    rng: np.random.Generator, n: int, dimensions: int, shape: str
) -> tuple[np.ndarray, np.ndarray, list[Any], list[Any]]:
    """Two sets of n scenes, and the scenes of their rows."""
    first, second, apart = spreads(dimensions, shape)
    clips = 2 if shape == SEVERAL_CLIPS else 1

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


def simulate(cell: Cell, first: int, draws: int) -> Sums:
    """Sums over so many draws from the first on; each draw has a seed of its own."""
    kernel = cell.distance == "kernel"
    true, compute = true_distance(cell.dimensions, cell.shape, kernel), FORMULAS[cell.distance].compute
    sums = Sums()
    for number in range(first, first + draws):
        rng = np.random.default_rng([SEED, cell.dimensions, cell.n, SHAPES.index(cell.shape), kernel, number])
        sums.add(compute(*draw(rng, cell.n, cell.dimensions, cell.shape)), true)
    return sums


def summary(cell: Cell, sums: Sums) -> dict[str, Any]:
    """Bias and coverage with their standard errors, and the sums that further draws are added to."""
    true = true_distance(cell.dimensions, cell.shape, cell.distance == "kernel")
    count = sums.draws
    mean, coverage = sums.value / count, sums.inside / count
    spread = math.sqrt(max(sums.square / count - mean**2, 0.0) * count / max(count - 1, 1))
    return {
        **asdict(cell), "draws": count, "true": round(true, 4), "plain_bias": round(sums.plain / count / true - 1, 4),
        "bias": round(mean / true - 1, 4), "bias_se": round(spread / true / math.sqrt(count), 4),
        "sd": round(spread, 4), "error": round(math.sqrt(sums.error / count), 4), "coverage": round(coverage, 4),
        "coverage_se": round(math.sqrt(coverage * (1 - coverage) / count), 4), "code": code_digest(cell.distance),
        "sums": asdict(sums),
    }  # fmt: skip


def cells() -> list[Cell]:
    """All simulations: once, twice and four times the least number of scenes, and every shape at the least."""
    some = []
    for distance, formula in FORMULAS.items():
        for d in SIZES:
            least = formula.least_scenes(d)
            some += [Cell(distance, d, least * times, "even") for times in (1, 2, 4)]
            some += [Cell(distance, d, least, shape) for shape in SHAPES[1:]]
    return [*some, Cell("frechet", 400, 50, "even"), Cell("frechet", 400, 200, "even")]


def goal(cell: Cell, draws: int) -> int:
    """How many draws a cell gets: fewer where each takes a second, and where the distance is not given."""
    if cell.n < FORMULAS[cell.distance].least_scenes(cell.dimensions):
        return draws // 10
    return 2 * draws // 5 if cell.distance == "frechet" and cell.dimensions >= 400 else draws


def stored_sums(cell: Cell, folder: Path) -> Sums:
    """What earlier runs of this code left."""
    path = folder / cell.file_name
    row = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return Sums(**row["sums"]) if row.get("code") == code_digest(cell.distance) and "sums" in row else Sums()


def run(chosen: list[Cell], draws: int, workers: int, seconds: float, folder: Path) -> None:
    """Simulate these cells in parallel, some draws of each in turn, and store each after every block of draws."""
    done = {cell: stored_sums(cell, folder) for cell in chosen}
    waiting: dict[tuple[Cell, int], Sums] = {}  # blocks that came before the ones that they follow
    ends = {cell: goal(cell, draws) for cell in chosen}
    most = max((ends[cell] - done[cell].draws for cell in chosen), default=0)
    tasks = [
        (cell, first, min(BLOCK, ends[cell] - first))
        for turn in range(0, max(most, 0), BLOCK)
        for cell in chosen
        if (first := done[cell].draws + turn) < ends[cell]
    ]
    stop = time.monotonic() + seconds
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=_until, initargs=(time.time() + seconds,)) as pool:
        for cell, first, sums in pool.imap_unordered(_block, tasks):
            if sums is None:
                continue
            waiting[cell, first] = sums
            while (cell, done[cell].draws) in waiting:  # in the order of draws: the same whatever the workers do
                done[cell] = done[cell].plus(waiting.pop((cell, done[cell].draws)))
                row = summary(cell, done[cell])
                (folder / cell.file_name).write_text(json.dumps(row) + "\n", encoding="utf-8")
    for cell in chosen:
        if done[cell].draws:
            row = summary(cell, done[cell])
            print(json.dumps({name: value for name, value in row.items() if name not in ("code", "sums")}), flush=True)
    if time.monotonic() >= stop:
        print("stopped by --seconds; the same command goes on", flush=True)


_deadline = 0.0


def _until(deadline: float) -> None:
    global _deadline
    _deadline = deadline


def _block(task: tuple[Cell, int, int]) -> tuple[Cell, int, Sums | None]:
    """A block of draws, or None when time is up."""
    cell, first, draws = task
    return cell, first, simulate(cell, first, draws) if time.time() < _deadline else None


def sentences(stored: list[dict[str, Any]]) -> list[str]:
    """What the simulations and the draws of halves say in all."""
    lines = []
    for distance, formula in FORMULAS.items():
        rows = [
            row for row in stored
            if row["distance"] == distance and row["n"] >= formula.least_scenes(row["dimensions"])
        ]  # fmt: skip
        coverages, draws = sorted(row["coverage"] for row in rows), sum(row["draws"] for row in rows)
        inside = sum(row["sums"]["inside"] for row in rows) / draws
        errors = sorted(row["coverage_se"] for row in rows)
        lines.append(
            f"- *{distance}*, from the least number of scenes on: intervals held the true distance in {inside:.1%} of "
            f"{draws:,} draws, in the {len(rows)} settings in {coverages[0]:.1%} to {coverages[-1]:.1%} (standard "
            f"errors {errors[0]:.1%} to {errors[-1]:.1%}). The bias was at most "
            f"{max(abs(row['bias']) for row in rows):.1%} of the distance."
        )
    painted = json.loads((HERE / "fvd_painted.json").read_text(encoding="utf-8"))
    halves = json.loads((HERE / "failures.json").read_text(encoding="utf-8"))["halves"]
    halves += [{"distance": "fvd", "scenes": painted["scenes"], **painted["halves"]}]
    shares = []
    for row in halves:
        name, share = row["distance"].upper(), row["called_different"]
        shares.append(f"{name} in {share:.1%} of {row['draws']:,} draws of {row['scenes']:,} scenes")
    lines.append(
        f"- Two sets of the same worlds, without a common scene, were called different by {', '.join(shares)} each."
    )
    return lines


def tables() -> str:
    """What docs/distances.md shows of the stored results."""
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in HERE.glob("*-*-*.json")]
    lines = [*sentences(stored), ""]
    lines.append("| distance | dimensions | scenes | sets | draws | bias, plain | bias, corrected | coverage |")
    lines.append("|---|--:|--:|---|--:|--:|--:|--:|")
    for row in sorted(stored, key=lambda r: (r["distance"], r["dimensions"], r["n"], SHAPES.index(r["shape"]))):
        plain = f"{row['plain_bias']:+.0%}" if row["distance"] == "frechet" else "–"
        lines.append(
            f"| {row['distance']} | {row['dimensions']} | {row['n']} | {row['shape']} | {row['draws']} | {plain} | "
            f"{row['bias']:+.1%} ± {row['bias_se']:.1%} | {row['coverage']:.1%} ± {row['coverage_se']:.1%} |"
        )
    lines += [
        "",
        '| scores | scenes | trainings | false "better" in 20 looks | the same at 5 % a look |',
        "|---|--:|--:|--:|--:|",
    ]
    for row in json.loads((HERE / "stopping.json").read_text(encoding="utf-8")):
        lines.append(
            f"| {row['scores']} | {row['scenes']} | {row['trainings']} | "
            f"{row['false_better']:.1%} ± {row['false_better_se']:.1%} | "
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
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--distance", choices=("both", "frechet", "kernel"), default="both")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further draws after so long")
    parser.add_argument("--page", action="store_true", help="only write the stored results into docs/distances.md")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results, which the same command adds to")
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    chosen = [
        cell
        for cell in cells()
        if given.only in (None, cell.dimensions)
        and given.n in (None, cell.n)
        and given.shape in (None, cell.shape)
        and given.distance in ("both", cell.distance)
    ]
    run(chosen, given.draws, given.workers, given.seconds, given.out)


if __name__ == "__main__":
    main()
