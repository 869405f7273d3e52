"""The commands that bring what networks lack on this machine, as they can be pasted into a shell."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from revisit.weights.local_files import is_installed
from revisit.weights.lock import entry_or_by_hand
from revisit.weights.weights_folder import find_local, root


@dataclass(frozen=True)
class MissingParts:
    """What networks with some weights lack here: libraries, weights to pull, and weights that nobody can pull."""

    libraries: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()  # of which only the bytes tell it, so that a plain pull would leave them
    by_hand: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()  # pages where a licence has to be accepted first

    @property
    def remedy(self) -> str:
        """One line: the command that brings everything, and what no command can."""
        commands = [
            *([install_command("networks")] if self.libraries else []),
            *([f"revisit weights pull {' '.join(self.weights)}"] if self.weights else []),
            *([f"revisit weights pull --again {' '.join(self.damaged)}"] if self.damaged else []),
        ]
        sentences = [" && ".join(commands)] if commands else []
        if self.licences:
            sentences.append(f"accept the licence first at {' and '.join(self.licences)}")
        if self.by_hand:
            sentences.append(f"put {', '.join(self.by_hand)} into {root()} by hand (docs/weights.md)")
        return "; ".join(sentences)


def missing_parts(ids: Iterable[str]) -> MissingParts:
    """All that networks with these weights lack on this machine."""
    libraries: dict[str, None] = {}
    lists: dict[str, list[str]] = {"weights": [], "damaged": [], "by_hand": [], "licences": []}
    for id in dict.fromkeys(ids):
        locked = entry_or_by_hand(id)
        libraries.update(dict.fromkeys(name for name in locked.needs if not is_installed(name)))
        trouble = find_local(locked)
        if not isinstance(trouble, str):
            continue
        if not locked.sources:
            lists["by_hand"].append(id)
            continue
        lists["damaged" if trouble.again else "weights"].append(id)
        if locked.gated:
            lists["licences"].append(locked.gated)
    return MissingParts(tuple(libraries), **{name: tuple(dict.fromkeys(values)) for name, values in lists.items()})


def install_command(extra: str) -> str:
    """The command that installs an extra into the environment that runs this, with pip or uv, whichever it has."""
    package = f"revisit-bench[{extra}]"
    if find_spec("pip") is not None:
        return shlex.join([sys.executable, "-m", "pip", "install", package])
    if shutil.which("uv"):
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, package])
    return shlex.join(["pip", "install", package])
