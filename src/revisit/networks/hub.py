"""Models of transformers, from a folder in its format (config.json, model.safetensors) or from tensors.

Only safetensors are read, only from this machine, and every tensor must find its place: transformers would fill what
is missing with random numbers. Importing it takes seven seconds of processor time: nothing does before a model is
built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from revisit.core import MissingPrerequisite
from revisit.networks.loading import raise_for_mismatched_tensors

CONFIG, WEIGHTS = "config.json", "model.safetensors"
LEFT_OVER = ("position_ids",)  # tables 0, 1, 2, ... that older versions saved


def load_model(folder: Path, *, model_types: Mapping[str, str]) -> Any:
    """The pretrained model in a folder, one of these types, whose values are the names of their classes."""
    kind = transformers_class(model_types[str(read_config(folder, model_types=model_types)["model_type"])])
    return _from_pretrained(kind, folder / WEIGHTS, folder, local_files_only=True, use_safetensors=True)


def model_from_tensors(
    name: str, settings: Mapping[str, object], tensors: Mapping[str, Tensor], source: Path, **options: object
) -> Any:
    """The model of this class with these settings and tensors, under the names that transformers publishes."""
    kind = transformers_class(name)
    state = {name: tensor.float() for name, tensor in tensors.items()}
    return _from_pretrained(kind, source, None, settings, state_dict=state, **options)


def _from_pretrained(
    kind: Any, source: Path, folder: Path | None, settings: Mapping[str, object] | None = None, **options: object
) -> Any:
    """A model by the library's own loader; raises MissingPrerequisite unless every tensor found its place."""
    import torch

    try:
        with _silence_transformers():
            if settings is not None:
                options["config"] = kind.config_class(**settings)
            # Tensors of other shapes are listed in `info` instead of raised, and raised below by name.
            model, info = kind.from_pretrained(
                folder, ignore_mismatched_sizes=True, output_loading_info=True, dtype=torch.float32, **options
            )
    except Exception as error:  # transformers and safetensors raise all sorts for damaged files and other shapes
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise MissingPrerequisite(f"{source}: it cannot be read as {kind.__name__} ({cause})") from error
    missing = sorted(info.get("missing_keys", ()))
    unexpected = sorted(name for name in info.get("unexpected_keys", ()) if not name.endswith(LEFT_OVER))
    shapes = sorted(str(key[0]) for key in info.get("mismatched_keys", ()))
    raise_for_mismatched_tensors(source, kind.__name__, missing, unexpected, shapes)
    return model.eval()


def replace_name_parts(name: str, parts: Iterable[tuple[str, str]]) -> str:
    """The name of a tensor with its parts replaced, one after the other."""
    for part, published in parts:
        name = name.replace(part, published)
    return name


def layer_count(names: Iterable[str], prefix: str) -> int:
    """How many numbered layers these names of tensors have: `prefix` is followed by the number."""
    numbers = (name.removeprefix(prefix).partition(".")[0] for name in names if name.startswith(prefix))
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)


def read_config(folder: Path, *, model_types: Iterable[str]) -> Mapping[str, object]:
    """The config.json of the network in a folder, one of these types, whose weights lie there, too."""
    config = read_json_object(folder / CONFIG)
    model_type, expected = config.get("model_type"), list(model_types)
    if model_type not in expected:
        raise MissingPrerequisite(
            f"{folder / CONFIG}: its model_type is {model_type!r}; expected {' or '.join(expected)}. "
            "Remove it and fetch the published files with `revisit weights pull`"
        )
    if not (folder / WEIGHTS).is_file():
        raise MissingPrerequisite(f"{folder}: it has {CONFIG} and no {WEIGHTS}; other formats of weights are not read")
    return config


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder."""
    tokenizer = transformers_class("AutoTokenizer")
    try:
        with _silence_transformers():
            return tokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises all sorts for files that lack or are damaged
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise MissingPrerequisite(
            f"{folder}: the files of its tokenizer cannot be read ({cause}); fetch them with `revisit weights pull`"
        ) from error


@contextmanager
def _silence_transformers() -> Iterator[None]:
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
            "pip install -U 'transformers>=5,<6'"
        ) from error


def read_json_object(path: Path) -> Mapping[str, object]:
    """The object in a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MissingPrerequisite(f"{path}: cannot be read as JSON ({error}); fetch it again") from error
    if not isinstance(content, dict):
        raise MissingPrerequisite(f"{path}: expected an object of settings, found {type(content).__name__}")
    return content
