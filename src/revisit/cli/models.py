"""`revisit models`: what is known of models, and what their clips say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console

HEADS = ["model", "category", "view from", "camera", "backbone", "parameters", "stated", "measured", "cost", "source"]


def models(
    runs: list[Path] = typer.Argument(None, help="Run directories; without any, all published models."),
    facts: Path = typer.Option(None, help="A file of facts; models.yaml beside the videos or the run by default."),
    json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """List facts of models: category, camera, backbone, parameters; stated and measured size, rate and length; cost."""
    from revisit.core import load_all
    from revisit.results.model_facts import facts_for, measured, published_facts
    from revisit.results.run import Run

    load_all()
    known = facts_for(runs or [], facts)
    clips: dict[str, Any] = {}
    if runs:
        for path in runs:
            for model, part in Run(path).results.groups("model").items():
                clips.setdefault(model, measured(part.cases[:3]))
    else:
        clips = dict.fromkeys(known.facts if facts else published_facts().facts)
    if json:
        console.data(
            {name: {**known.of(name), "measured": asdict(seen) if seen else None} for name, seen in clips.items()}
        )
        return
    rows = []
    for name, seen in clips.items():
        said = known.of(name)
        size = said.get("size")
        stated = _clip(size[0], size[1], said.get("fps"), said.get("frames")) if size else ""
        shown = _clip(seen.width, seen.height, seen.fps, seen.frames) if seen else ""
        camera = {None: "", True: "yes", False: "no"}[said.get("camera")]
        parameters = f"{said['parameters']:g} B" if said.get("parameters") else ""
        facts_of = [said.get("category", ""), str(said.get("viewpoint", "")).replace("_", " "), camera]
        row = [name, *facts_of, said.get("backbone", ""), parameters, stated, shown, _cost(said.get("cost", {}))]
        row.append(str(said.get("source", "")))
        rows.append(row)
    console.table(HEADS, rows)


def _cost(cost: Mapping[str, Any]) -> str:
    """Seconds, memory and price of a clip, in a few words."""
    parts = [f"{cost['seconds_per_clip']:.4g} s per clip"] if "seconds_per_clip" in cost else []
    parts += [f"{cost['peak_memory_gb']:.3g} GB"] if "peak_memory_gb" in cost else []
    parts += [f"{cost['peak_gpu_memory_gb']:.3g} GB of GPU"] if "peak_gpu_memory_gb" in cost else []
    parts += [f"{cost['price_per_clip']:.4g} {cost.get('currency', '')}".strip()] if "price_per_clip" in cost else []
    return ", ".join(parts)


def _clip(width: int, height: int, fps: float | None, frames: int | None) -> str:
    rate = f", {fps:g} fps" if fps else ""
    length = f", {frames} frames" if frames else ""
    return f"{width}×{height}{rate}{length}"
