"""`revisit camera`: camera scripts, and their form for each generator."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, OWN_GENERATORS, flag_option, out_option
from revisit.cli.poses import poses as estimate_poses

app = Commands("Show and convert camera scripts; estimate camera paths.")

SCRIPT = typer.Argument(help="A script such as yaw:left:60@40,yaw:right:60@40, or the name of a preset.")
FRAMES = typer.Option(None, help="Number of frames; that of the script by default.")


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
    from revisit.control.job_runner import size_of_first_picture

    to = find_generator(model, own)
    count = frames or (to.frames if _is_preset_name(script) else None)
    plan = plan_for_generator(_script_or_preset_script(script, frames or to.frames), to, count)
    picture = size_of_first_picture(image, to) if image is not None else None
    delivery = make_delivery(plan, to, prompt=prompt, image=str(image or ""), picture=picture)
    payload, path = delivery.write_files(out), out.with_name(f"{out.name}.target_c2w.npy")
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
    from dataclasses import asdict

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


app.command("poses")(estimate_poses)


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
