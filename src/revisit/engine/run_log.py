"""run.log: what was done in a run directory, when and by whom; a line per event, appended by every invocation.

A line is one write at the end of the file, so that those of several processes that share a run never mix.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from revisit.core.text import printable_text

NAME = "run.log"


def utc_timestamp_text(seconds: float) -> str:
    """A time as files of a run say it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


class RunLog:
    """The log of a run directory.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> log = RunLog(Path(mkdtemp()))
    >>> log.write("note", "gt is taken as the truth")
    >>> log.path.read_text().split(" ", 2)[2]
    'note: gt is taken as the truth\\n'
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.process = f"{platform.node()}:{os.getpid()}"

    def write(self, event: str, text: str = "") -> None:
        """Append `time host:process event: text` as one line. A log that cannot be written costs the run nothing."""
        line = " ".join(
            [utc_timestamp_text(time.time()), self.process, f"{event}: {printable_text(text)}" if text else event]
        )
        with suppress(OSError), self.path.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode(errors="replace"))
