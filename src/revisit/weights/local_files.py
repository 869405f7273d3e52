"""Weight files on this machine, for the code that loads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from revisit.core import MissingPrerequisite
from revisit.weights.lock import lock_entry_or_default
from revisit.weights.tensors import INSTALL
from revisit.weights.weights_folder import find_local_weights, source_digest, weights_problem_text


def file(id: str) -> Path:
    """The file of these weights; raises MissingPrerequisite with the command that brings or mends it."""
    locked = lock_entry_or_default(id)
    local = find_local_weights(locked)
    if isinstance(local, str):
        raise MissingPrerequisite(weights_problem_text(locked, local))
    return local.first_file


def folder(id: str) -> Path:
    """The folder of a checkpoint of several files (config.json, model.safetensors, tokenizer)."""
    return file(id).parent


def why_missing(ids: Sequence[str]) -> str | None:
    """Why networks with these weights cannot run here, with what to do; None where they can.

    A library is not installed, or a file is missing, damaged or outdated.
    """
    for id in ids:
        locked = lock_entry_or_default(id)
        for library in locked.needs:
            if not is_library_installed(library):
                return f"{library} is not installed: {INSTALL}"
        local = find_local_weights(locked)
        if isinstance(local, str):
            return weights_problem_text(locked, local)
    return None


def digests(ids: Sequence[str]) -> list[str]:
    """`id=SHA-256` of each, as the lock pins it or as the file on this machine has it; nothing behind the sign where
    that is unknown."""
    return [f"{id}={source_digest(lock_entry_or_default(id))}" for id in ids]


def required_libraries(ids: Sequence[str]) -> set[str]:
    """Libraries that networks with these weights run on, such as torch and onnxruntime."""
    return {library for id in ids for library in lock_entry_or_default(id).needs}


@cache
def is_library_installed(library: str) -> bool:
    """Whether a library can be imported here."""
    return find_spec(library) is not None
