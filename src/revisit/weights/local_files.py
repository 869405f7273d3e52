"""Weight files on this machine, for the code that loads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from revisit.core import MissingPrerequisite
from revisit.weights.lock import entry_or_by_hand
from revisit.weights.tensors import INSTALL
from revisit.weights.weights_folder import find_local, problem_text, source_digest


def file(id: str) -> Path:
    """The file of these weights; raises MissingPrerequisite with the command that brings or mends it."""
    locked = entry_or_by_hand(id)
    local = find_local(locked)
    if isinstance(local, str):
        raise MissingPrerequisite(problem_text(locked, local))
    return local.first


def folder(id: str) -> Path:
    """The folder of a checkpoint of several files (config.json, model.safetensors, tokenizer)."""
    return file(id).parent


def why_missing(ids: Sequence[str]) -> str | None:
    """Why networks with these weights cannot run here, with what to do; None where they can.

    A library is not installed, or a file is missing, damaged or outdated.
    """
    for id in ids:
        locked = entry_or_by_hand(id)
        for library in locked.needs:
            if not is_installed(library):
                return f"{library} is not installed: {INSTALL}"
        local = find_local(locked)
        if isinstance(local, str):
            return problem_text(locked, local)
    return None


def digests(ids: Sequence[str]) -> list[str]:
    """`id=SHA-256` of each, as the lock pins it or as the file on this machine has it; nothing behind the sign where
    that is unknown."""
    return [f"{id}={source_digest(entry_or_by_hand(id))}" for id in ids]


def needs(ids: Sequence[str]) -> set[str]:
    """Libraries that networks with these weights run on, such as torch and onnxruntime."""
    return {library for id in ids for library in entry_or_by_hand(id).needs}


@cache
def is_installed(library: str) -> bool:
    """Whether a library can be imported here."""
    return find_spec(library) is not None
