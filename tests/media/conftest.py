"""Tests of the decoder have it as users have it: a process that starts by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _decoders_start_by_themselves() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("revisit.media.decoder_process.subprocess", subprocess)
        yield
