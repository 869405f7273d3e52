"""What an evaluation will take: closed forms for time, and the file's own word for the size of pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from revisit.core import Clip
from revisit.engine.cache import EvidenceCache
from revisit.engine.costs import (
    DECODING,
    SCORING,
    START,
    WORKER_BYTES,
    Costs,
    _seconds_until_last_worker_ends,
    forecast_work,
    load_costs,
)
from revisit.engine.request import Request
from revisit.media import frame_size_in_mp4_index


@pytest.mark.parametrize("size", [(32, 48), (50, 70), (180, 320)])
def test_files_say_how_large_their_pictures_are(
    tmp_path: Path, make_clip: Callable[..., Path], size: tuple[int, int]
) -> None:
    path = make_clip(tmp_path / "a.mp4", count=3, size=size)
    with av.open(str(path)) as container:  # read by another library
        stream = container.streams.video[0]
        assert frame_size_in_mp4_index(path) == (stream.width, stream.height)
    (tmp_path / "no.mp4").write_bytes(b"no video")
    assert frame_size_in_mp4_index(tmp_path / "no.mp4") is None


def test_larger_pictures_take_longer_where_an_observer_sees_them_whole(
    tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    clip = Clip(make_clip(tmp_path / "a.mp4", count=10, size=(100, 200)))  # 0.02 megapixels
    costs = Costs({DECODING: 0.5, "lite.odometry": 0.5}, {DECODING: 0.01, "lite.odometry": 0.01})
    assert costs.estimate_seconds(clip, DECODING) == pytest.approx(2 * 0.5 * 10)
    assert costs.estimate_seconds(clip, "lite.odometry") == pytest.approx(0.5 * 10)  # it has them scaled


def test_the_last_worker_is_done_last() -> None:
    assert (
        _seconds_until_last_worker_ends([5, 4, 3, 3, 3], 2) == 10
        and _seconds_until_last_worker_ends([5, 4, 3, 3, 3], 1) == 18
    )
    assert (
        _seconds_until_last_worker_ends([9, 1, 1], 3) == 9 and _seconds_until_last_worker_ends([], 2) == 0
    )  # no faster than the longest clip


def test_a_forecast_counts_what_is_left_for_the_workers_at_hand(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    for name in "abcd":
        make_clip(tmp_path / f"videos/m/{name}.mp4", count=10, size=(100, 200), seed=ord(name))
    cache = EvidenceCache(tmp_path / "cache")
    plan = Request.from_options(tmp_path / "videos", metrics=["flicker"]).plan()
    (tmp_path / "cache").mkdir()
    observers = {task.observer for _, _, task in plan.tasks.values()}
    known = {id: [1.0, 10, 0.2, 1000] for id in observers}
    (tmp_path / "cache/costs.json").write_text(json.dumps({**known, SCORING: [1.0, 10], DECODING: [2.0, 10, 0.2, 0]}))
    missing = list(plan.tasks)
    one, two = (forecast_work(plan, missing, cache, workers) for workers in (1, 2))
    each = len(observers) * 1.0 + 2.0  # seconds of a clip: its observers, and decoding
    assert one.processor_seconds == two.processor_seconds == pytest.approx(4 * each + 4)
    assert one.wall_seconds == pytest.approx(4 * each + 4 + START)
    assert two.wall_seconds == pytest.approx(2 * each + 2 + START)
    assert one.guessed == () and one.megapixels == pytest.approx(0.02)
    assert WORKER_BYTES < two.memory - one.memory < WORKER_BYTES + 2e6  # a worker, and frames of 60 kB
    assert one.disk == pytest.approx(4 * len(observers) * 1000 + 4 * 250_000) and one.disk < one.disk_free
    assert forecast_work(plan, [], cache).clips == 0
    unknown = forecast_work(plan, missing, EvidenceCache(tmp_path / "new"))
    assert set(unknown.guessed) == observers


def test_costs_of_earlier_versions_are_read_and_new_ones_are_learnt(
    tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    make_clip(tmp_path / "videos/m/a.mp4", count=10, size=(32, 48))
    cache = EvidenceCache(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/costs.json").write_text('{"lite.frames": [1.0, 100.0]}')
    assert load_costs(cache).per_frame == {"lite.frames": 0.01} and load_costs(cache).megapixels == {}
    Request.from_options(tmp_path / "videos", metrics=["flicker"]).run(tmp_path / "run", workers=0, cache=cache)
    costs = load_costs(cache)
    assert {DECODING, SCORING, "lite.frames"} <= costs.per_frame.keys()
    assert costs.megapixels[DECODING] == pytest.approx(32 * 48 / 1e6, rel=0.5)
    assert costs.evidence["lite.frames"] > 0
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert not {DECODING, SCORING} & run["counters"]["observer_seconds"].keys()
