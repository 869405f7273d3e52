"""Samples of an iterator in Python, written as lossless frames with a manifest beside them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, UsageError
from revisit.core.frames import as_pixel_array
from revisit.datasets.entries import ClipStore, manifest_details_of
from revisit.media.files import write_json_lines

EXPECTED = "a sample is a mapping with `name` and `frames`, and `reference`, `prompt`, `camera` and the like"


def write_samples_and_manifest(samples: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """Write each sample as it comes, so that one is in memory at a time; the path of the manifest.

    One that is no clip is warned of, and counts as missing.
    """
    store, lines = ClipStore(folder.resolve()), []
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping) or "frames" not in sample:
            problem = "has no `frames`" if isinstance(sample, Mapping) else f"is a {type(sample).__name__}"
            raise UsageError(f"sample {number} {problem}; {EXPECTED}")
        name = str(sample.get("name") or f"{number:06d}")
        fields = {key: value for key, value in sample.items() if key not in ("name", "frames", "reference")}
        line = {"id": name, **manifest_details_of(fields)}
        try:
            line["video"] = _store_clip_relative(store, name, sample["frames"])
            if sample.get("reference") is not None:
                line["reference"] = _store_clip_relative(store, f"{name}.reference", sample["reference"])
        except UsageError as error:
            warnings.warn(f"{name} is refused: {error}", stacklevel=3)
            line["video"] = f"refused/{number:06d}"
        lines.append(line)
    if not lines:
        raise UsageError(f"the iterator has no samples; {EXPECTED}")
    manifest = folder / "manifest.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_json_lines(manifest, lines, ascii=True)
    return manifest


def _store_clip_relative(store: ClipStore, name: str, frames: Any) -> str:
    """Where the frames lie, relative to the manifest; other frames of the same name lie elsewhere."""
    rgb = as_pixel_array(frames, name)
    digest = hashlib.sha256(np.ascontiguousarray(rgb).data).hexdigest()[:16]
    clip: Clip = store.store_clip(f"{digest}-{name}", rgb)
    return clip.path.relative_to(store.folder).as_posix()
