"""The commands that bring what networks lack on this machine, as they can be pasted into a shell."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec

from revisit.weights.lock import lock_entry_or_default
from revisit.weights.weights_folder import find_local_weights, is_library_installed, weights_root


@dataclass
class MissingParts:
    """What networks with some weights lack here: libraries, weights to pull, and weights that nobody can pull."""

    libraries: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)  # by their bytes alone, so that a plain pull would leave them
    by_hand: list[str] = field(default_factory=list)
    licences: list[str] = field(default_factory=list)  # pages where a licence has to be accepted first

    @property
    def remedy(self) -> str:
        """One line: the command that brings everything, and what no command can."""
        commands = [install_extra_command("networks")] if self.libraries else []
        commands += [f"revisit weights pull {' '.join(self.weights)}"] if self.weights else []
        commands += [f"revisit weights pull --again {' '.join(self.damaged)}"] if self.damaged else []
        sentences = [" && ".join(commands)] if commands else []
        if self.licences:
            sentences.append(f"accept the licence first at {' and '.join(self.licences)}")
        if self.by_hand:
            sentences.append(f"put {', '.join(self.by_hand)} into {weights_root()} by hand (docs/weights.md)")
        return "; ".join(sentences)


def missing_parts(ids: Iterable[str]) -> MissingParts:
    """All that networks with these weights lack on this machine."""
    missing = MissingParts()
    for id in dict.fromkeys(ids):
        locked = lock_entry_or_default(id)
        absent = (name for name in locked.needs if not is_library_installed(name))
        missing.libraries += [name for name in absent if name not in missing.libraries]
        trouble = find_local_weights(locked)
        if isinstance(trouble, str) and not locked.sources:
            missing.by_hand.append(id)
        elif isinstance(trouble, str):
            (missing.damaged if trouble.again else missing.weights).append(id)
            if locked.gated and locked.gated not in missing.licences:
                missing.licences.append(locked.gated)
    return missing


def install_extra_command(extra: str) -> str:
    """The command that installs an extra into the environment that runs this, with pip or uv, whichever it has."""
    package = f"revisit-bench[{extra}]"
    if find_spec("pip") is not None:
        return shlex.join([sys.executable, "-m", "pip", "install", package])
    if shutil.which("uv"):
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, package])
    return shlex.join(["pip", "install", package])
