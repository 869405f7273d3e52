"""What tests of the decoder share."""

from __future__ import annotations

import subprocess

import pytest


@pytest.fixture
def decoders_start_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders as users have them; in other tests they are forked from a process that has loaded PyAV."""
    monkeypatch.setattr("revisit.media.decoder_process.subprocess", subprocess)
