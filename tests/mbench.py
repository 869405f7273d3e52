"""Small datasets in MBench's layout, without anything rendered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CONDITIONS = {"A": "left_then_right_3s", "T": "text"}
SUBSETS = ("object", "human", "environment", "causal")
ANCHOR = {"center_x": 32.0, "center_y": 24.0, "width": 64, "height": 48}


def small_dataset(
    root: Path, make_clip: Callable[..., Path], setting: str = "A", models: tuple[str, ...] = ("one",), samples: int = 1
) -> Path:
    """Every subset with some samples, and a clip of each model for each; all models share their clips' pixels."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "dataset.yaml").write_text(f"dataset_id: mbench{setting.lower()}\nversion: '1.0'\n")
    clips = [make_clip(root / f".clips/{k}.mp4", seed=k) for k in range(samples)]
    for model in models:
        for subset in SUBSETS:
            for k in range(samples):
                condition, sample = CONDITIONS[setting], f"s{k}"
                write_sample(root, subset, sample, setting)
                place = f"outputs/{subset}/{sample}/{condition}/video.mp4"
                video = root / "models" / model / place
                video.parent.mkdir(parents=True, exist_ok=True)
                video.write_bytes(clips[k].read_bytes())
                add_row(root, model, row(model, subset, sample, condition, setting, place))
    return root


def row(model: str, subset: str, sample: str, condition: str, setting: str, path: str | None) -> dict[str, Any]:
    """A line of a list."""
    media = {} if path is None else {"videos": [{"path": path, "role": "generated"}]}
    return {
        "item_id": f"{subset}:{sample}:{condition}", "dataset_id": f"mbench{setting.lower()}", "subset": subset,
        "sample_id": sample, "condition_id": condition, "model_id": model, "media": media, "artifacts": {},
    }  # fmt: skip


def add_row(root: Path, model: str, content: Mapping[str, Any] | str) -> None:
    path = root / "models" / model / "samples.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write((content if isinstance(content, str) else json.dumps(content)) + "\n")


def write_sample(root: Path, subset: str, sample: str, setting: str = "A", **changes: Any) -> None:
    """A sample as the dataset has it: the caption at the top, the rest in metadata."""
    segments = (
        {"caption_segments": ["a", "b", "c", "d", "e"], "object_card": {"name": "gift"}} if setting == "T" else {}
    )
    content = {
        "sample_id": sample, "subset": subset, "caption": "A gift on a table.",
        "metadata": {"object_anchor": ANCHOR, **segments}, **changes,
    }  # fmt: skip
    path = root / "samples" / subset / sample / "sample.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
