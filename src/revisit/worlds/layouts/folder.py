"""Folder: clips, references and a manifest, as the suite `folder` reads them.

<model>/<name>.mp4, truth/<name>.mp4, truth/<name>.npz (see docs/worlds.md), manifest.jsonl
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from revisit.worlds.film import Film
from revisit.worlds.layouts.common import Model, Row, Tell, each_that_applies, json_lines, true_frames, video
from revisit.worlds.truth import save_truth


def shoot(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: Tell) -> Row:
    """Write the clips of one film that are not there, and return what the manifest says of them."""
    video(folder / "truth" / f"{name}.mp4", true_frames(film), film.fps)
    if not (folder / "truth" / f"{name}.npz").is_file():
        save_truth(film, folder / "truth" / f"{name}.npz")
    made = []
    for model in each_that_applies(models, film, name, tell):
        made.append(model)
        video(folder / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    shared = {
        "id": name,
        "reference": f"truth/{name}.mp4",
        "prompt": film.prompt,
        "target": {"name": film.world.instances[1], "box": film.target_box()},
        "camera": film.script,
        "phases": film.phases,
        "group": name,
        "seed": seed,
    }
    lines = [
        {
            **shared,
            "model": model.name,
            "video": f"{model.name}/{name}.mp4",
            "annotations": {"kind": model.kind, "strength": model.strength},
        }
        for model in made
    ]
    return {"lines": lines}


def index(folder: Path, rows: Sequence[Row]) -> None:
    """Write the manifest."""
    json_lines(folder / "manifest.jsonl", [line for row in rows for line in row["lines"]])


def write(folder: Path, films: Mapping[str, Film], models: Sequence[Model], seed: int = 0) -> Path:
    """Write films, by name, as models remember them; return what `revisit eval` is given."""
    index(folder, [shoot(folder, name, film, models, seed, lambda _: None) for name, film in films.items()])
    return folder
