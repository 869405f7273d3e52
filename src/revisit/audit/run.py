"""The audit as a command runs it: render the grid, evaluate it with the engine, analyse, write.

<out>/grid/          the clips and their truth (grid.py)
<out>/run/           an ordinary run of the engine on them, with its records
<out>/audit.json     what every metric makes of every failure (analyse.py)
<out>/index.html     the same as a page (page.py)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit._version import __version__
from revisit.audit.analyse import analyse_grid_results, score_diagnoses
from revisit.audit.benchmark_trials import round_to_four_digits
from revisit.audit.grid import FPS, FRAMES, SIZE, render_grid
from revisit.audit.schema import AuditOptions, Content
from revisit.core import SUITES, UsageError
from revisit.engine.parameters import default_parameters_of_plan
from revisit.engine.plan import Plan, make_plan
from revisit.engine.request import Request, load_observer_set
from revisit.engine.resume import hash_of_metrics_and_gates
from revisit.engine.run import evaluate
from revisit.media.files import write_text_atomically
from revisit.results.record_files import write_json
from revisit.results.run import Run
from revisit.worlds.failures import FAILURES, FLOORS

STRENGTHS = (0.5, 1.0)  # and 0, which is perfect memory
SEEDS = 4


@dataclass(frozen=True)
class AuditGrid:
    """Which failures, how strong, in how many scenes."""

    kinds: tuple[str, ...] = ()  # all by default
    strengths: tuple[float, ...] = STRENGTHS
    seeds: int = SEEDS
    first_seed: int = 0
    size: tuple[int, int] = SIZE  # height, width
    floors: tuple[str, ...] = tuple(FLOORS)

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in FAILURES]
        if unknown:
            raise UsageError(f"unknown failure {unknown[0]!r}; choose one of {', '.join(FAILURES)}")
        wrong = [strength for strength in self.strengths if not 0 < strength <= 1]
        if wrong or 1.0 not in self.strengths:
            raise UsageError(
                "strengths must be numbers above 0 and up to 1, including 1, such as 0.5,1; got "
                f"{','.join(f'{strength:g}' for strength in self.strengths) or 'none'}"
            )
        if self.seeds < 2:
            raise UsageError(f"the audit needs at least 2 scenes, not {self.seeds}; give --seeds 4")

    @property
    def failure_kinds(self) -> tuple[str, ...]:
        return self.kinds or tuple(FAILURES)

    @property
    def scene_seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def middle_strength_seeds(self) -> range:
        """Every second scene: strengths are compared within a scene, which needs fewer of them than AUC does."""
        return self.scene_seeds[::2]


def run_audit(
    out: Path,
    grid: AuditGrid,
    suites: Sequence[str] = ("folder",),
    options: AuditOptions = AuditOptions(),
    command: str = "",
) -> Content:
    """Render, evaluate and analyse what is not there yet; return the content of audit.json."""
    render_grid(
        out / "grid",
        [*grid.failure_kinds, *grid.floors],
        grid.strengths,
        grid.scene_seeds,
        middle=grid.middle_strength_seeds,
        size=grid.size,
        options=options,
    )
    plan, run = evaluate_grid(out / "grid", out / "run", suites, options, command)
    content = analyse_run(plan, run, grid)
    write_json(out / "audit.json", content)
    return content


def evaluate_grid(
    folder: Path, out: Path, suites: Sequence[str], options: AuditOptions, command: str = ""
) -> tuple[Plan, Run]:
    """The plan of a rendered folder, and its run in `out`."""
    plan, request = audit_plan_and_request(folder, options.set, suites, options.metrics)
    run = evaluate(
        plan, out, workers=options.workers, fresh=options.fresh, progress=options.progress, command=command,
        request=request.as_json(),
    )  # fmt: skip
    return plan, run


def audit_plan_and_request(
    folder: Path, set: str, suites: Sequence[str], metrics: Sequence[str] = ()
) -> tuple[Plan, Request]:
    """The plan that asks all metrics of the suites of a rendered folder, each under its suite's first protocol.

    And the request that makes the same plan, so that the run can be scored again.
    """
    overrides: dict[str, Mapping[str, object]] = {}
    metric_ids = list(metrics)
    for suite in (SUITES[suite_id] for suite_id in dict.fromkeys(suites)):
        overrides |= suite.protocols[next(iter(suite.protocols))] or {}
        if not metrics and {*suites} != {"folder"}:
            metric_ids += suite.metrics()
    metric_ids = list(dict.fromkeys(metric_ids))
    plan = make_plan(
        SUITES["folder"], folder, load_observer_set(set), metrics=metric_ids, align="index", overrides=overrides
    )
    uses = default_parameters_of_plan(plan)
    own = {id: parameters for id, parameters in overrides.items() if id in uses}
    return plan, Request(str(folder.resolve()), "folder", set, metrics=tuple(metric_ids), align="index", parameters=own)


def analyse_run(plan: Plan, run: Run, grid: AuditGrid) -> Content:
    """What the records of a run on a grid say of its metrics."""
    results = run.results
    facts = {
        "revisit": __version__,
        "set": plan.observers.id,
        "protocol": f"{plan.protocol}:{hash_of_metrics_and_gates(plan.as_json())}",
        "seeds": list(grid.scene_seeds),
        "scenes": sorted({case.sample for case in plan.cases}),
        "strengths": list(grid.strengths),
        "seeds_of_all_strengths": list(grid.middle_strength_seeds),
        "clips": len(plan.cases),
        "frames": FRAMES,
        "fps": FPS,
        "size": list(grid.size),
        "failed": len(results.failures),
    }
    return {
        "grid": facts,
        **analyse_grid_results(results, grid.failure_kinds, grid.floors),
        "diagnosis": score_diagnoses(results),
    }


def save_card_results(audit_content: Content) -> Path:
    """Write what the metrics' cards show into the package and return the file's path."""
    from revisit.audit import results

    cell_names = ("auc", "tau", "effect", "n", "of", "claimed", "response", "read")
    metric_names = ("version", "memory", "claims", "untested_claims", "ceiling", "perfect", "floors", "failing")
    content = {
        "grid": audit_content["grid"],
        "kinds": audit_content["kinds"],
        "metrics": {
            metric_id: {
                **_select_items(metric, metric_names),
                "kinds": {kind: _select_items(cell, cell_names) for kind, cell in metric["kinds"].items()},
            }
            for metric_id, metric in audit_content["metrics"].items()
        },
        "diagonal": audit_content["diagonal"],
        "not_asked": audit_content["not_asked"],
    }
    path = Path(str(results.__file__)).with_name(f"{audit_content['grid']['set']}.json")
    text = json.dumps(round_to_four_digits(content), separators=(",", ":"), allow_nan=False)
    write_text_atomically(path, text + "\n")
    return path


def _select_items(content: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    return {name: content[name] for name in names}
