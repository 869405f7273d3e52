"""What the command line and the Python interface share: settings of the networks, and a run that is scored again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from revisit.engine.request import Request
from revisit.engine.run import rescore
from revisit.media.decoder_process import gpu_for_decoding
from revisit.networks import settings
from revisit.results.run import Run


@contextmanager
def network_settings(device: str, precision: str, batch: int | None) -> Iterator[None]:
    """Set the environment variables of the networks, which workers inherit, and restore them afterwards."""
    chosen = {settings.DEVICE: device, settings.PRECISION: precision, settings.BATCH: str(batch or "")}
    chosen = {name: value for name, value in chosen.items() if value}
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        settings.check()
        gpu_for_decoding()
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def rescored_run(path: Path) -> Run:
    """A run, scored again as it was asked for."""
    facts = Run(path).facts
    return rescore(Request.from_json(facts["request"]).plan(judge=facts["protocol"].get("judge")), path)
