"""Inputs, deliveries and jobs: counts of the benchmark, names, missing and stray clips, lengths, camera requests."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from revisit.control.jobs import BatchRequest
from revisit.core import Case, Rejected, Remark, UsageError
from revisit.media import encode_mp4
from revisit.preflight.check import check_clips
from revisit.preflight.expected import expected_of_job, find_unexpected_videos
from revisit.suites.worldmark.arena import (
    describe_worldmark_dataset,
    read_arena_cases,
    worldmark_dataset_problems,
    worldmark_generation_jobs,
)
from revisit.suites.worldmark.evidence import ACTIONS, keys_undo_each_other
from revisit.suites.worldmark.read import is_worldmark_delivery, read

# By hand from the action files, as the benchmark's README counts them for `real`.
COUNTS = {
    "W": 64, "S": 80, "A": 14, "D": 16, "R": 58, "WS": 50, "LR": 80, "AD": 6, "WR": 28, "SL": 18, "WSW": 28, "LRL": 42,
    "WRW": 6, "ADA": 4, "WRS": 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of one split: two pictures, the second without a lens."""
    folder = tmp_path_factory.mktemp("bench") / "arena_inputs"
    view = folder / "first_view"
    (view / "real").mkdir(parents=True)
    (view / "real_intrinsics").mkdir()
    (folder / "action_protocol.txt").write_text(" 1: W (forward)\n 6: WS\n 7: LR\n")
    (view / "real_action.txt").write_text("1, 6\n7")
    (view / "prompt_real.txt").write_text("A street.\nA wood.\n")
    for name in ("000", "001"):
        from revisit.media import write_picture

        write_picture(view / "real" / f"{name}.png", np.full((48, 64, 3), 90 + 60 * int(name), np.uint8))
    np.save(view / "real_intrinsics/000_intrinsics.npy", np.array([800, 800, 500, 400], np.float32))
    return folder


def deliver(folder: Path, *names: str) -> Path:
    for name in names:
        place = folder / "real/first/mine" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
    return folder


def test_the_benchmarks_own_inputs_are_counted(shared: Path) -> None:
    questions = list(read_arena_cases(shared / "worldmark/inputs"))
    assert len(questions) == 500 and Counter(one.keys for one in questions) == COUNTS
    assert len({(one.domain, one.image) for one in questions}) == 50
    keys = {domain: Counter(len(one.keys) for one in questions if one.domain == domain) for domain in ("real", "style")}
    assert keys == {"real": {1: 114, 2: 90, 3: 46}, "style": {1: 118, 2: 92, 3: 40}}
    back = Counter((one.domain, one.keys[0] in "LR") for one in questions if keys_undo_each_other(tuple(one.keys)))
    assert back == {("real", False): 44, ("real", True): 62, ("style", False): 44, ("style", True): 60}
    assert {one.action: one.keys for one in questions} == dict(ACTIONS)
    lens = next(one.focal for one in questions if one.image == 0 and one.focal is not None)
    assert 0.3 < lens < 3
    said = describe_worldmark_dataset(shared / "worldmark/inputs")
    assert said.facts["cases that lead back"] == 210 and said.facts["scenes"] == 50
    assert any("no picture" in sentence for sentence in worldmark_dataset_problems(shared / "worldmark/inputs"))


def test_every_case_is_expected_and_strays_are_refused(arena: Path, tmp_path: Path) -> None:
    folder = deliver(tmp_path, "000_001.mp4", "000_007.mp4", "clip.mp4", "000_006.mp4", "000_006.mkv", ".hidden.mp4")
    entries = list(read(folder, arena=str(arena)))
    cases = {entry.id: entry for entry in entries if isinstance(entry, Case)}
    assert set(cases) == {"first/real/000_001@mine", "first/real/000_006@mine"}
    one = cases["first/real/000_006@mine"]
    assert (one.sample, one.subset, one.condition, one.prompt) == ("real/000", "first/real", "WS", "A street.")
    assert one.annotations["focal"] == pytest.approx(0.8)
    missing = [entry for entry in entries if isinstance(entry, Rejected) and entry.missing]
    assert [(entry.id, entry.condition) for entry in missing] == [("first/real/001_007@mine", "LR")]
    refused = " ".join(entry.reason for entry in entries if isinstance(entry, Rejected) and not entry.missing)
    assert "000_007.mp4: the inputs do not ask for" in refused and "clip.mp4: a clip is called" in refused
    assert "there is 000_006.mkv as well" in refused or "there is 000_006.mp4 as well" in refused


def test_a_delivery_is_known_in_its_place_or_by_its_split(arena: Path, tmp_path: Path) -> None:
    folder = deliver(tmp_path, "000_001.mp4")
    for place in (folder, folder / "real/first", folder / "real/first/mine"):
        assert is_worldmark_delivery(place)
        (case, *_) = (entry for entry in read(place, arena=str(arena)) if isinstance(entry, Case))
        assert case.id == "first/real/000_001@mine"
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder / "real/first/mine", moved)
    assert not is_worldmark_delivery(moved)
    with pytest.raises(UsageError, match="split=first/real"):
        list(read(moved))
    (other, *_) = read(moved, split="third/style", arena=str(arena))
    assert isinstance(other, Rejected) and "do not ask for this picture" in other.reason


def test_without_inputs_a_run_says_what_it_does_not_know(tmp_path: Path) -> None:
    remark, case = read(deliver(tmp_path, "003_012.mp4"))
    assert isinstance(remark, Remark) and "--option arena=DIR" in remark.sentence
    assert isinstance(case, Case) and case.condition == "LRL" and "focal" not in case.annotations


@pytest.mark.parametrize(("row", "sentence"), [("1, x", "'x' is no action"), ("1, 99", "'99' is no action")])
def test_a_broken_list_is_one_sentence(arena: Path, tmp_path: Path, row: str, sentence: str) -> None:
    folder = tmp_path / "arena_inputs"
    shutil.copytree(arena, folder)
    (folder / "first_view/real_action.txt").write_text(row)
    with pytest.raises(UsageError, match=sentence):
        list(read_arena_cases(folder))


def test_jobs_ask_for_the_keys_as_a_camera(arena: Path, tmp_path: Path) -> None:
    batch = worldmark_generation_jobs(
        arena, tmp_path, BatchRequest("mine", fps=10.0, options={"seconds": "2", "degrees": "30"})
    )
    assert [job.id for job in batch.jobs] == ["first/real/000_001", "first/real/000_006", "first/real/001_007"]
    last = batch.jobs[-1]
    assert last.camera == "yaw:left:30@20,yaw:right:30@20" and last.frames == 41 and last.fps == 10.0
    assert last.out == tmp_path / "real/first/mine/001_007.mp4"
    assert [row["key"] for row in last.actions] == ["L"] * 20 + ["R"] * 20
    with pytest.raises(UsageError, match="above zero"):
        worldmark_generation_jobs(arena, tmp_path, BatchRequest("mine", options={"seconds": "-1"}))


def test_check_holds_a_delivery_to_names_set_and_lengths(arena: Path, tmp_path: Path) -> None:
    """Lengths may differ by a tenth; size and rate are the model's own."""
    rng = np.random.default_rng(0)
    request = BatchRequest("mine", fps=10.0, options={"seconds": "2"})
    batch = worldmark_generation_jobs(arena, tmp_path, request)
    place = tmp_path / "real/first/mine"
    for name, frames, fps in (("000_001", 17, 8.0), ("000_006", 50, 10.0), ("000_099", 8, 8.0)):
        pictures = (rng.integers(0, 255, (48, 64, 3), dtype=np.uint8) for _ in range(frames))
        encode_mp4(place / f"{name}.mp4", pictures, fps)
    report = check_clips(
        [expected_of_job(job, batch.home) for job in batch.jobs], strangers=find_unexpected_videos(batch.allowed)
    )
    kinds = {(fault.kind, Path(fault.clip).stem) for fault in report.faults}
    assert {("missing", "001_007"), ("not asked for", "000_099"), ("wrong length", "000_006")} <= kinds
    assert not any(kind in ("wrong size", "wrong rate") for kind, _ in kinds)
    assert ("wrong length", "000_001") not in kinds, "17 frames at 8 a second are 2.1 s"
    assert any("2 frame rates (10, 8)" in remark for remark in report.remarks)
    sentence = next(fault.sentence for fault in report.faults if fault.kind == "wrong length")
    assert sentence == "it takes 5.0 s, and 4.1 s were asked for (10% more or less)"
