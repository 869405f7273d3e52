"""`revisit camera poses`: estimates the camera paths of clips with an estimator of the user's choice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.options import JSON, LIMIT, OPTION, QUIET, ROOT, SOURCE, SUITE, flag_option, out_option

if TYPE_CHECKING:
    from revisit.engine.request import Request
    from revisit.posing.tasks import Estimator, PoseTask

WITH = typer.Option(
    ...,
    "--with",
    help="da3, vggt, vggt-omega, mapanything, vipe, pycolmap, odometry (built in), or a command with {video}, {npz}.",
)
PYTHON = typer.Option(
    sys.executable, "--python", help="Python that has the estimator.", show_default="the one of Revisit"
)
MODEL = typer.Option("", help="Checkpoint or, for vipe, pipeline; the authors' recommendation by default.")
DEVICE = typer.Option("", help="cuda, cuda:1 or cpu, for the estimator; a GPU where there is one by default.")
FRAMES = typer.Option(
    None, min=2, help="At most so many frames of a clip, evenly spread; all by default (pycolmap 120)."
)
CONVENTION = typer.Option("auto", help="Pose convention of your command: w2c, c2w, or auto to find out from its depth.")
TIMEOUT = typer.Option(None, min=1, help="Time limit per clip in seconds.")
ODOMETRY_WORKERS = typer.Option(None, "--workers", help="Number of processes of the built-in odometry.")


def poses(
    source: Path = SOURCE,
    with_: str = WITH,
    out: Path = out_option("Folder for <model>/<clip>.npz; a suite takes it as --option poses=PATH.", required=True),
    python: str = PYTHON,
    model: str = MODEL,
    device: str = DEVICE,
    frames: int = FRAMES,
    first: int = typer.Option(None, min=2, help="Only the first N frames of a clip; MIND uses 97."),
    convention: str = CONVENTION,
    timeout: float = TIMEOUT,
    suite: str = SUITE,
    option: list[str] = OPTION,
    root: list[Path] = ROOT,
    limit: int = LIMIT,
    workers: int = ODOMETRY_WORKERS,
    fresh: bool = flag_option("--fresh", "Make existing files again."),
    quiet: bool = QUIET,
    json: bool = JSON,
) -> None:
    """Estimate the camera path of every clip, one file each. The same command resumes."""
    from dataclasses import asdict

    from revisit.engine.request import Request
    from revisit.posing.tasks import write_missing_pose_files

    asks = ["camera_path"]
    request = Request.from_options(source, suite, "lite", None, asks, limit, "auto", root, option, truth=False)
    estimator = make_pose_estimator(with_, python, model, device, frames, convention, timeout, workers)
    tasks = make_pose_tasks(request, out, first)
    count = None if quiet or json else console.Counter("posed")
    outcome = write_missing_pose_files(tasks, estimator, fresh=fresh, tell=count)
    if json:
        console.print_json(asdict(outcome))
    else:
        console.print_to_stderr(*outcome.failed)
        console.print_to_stderr(f"{outcome.made} made, {outcome.kept} kept, {len(outcome.failed)} failed in {out}")
    raise typer.Exit(1 if outcome.failed else 0)


def make_pose_estimator(
    with_: str, python: str, model: str, device: str, frames: int | None, convention: str, timeout: float | None,
    workers: int | None,
) -> Estimator:  # fmt: skip
    """The estimator that --with names."""
    from revisit.core import UsageError
    from revisit.posing.programs import ESTIMATORS, Command, Driver

    if with_ == "odometry":
        from revisit.posing.odometry import Odometry

        return Odometry(workers)
    if with_ in ESTIMATORS:
        return Driver(with_, python, model, device, frames, timeout)
    if "{" in with_:
        return Command(with_, convention, timeout)
    raise UsageError(
        f"unknown estimator {with_!r}; choose odometry, {', '.join(ESTIMATORS)}, or a command such as "
        "'python mine.py {video} {npz}'"
    )


def make_pose_tasks(request: Request, out: Path, most_frames: int | None = None) -> list[PoseTask]:
    """The clips of a source, each with the place of its poses: <model>/<what its id says besides the model>.npz.

    Of clips that have more frames than `most_frames`, the estimator sees the first ones only.
    """
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.posing.tasks import PoseTask

    tasks: dict[Path, PoseTask] = {}
    plan = request.plan()
    for case in plan.cases:
        if not plan.checks_for(case):  # a suite may know that nobody asks for the camera of a clip
            continue
        name = case.id.replace(f"@{case.model}", "", 1).removesuffix("#0")
        inside = Path(case.model, name)
        if inside.is_absolute() or ".." in inside.parts:
            raise UsageError(f"{case.id}: its poses would lie outside {out}; give the clip another name")
        place = out / inside.with_name(f"{inside.name}.npz")
        clip = case.clip
        if most_frames is not None:
            clip = replace(clip, count=min(most_frames, clip.count or most_frames))
        tasks.setdefault(place, PoseTask(case.id, clip, place, place.with_name(f"{inside.name}.log")))
    return list(tasks.values())
