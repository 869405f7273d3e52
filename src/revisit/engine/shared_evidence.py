"""Evidence that machines share through a URL, where they share no folder: object stores and whatever else fsspec knows.

Every machine keeps its own cache. What it makes goes to the URL, too; what it lacks comes from there.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from revisit.core import MissingPrerequisite, UsageError
from revisit.media.files import atomic_write_path

VARIABLE = "REVISIT_SHARED_CACHE"
LISTED = 30.0  # seconds for which a list of what is there is good enough: who misses something makes it twice


class SharedEvidence:
    """Files of evidence below a URL."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingPrerequisite(f"{VARIABLE} needs fsspec: pip install 'revisit-bench[ray]'") from None
        self.url = url
        try:
            self.files, root = url_to_fs(url)
            self.root: str = root.rstrip("/")
            with suppress(PermissionError):  # it may be there to be read only
                self.files.makedirs(f"{self.root}/evidence", exist_ok=True)
        except Exception as error:  # every kind of storage has its own
            raise UsageError(f"{VARIABLE}={url}: cannot be opened ({type(error).__name__}: {error})") from error
        self._known: set[str] = set()
        self._listed = -LISTED

    def __contains__(self, key: str) -> bool:
        now = time.monotonic()
        if key not in self._known and now - self._listed >= LISTED:
            self._listed = now
            self.files.invalidate_cache()
            with suppress(FileNotFoundError):
                names = self.files.find(f"{self.root}/evidence")
                self._known |= {name.rpartition("/")[2].removesuffix(".npz") for name in names}
        return key in self._known

    def upload(self, key: str, path: Path) -> None:
        """Hand a file on, whole or not at all."""
        remote_path = self._remote_path(key)
        self.files.makedirs(remote_path.rpartition("/")[0], exist_ok=True)
        self.files.pipe_file(remote_path, path.read_bytes())
        self._known.add(key)

    def download(self, key: str, path: Path) -> bool:
        """Bring a file here; False where there is none."""
        try:
            content = self.files.cat_file(self._remote_path(key))
        except FileNotFoundError:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write_path(path) as temporary:
            temporary.write_bytes(content)
        return True

    def remove(self, key: str) -> None:
        """Take a damaged file away."""
        self._known.discard(key)
        with suppress(FileNotFoundError):
            self.files.rm_file(self._remote_path(key))

    def _remote_path(self, key: str) -> str:
        return f"{self.root}/evidence/{key[:2]}/{key}.npz"


@lru_cache(maxsize=4)
def open_shared_evidence(url: str) -> SharedEvidence:
    """The evidence below a URL, opened once in a process."""
    return SharedEvidence(url)
