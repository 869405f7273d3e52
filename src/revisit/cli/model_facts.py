"""`revisit show --models`: what is known of models, and what their clips say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from revisit.cli import console

HEADS = ["model", "category", "view from", "camera", "backbone", "parameters", "stated", "measured", "cost", "source"]


def print_model_facts(runs: Sequence[Path], file: Path | None, json: bool) -> None:
    """Print category, camera, backbone and parameters; stated and measured size, rate and length; cost."""
    from revisit.core import load_all
    from revisit.results.model_facts import facts_for, measure_clip, published_facts
    from revisit.results.run import Run

    load_all()
    facts = facts_for(list(runs), file)
    clips: dict[str, Any] = {}
    for path in runs:
        for model, results in Run(path).results.groups("model").items():
            clips.setdefault(model, measure_clip(results.cases[:3]))
    if not runs:
        clips = dict.fromkeys(facts.facts if file else published_facts().facts)
    if json:
        measurements = {name: asdict(clip) if clip else None for name, clip in clips.items()}
        console.print_json({name: {**facts.of(name), "measured": clip} for name, clip in measurements.items()})
        return
    console.print_table(HEADS, [[name, *_cells(facts.of(name), clip)] for name, clip in clips.items()])


def _cells(facts: Mapping[str, Any], clip: Any) -> list[str]:
    """What the table says of a model."""
    size = facts.get("size")
    return [
        facts.get("category", ""),
        str(facts.get("viewpoint", "")).replace("_", " "),
        {None: "", True: "yes", False: "no"}[facts.get("camera")],
        facts.get("backbone", ""),
        f"{facts['parameters']:g} B" if facts.get("parameters") else "",
        _format_text(size[0], size[1], facts.get("fps"), facts.get("frames")) if size else "",
        _format_text(clip.width, clip.height, clip.fps, clip.frames) if clip else "",
        _cost(facts.get("cost", {})),
        str(facts.get("source", "")),
    ]


def _cost(cost: Mapping[str, Any]) -> str:
    """Seconds, memory and price of a clip, in a few words."""
    parts = [f"{cost['seconds_per_clip']:.4g} s per clip"] if "seconds_per_clip" in cost else []
    parts += [f"{cost['peak_memory_gb']:.3g} GB"] if "peak_memory_gb" in cost else []
    parts += [f"{cost['peak_gpu_memory_gb']:.3g} GB of GPU"] if "peak_gpu_memory_gb" in cost else []
    parts += [f"{cost['price_per_clip']:.4g} {cost.get('currency', '')}".strip()] if "price_per_clip" in cost else []
    return ", ".join(parts)


def _format_text(width: int, height: int, fps: float | None, frames: int | None) -> str:
    """Size, rate and length of a clip: `832×480, 16 fps, 81 frames`."""
    rate = f", {fps:g} fps" if fps else ""
    length = f", {frames} frames" if frames else ""
    return f"{width}×{height}{rate}{length}"
