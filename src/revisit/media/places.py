"""Places: the cache folders of Revisit."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Where evidence and weights live: $REVISIT_CACHE, or the user's cache folder."""
    chosen = os.environ.get("REVISIT_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "revisit"
