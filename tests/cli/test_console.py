"""What the terminal and logs are told while work goes on."""

from __future__ import annotations

import time

import pytest

from revisit.cli import console


def test_a_slow_first_clip_gets_a_word_and_a_quick_one_none(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Loading networks and a long video take most of a minute, which looked like a hang in a log."""
    monkeypatch.setattr(console, "FIRST_WORD", 0.05)
    progress = console.ProgressLines()
    progress.start(clips=3, cases=3, observed=1)
    progress.waiting.join()
    progress.advance("a.mp4", failed=0)
    progress.finish()
    counts, waiting, observed = capsys.readouterr().err.splitlines()
    assert counts == "3 cases, 3 clips, 1 already observed"
    assert waiting == "first clip: 0 s so far; the time left is known once it is done"
    assert observed.startswith("observed 2 of 3 clips, about ")

    for clips, advances in ((2, 1), (1, 0)):  # a first clip that is done in time, and nothing left to observe
        progress.start(clips=clips, cases=2, observed=1)
        for _ in range(advances):
            progress.advance("b.mp4", failed=0)
        time.sleep(0.1)
        progress.finish()
        assert "so far" not in capsys.readouterr().err
