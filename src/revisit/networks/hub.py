"""Networks from a folder in the format of transformers: config.json, model.safetensors, and what belongs to them.

Only safetensors are read, only from this machine, and every tensor must find its place: transformers would fill what
is missing with random numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks.loading import refuse_others

CONFIG, WEIGHTS = "config.json", "model.safetensors"
MODEL_TYPES = {
    "dinov3_vit": "DINOv3ViTModel",
    "siglip": "SiglipModel",
    "sam2_video": "Sam2VideoModel",
    "sam3": "Sam3Model",
    "sam3_video": "Sam3Model",  # the published folder: detector and tracker, of which the detector is read
    "grounding-dino": "GroundingDinoForObjectDetection",
}
LEFT_OVER = ("position_ids",)  # tables 0, 1, 2, ... that older versions saved


def model(folder: Path, *, of: Iterable[str]) -> Any:
    """The network of transformers in a folder, one of these types."""
    import torch

    kind, source = transformers_class(MODEL_TYPES[described(folder, of=of)["model_type"]]), folder / WEIGHTS
    how = {"output_loading_info": True, "local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    try:
        with _silence():
            # Tensors of other shapes are told in `told` instead of raised, and raised below by name.
            made, told = kind.from_pretrained(folder, ignore_mismatched_sizes=True, **how)
    except Exception as error:  # transformers and safetensors raise all sorts for damaged files and other shapes
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise MissingPrerequisite(f"{source}: it cannot be read as {kind.__name__} ({said})") from error
    lacking = sorted(told.get("missing_keys", ()))
    left = sorted(name for name in told.get("unexpected_keys", ()) if not name.endswith(LEFT_OVER))
    shapes = sorted(str(one[0]) for one in told.get("mismatched_keys", ()))
    refuse_others(source, kind.__name__, lacking, left, shapes)
    return made


def described(folder: Path, *, of: Iterable[str]) -> dict[str, Any]:
    """The settings of the network in a folder, one of these types, whose weights lie there, too."""
    settings = read_json(folder / CONFIG)
    found, wanted = settings.get("model_type"), list(of)
    if found not in wanted:
        raise MissingPrerequisite(
            f"{folder / CONFIG}: its model_type is {found!r}; expected {' or '.join(wanted)}. "
            "Remove it and fetch the published files with `revisit weights pull`"
        )
    if not (folder / WEIGHTS).is_file():
        raise MissingPrerequisite(f"{folder}: it has {CONFIG} and no {WEIGHTS}; other formats of weights are not read")
    return settings


def tensors(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder, float32, without what older versions saved besides."""
    found = weights.tensors(folder / WEIGHTS)
    return {name: tensor.float() for name, tensor in found.items() if not name.endswith(LEFT_OVER)}


def tokenizer(folder: Path) -> Any:
    """What makes tokens of words, from the files in a folder."""
    try:
        with _silence():
            return transformers_class("AutoTokenizer").from_pretrained(folder, local_files_only=True)
    except MissingPrerequisite:
        raise
    except Exception as error:  # transformers raises all sorts for files that lack or are damaged
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise MissingPrerequisite(
            f"{folder}: the files of its tokenizer cannot be read ({said}); fetch them with `revisit weights pull`"
        ) from error


@contextmanager
def _silence() -> Iterator[None]:
    """No progress bars and no reports of transformers: what they would say is told by an error of ours."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def transformers_class(name: str) -> Any:
    """A class of transformers."""
    try:
        import transformers

        return getattr(transformers, name)
    except (ImportError, AttributeError) as error:
        raise MissingPrerequisite(
            f"transformers has no {name} here ({' '.join(str(error).split())[:160]}): "
            "pip install -U 'revisit-bench[networks]'"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MissingPrerequisite(f"{path}: cannot be read as JSON ({error}); fetch it again") from error
    if not isinstance(found, dict):
        raise MissingPrerequisite(f"{path}: expected an object of settings, found {type(found).__name__}")
    return found
