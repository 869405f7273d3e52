"""Pruning the evidence cache."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.cache import app
from revisit.core import Clip, UsageError
from revisit.datasets.entries import ClipStore
from revisit.engine.cache import (
    EvidenceCache,
    cache_limit_bytes_from_environment,
    cache_over_limit_warning,
    parse_byte_size,
    plan_pruning,
)
from revisit.judges.store import shared_answers_path
from revisit.media.cache_folders import NETWORKS, PREVIEWS
from revisit.suites.mind.evidence import DistanceFromStart
from revisit.web.media import playable_file
from revisit.weights import derived_files

DAY = 86400.0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvidenceCache:
    """Five pieces of one size, used 0 to 4 days ago."""
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path))
    cache = EvidenceCache(tmp_path)
    for k in range(5):
        cache.save(f"{k}" * 40, DistanceFromStart(np.arange(3), np.random.default_rng(k).random(3)))
        os.utime(cache.path(f"{k}" * 40), (time.time() - k * DAY,) * 2)
    return cache


def left(cache: EvidenceCache) -> list[str]:
    return [path.name[0] for path in cache.files()]


def test_what_was_used_last_stays(cache: EvidenceCache):
    size = max(path.stat().st_size for path in cache.files())
    assert [one.path.name[0] for one in plan_pruning(cache.root, max_bytes=2 * size + 1).kept] == ["0", "1"]
    assert [one.path.name[0] for one in plan_pruning(cache.root, max_bytes=5 * size).old] == []
    assert [one.path.name[0] for one in plan_pruning(cache.root, max_age_days=2.5).old] == ["3", "4"]
    assert [one.path.name[0] for one in plan_pruning(cache.root, max_age_days=2.5, max_bytes=size).old] == [
        "1",
        "2",
        "3",
        "4",
    ]
    assert len(plan_pruning(cache.root).old) == 5
    cache.load(DistanceFromStart, "4" * 40)  # used just now
    assert {one.path.name[0] for one in plan_pruning(cache.root, max_bytes=2 * size + 1).kept} == {"0", "4"}


def test_it_asks_first_and_can_only_tell(cache: EvidenceCache):
    run = CliRunner()
    told = run.invoke(app, ["prune", "--dry-run", "--days", "2.5"])
    assert told.exit_code == 0
    assert "would remove 2 pieces" in told.stdout
    assert len(left(cache)) == 5
    refused = run.invoke(app, ["prune", "--days", "2.5"])
    assert isinstance(refused.exception, UsageError)
    assert "--yes" in str(refused.exception)
    assert len(left(cache)) == 5
    done = run.invoke(app, ["prune", "--days", "2.5", "--yes", "--json"])
    assert '"removed": 2' in done.stdout
    assert left(cache) == ["0", "1", "2"]
    unsaid = run.invoke(app, ["prune", "--yes"])
    assert isinstance(unsaid.exception, UsageError)
    run.invoke(app, ["prune", "--all", "--yes"])
    assert left(cache) == []


def test_what_a_kill_left_unfinished_goes_and_what_is_being_written_stays(cache: EvidenceCache):
    folder = cache.path("0" * 40).parent
    torn, growing = folder / ".writing-7-8-000.npz", folder / ".writing-9-8-000.npz"
    for path, age in ((torn, 2 * 3600), (growing, 60)):
        path.write_bytes(b"PK")
        os.utime(path, (time.time() - age,) * 2)
    run = CliRunner()
    told = run.invoke(app, ["prune", "--dry-run", "--to", "1GB"])
    assert "would remove 0 pieces" in told.stdout and "1 unfinished files" in told.stdout
    assert torn.exists()
    assert isinstance(run.invoke(app, ["prune", "--to", "1GB"]).exception, UsageError), "it asks for these, too"
    done = run.invoke(app, ["prune", "--to", "1GB", "--yes", "--json"])
    assert '"torn": 1' in done.stdout and '"removed": 0' in done.stdout
    assert not torn.exists() and growing.exists() and len(left(cache)) == 5


def test_networks_and_copies_of_clips_go_but_answers_and_weights_stay(cache: EvidenceCache, make_clip):
    """What goes is written here by those who write it in a run."""
    derived_files.store_derived_bytes("a", b"x" * 1000)
    (network,) = (cache.root / NETWORKS).iterdir()
    os.utime(network, (time.time() - 3.5 * DAY,) * 2)
    part = Clip(make_clip(cache.root / "clip.mp4"), start=1)  # which no browser shows as it is
    copy = playable_file(part, cache.root / PREVIEWS).path
    stays = [shared_answers_path(cache.root, {"model": "m"}), cache.root / "weights/d/d.pth", cache.root / "costs.json"]
    for path in stays:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert [one.path for one in plan_pruning(cache.root, max_age_days=2.8).old][1] == network
    told = CliRunner().invoke(app, ["info"]).stdout
    assert "7 files" in told and "networks        1 files" in told and "shown           1 files" in told
    CliRunner().invoke(app, ["prune", "--all", "--yes"])
    assert not left(cache) and not network.exists() and not copy.exists()
    assert all(path.is_file() for path in stays)


def test_a_limit_is_told_and_pruned_to(cache: EvidenceCache, monkeypatch: pytest.MonkeyPatch):
    size = max(path.stat().st_size for path in cache.files())
    monkeypatch.setenv("REVISIT_CACHE_LIMIT", str(2 * size + 1))
    assert "revisit cache prune" in cache_over_limit_warning(cache.root, cache_limit_bytes_from_environment())
    assert '"removed": 3' in CliRunner().invoke(app, ["prune", "--yes", "--json"]).stdout
    assert left(cache) == ["0", "1"]
    assert not cache_over_limit_warning(cache.root, cache_limit_bytes_from_environment())
    monkeypatch.setenv("REVISIT_CACHE_LIMIT", "much")
    with pytest.raises(UsageError, match="REVISIT_CACHE_LIMIT: 'much' is not a size"):
        cache_limit_bytes_from_environment()


@pytest.mark.parametrize(
    ("text", "bytes"),
    [("500MB", 500e6), ("1.5 gb", 1.5e9), ("10G", 10e9), ("12", 12), ("2GiB", 2 << 30), ("1.5 Mi", 1.5 * (1 << 20))],
)
def test_sizes(text: str, bytes: float):
    assert parse_byte_size(text) == bytes


@pytest.mark.parametrize("text", ["much", "-1GB", "1XB", ""])
def test_what_is_no_size_is_told(text: str):
    with pytest.raises(UsageError, match="not a size"):
        parse_byte_size(text)


def test_clips_out_of_shards_go_as_a_whole_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path))
    shard = tmp_path / "shard.tar"
    shard.write_bytes(b"shard")
    frames = np.zeros((3, 8, 8, 3), np.uint8)
    clip = ClipStore.for_shard(shard).store_clip("a", frames, 8.0)
    plan = plan_pruning(tmp_path, max_age_days=1)
    assert [piece.path for piece in plan.kept] == [clip.path] and not plan.old
    assert plan.kept[0].bytes == sum(file.stat().st_size for file in clip.path.iterdir()) > 0
    for piece in plan_pruning(tmp_path).old:
        piece.remove()
    assert not clip.path.exists()
    assert ClipStore.for_shard(shard).store_clip("a", frames, 8.0) == clip and len(list(clip.path.iterdir())) == 3
