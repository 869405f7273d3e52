"""Places: the cache folders of Revisit."""

from __future__ import annotations

import os
from pathlib import Path

from revisit.core import UsageError

EVIDENCE, NETWORKS, PREVIEWS = "evidence", "networks", "shown"  # folders of what is made again when needed
INPUTS = "inputs"  # clips out of shards; runs name them by their paths


def cache_root() -> Path:
    """Where evidence and answers lie: $REVISIT_CACHE, or the user's cache folder."""
    folder = os.environ.get("REVISIT_CACHE")
    return Path(folder).expanduser() if folder else user_cache()


def user_cache() -> Path:
    """The user's cache folder, whatever $REVISIT_CACHE says."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "revisit"
    except RuntimeError:
        raise UsageError("this user has no home folder for the cache; set HOME or XDG_CACHE_HOME") from None
