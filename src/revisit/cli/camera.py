"""`revisit camera`: camera scripts, their form for each generator, and camera paths estimated from clips."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, LIMIT, OPTION, OWN_GENERATORS, QUIET, ROOT, SOURCE, SUITE, flag_option, out_option

if TYPE_CHECKING:
    from revisit.engine.request import Request
    from revisit.posing.tasks import Estimator, PoseTask

app = Commands("Show and convert camera scripts; estimate camera paths.")

SCRIPT = typer.Argument(help="A script such as yaw:left:60@40,yaw:right:60@40, or the name of a preset.")
FRAMES = typer.Option(None, help="Number of frames; that of the script by default.")
WITH = typer.Option(
    ...,
    "--with",
    help="da3, vggt, vggt-omega, mapanything, vipe, pycolmap, odometry (built in), or a command with {video}, {npz}.",
)
PYTHON = typer.Option(
    sys.executable, "--python", help="Python that has the estimator.", show_default="the one of Revisit"
)
POSE_MODEL = typer.Option("", help="Checkpoint or, for vipe, pipeline; the authors' recommendation by default.")
DEVICE = typer.Option("", help="cuda, cuda:1 or cpu, for the estimator; a GPU where there is one by default.")
POSE_FRAMES = typer.Option(
    None, min=2, help="At most so many frames of a clip, evenly spread; all by default (pycolmap 120)."
)
CONVENTION = typer.Option("auto", help="Pose convention of your command: w2c, c2w, or auto to find out from its depth.")
TIMEOUT = typer.Option(None, min=1, help="Time limit per clip in seconds.")
ODOMETRY_WORKERS = typer.Option(None, "--workers", help="Number of processes of the built-in odometry.")


@app.command()
def show(
    script: str = SCRIPT,
    frames: int = FRAMES,
    plot: Path = typer.Option(None, help="Write a picture of the path (SVG) here."),
    first_view: bool = flag_option("--first-view", "Move along the axes of the first view, as WRBench does."),
    json: bool = JSON,
) -> None:
    """Print the path of a script: where the camera is and where it looks."""
    import numpy as np

    from revisit.control.requested_path import camera_plan_svg, compile_script
    from revisit.geometry.rotations import yaw_pitch_of_rotation

    plan = compile_script(
        _script_or_preset_script(script, frames or 81), frames=frames, axes="first_view" if first_view else "heading"
    )
    if plot is not None:
        plot.write_text(camera_plan_svg(plan), encoding="utf-8")
        console.print_to_stderr(f"picture: {plot}")
    names = ("frame", "yaw", "pitch", "x", "y", "z")
    pitch = yaw_pitch_of_rotation(plan.path.rotations)[1].round(3) + 0.0  # no -0
    columns = np.arange(len(plan)), plan.yaw_degrees.round(3), pitch, *plan.path.centres.round(4).T
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if json:
        poses = [dict(zip(names, row, strict=True)) for row in rows]
        facts = {"script": plan.script, "frames": len(plan), "peak_yaw": plan.farthest_signed_yaw_degrees}
        console.print_json({**facts, "poses": poses})
        return
    farthest = f"farthest yaw {plan.farthest_signed_yaw_degrees:+.1f} degrees (right is positive)"
    typer.echo(f"{plan.script}\n{len(plan)} frames, {farthest}")
    selection = sorted({round(k * (len(rows) - 1) / 12) for k in range(13)})
    console.print_table(names, [[f"{value:g}" for value in rows[k]] for k in selection], numbers=True)


@app.command(name="compile")
def compile_(
    script: str = SCRIPT,
    model: str = typer.Option(..., help="A generator from `revisit camera models`."),
    out: Path = out_option("Where to write; the family's suffix is added.", required=True),
    frames: int = FRAMES,
    prompt: str = typer.Option("", help="The prompt, if the payload contains one."),
    image: Path = typer.Option(None, help="The first frame, if the payload names it or needs its size."),
    own: Path = OWN_GENERATORS,
    json: bool = JSON,
) -> None:
    """Write a script in the form that a generator reads. Also the path that its clip is compared with."""
    import numpy as np

    from revisit.control.delivery import make_delivery, plan_for_generator
    from revisit.control.generators import find_generator
    from revisit.control.job_runner import first_picture_size_if_needed

    to = find_generator(model, own)
    count = frames or (to.frames if _is_preset_name(script) else None)
    plan = plan_for_generator(_script_or_preset_script(script, frames or to.frames), to, count)
    picture = first_picture_size_if_needed(image, to) if image is not None else None
    delivery = make_delivery(plan, to, prompt=prompt, image=str(image or ""), picture=picture)
    payload, path = delivery.write_files_beside(out), out.with_name(f"{out.name}.target_c2w.npy")
    with path.open("wb") as file:
        np.save(file, plan.path.c2w)
    if json:
        facts = {**delivery.record_facts(), "remarks": delivery.remarks()}
        console.print_json({"payload": str(payload), "path": str(path), **facts})
        return
    typer.echo(f"{payload}\n{path}")
    console.print_to_stderr(*delivery.remarks(), *([to.note] if to.note else []))


@app.command()
def presets(
    degrees: float = typer.Option(60, help="Size of the turns."),
    metres: float = typer.Option(0.5, help="Size of the ways."),
    frames: int = typer.Option(81, help="Frames of the clip."),
    json: bool = JSON,
) -> None:
    """List the camera presets with their scripts."""
    from revisit.control.requested_path import PRESETS, preset_script

    rows = {name: preset_script(name, degrees=degrees, metres=metres, frames=frames) for name in PRESETS}
    cells = [[name, PRESETS[name][1], script] for name, script in rows.items()]
    console.print_json_or_table(rows, ["preset", "what", "script"], cells, json)


@app.command()
def models(own: Path = OWN_GENERATORS, json: bool = JSON) -> None:
    """List the known generators. Their inputs, the form of their camera path, and what was checked."""
    from revisit.control.generators import load_generators

    cards = load_generators(own)
    rows = [
        [
            entry.id, entry.takes, entry.condition, entry.payload, f"{entry.frames} at {entry.fps:g}",
            "x".join(map(str, entry.size)), f"{entry.gain[0]:g}", entry.checked_text,
        ]
        for entry in cards.values()
    ]  # fmt: skip
    heads = ["model", "takes", "viewpoint condition", "payload", "frames", "size", "gain", "payload checked"]
    console.print_json_or_table([asdict(entry) for entry in cards.values()], heads, rows, json)


@app.command()
def families(json: bool = JSON) -> None:
    """List the forms in which generators take a camera path."""
    from revisit.control.payloads import FAMILIES

    rows = [
        [family.id, ", ".join(family.files if family.is_folder else (f".{family.files[0]}",)), family.layout]
        for family in FAMILIES.values()
    ]
    content = [dict(zip(("id", "files", "layout"), row, strict=True)) for row in rows]
    console.print_json_or_table(content, ["payload", "files", "layout"], rows, json)


def _script_or_preset_script(text: str, frames: int = 81) -> str:
    """A script, or the script of the preset that it names."""
    from revisit.control.requested_path import PRESETS, preset_script
    from revisit.core import UsageError
    from revisit.core.text import did_you_mean_question
    from revisit.geometry.camera_script import RESTS

    if _is_preset_name(text):
        return preset_script(text.removeprefix("preset:"), frames=frames)
    if re.fullmatch(r"[\w-]+", text) and text.lower() not in RESTS:
        hint = did_you_mean_question(text, PRESETS)
        raise UsageError(
            f"there is no camera preset called {text!r}; {hint + ' ' if hint else ''}`revisit camera presets` lists "
            "them; a script is written in steps with their numbers of frames, such as yaw:left:60@40"
        )
    return text


def _is_preset_name(text: str) -> bool:
    from revisit.control.requested_path import PRESETS

    return text in PRESETS or text.startswith("preset:")


@app.command()
def poses(
    source: Path = SOURCE,
    with_: str = WITH,
    out: Path = out_option("Folder for <model>/<clip>.npz; a suite takes it as --option poses=PATH.", required=True),
    python: str = PYTHON,
    model: str = POSE_MODEL,
    device: str = DEVICE,
    frames: int = POSE_FRAMES,
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
    from revisit.engine.request import Request
    from revisit.posing.tasks import update_pose_files

    asks = ["camera_path"]
    request = Request.from_options(source, suite, "lite", None, asks, limit, "auto", root, option, truth=False)
    estimator = make_pose_estimator(with_, python, model, device, frames, convention, timeout, workers)
    tasks = make_pose_tasks(request, out, first)
    count = None if quiet or json else console.Counter("posed")
    outcome = update_pose_files(tasks, estimator, fresh=fresh, tell=count)
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
