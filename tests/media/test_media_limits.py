"""Limits from the command line."""

from __future__ import annotations

import pytest

from revisit.core import Clip, UsageError
from revisit.media import Limits, open_clip


def test_named_limits_replace_the_defaults() -> None:
    assert Limits.parse("frames=100, seconds=60,memory=2G,pixels=8.3M,file_size=512MiB") == Limits(
        frames=100, seconds=60, memory=2 << 30, pixels=8_300_000, file_size=512 << 20
    )
    assert Limits.parse("") == Limits()
    assert Limits.parse("frames=20k").frames == 20_000


@pytest.mark.parametrize("text", ["frame=3", "frames", "60", "frames:3"])
def test_unknown_names_say_which_exist(text: str) -> None:
    with pytest.raises(UsageError, match="the names are pixels, frames, seconds, memory, file_size"):
        Limits.parse(text)


@pytest.mark.parametrize("text", ["frames=", "frames=0", "frames=-1", "frames=many", "memory=2X", "seconds=1e9"])
def test_values_that_are_no_numbers(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a number above zero; write for example 500, 20K"):
        Limits.parse(text)


def test_more_seconds_than_a_system_call_takes_are_no_limit(make_clip, tmp_path):
    with open_clip(Clip(make_clip(tmp_path / "a.mp4")), Limits.parse("seconds=999999999999")) as stream:
        assert len(list(stream)) == stream.info.count
