"""Folder: clips, references and a manifest, as the suite `folder` reads them.

<model>/<name>.mp4, truth/<name>.mp4, truth/<name>.npz (see docs/worlds.md), manifest.jsonl
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.media.files import write_json_lines
from revisit.worlds.demo import MODELS as KNOWN
from revisit.worlds.demo import SCENES, render_demo
from revisit.worlds.film import Film, save_truth
from revisit.worlds.layouts.common import Model, Row, each_that_applies, true_frames, video
from revisit.worlds.layouts.film_orders import CAST, DEMOS, Layout, Order, layout, place_of
from revisit.worlds.workers import Progress, StepCallback


def write_folder_film(
    folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback
) -> Row:
    """Write the clips of one film that are not there, and return what the manifest says of them."""
    video(folder / "truth" / f"{name}.mp4", true_frames(film), film.fps)
    if not (folder / "truth" / f"{name}.npz").is_file():
        save_truth(film, folder / "truth" / f"{name}.npz")
    lines = []
    for model in each_that_applies(models, film, name, tell):
        clip = f"{model.name}/{name}.mp4"
        video(folder / clip, model.frames(film, seed), film.fps)
        about = {"kind": model.kind, "strength": model.strength}
        lines.append({**film.manifest_line(name, seed), "model": model.name, "video": clip, "annotations": about})
    return {"lines": lines}


def write_folder_manifest(folder: Path, rows: Sequence[Row]) -> None:
    """Write the manifest."""
    write_json_lines(folder / "manifest.jsonl", [line for row in rows for line in row["lines"]], ascii=True)


def folder_film_orders(seed: int) -> list[Order]:
    """The film of a seed."""
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"{seed:03d}-{kind}-{event}", seed, place_of(seed), kind, event)]


MODELS = (
    "perfect", "frozen_camera", "vanish", "colour_drift", "state_reset", "state_frozen", "teleport", "duplicate",
    "background", "camera_drift", "blur",
)  # fmt: skip
LAYOUT = layout(Layout("folder", folder_film_orders, MODELS, write_folder_film, write_folder_manifest))


def write_folder_demo(
    videos: Path, fresh: bool, scenes: int, say: StepCallback, progress: Progress
) -> tuple[Path, list[str]]:
    """Rooms as they are, and as five models remember them."""
    if fresh or not (videos / "manifest.jsonl").is_file():  # the manifest is written last: with it, all is there
        say(f"rendering {scenes} rooms, as they are and as five models remember them, into {videos}")
        render_demo(videos, scenes=SCENES[:scenes], progress=progress)
    say(f"what is wrong with each: {'; '.join(f'{name}: {fault}' for name, fault in KNOWN.items())}")
    return videos, []


DEMOS.add("folder", write_folder_demo)
