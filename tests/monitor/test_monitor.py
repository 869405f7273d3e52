"""The monitor: any layout and range, one number of memory, a steady subset, and several ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import UsageError
from revisit.monitor.checkpoint import TITLE
from tests.benchmark_scripts import script
from tests.conftest import PROJECT
from tests.monitor.scenes import METRICS, forgetting, still, to_floats, truth

AXES = {"T": 0, "H": 1, "W": 2, "C": 3}


def monitored(clips: dict[str, np.ndarray], **settings) -> revisit.Checkpoint:
    monitor = revisit.Monitor(metrics=METRICS, **settings)
    for name, frames in clips.items():
        monitor.update(frames, name=name, reference=truth(int(name)))
    return monitor.compute()


@pytest.mark.parametrize("layout", ["THWC", "TCHW", "CTHW"])
@pytest.mark.parametrize("values", [None, (0, 1), (-1, 1), (0, 255)])
def test_frames_of_any_layout_and_range_are_the_same_bytes(layout: str, values: tuple[float, float] | None) -> None:
    torch = pytest.importorskip("torch")
    from revisit.monitor.layouts import frames_to_uint8

    rgb = np.random.default_rng(0).integers(0, 256, (4, 10, 12, 3), dtype=np.uint8)
    there = rgb.transpose([AXES[axis] for axis in layout])
    if values is not None:
        low, high = values
        there = there.astype(np.float32) / 255 * (high - low) + low
    assert np.array_equal(frames_to_uint8(there, layout, values), rgb)
    assert np.array_equal(frames_to_uint8(torch.from_numpy(there.copy()), layout, values), rgb)
    if values is not None:  # float16 has eleven bits: what a byte needs
        assert np.array_equal(frames_to_uint8(torch.from_numpy(there.copy()).half(), layout, values), rgb)


@pytest.mark.parametrize(
    ("frames", "settings", "words"),
    [
        (np.zeros((4, 3, 8, 8), np.float32), {"layout": "TCHW"}, r"need a value_range: \(0, 1\) or \(-1, 1\)"),
        (np.zeros((4, 3, 8, 8), np.float32), {"value_range": (0, 1)}, r"no \(T, H, W, C\) with three channels"),
        (np.full((4, 8, 8, 3), -1.0), {"value_range": (0, 1)}, r"from -1 to -1, but value_range is \(0, 1\)"),
        (np.full((4, 8, 8, 3), 0.5), {"value_range": (0, 255)}, "is value_range"),
        (np.zeros((4, 8, 8, 3), np.uint8), {"value_range": (0, 1)}, "is for floats"),
        (np.zeros((4, 8, 8), np.uint8), {}, "no .* with three channels"),
        (np.zeros((0, 8, 8, 3), np.float32), {"value_range": (0, 1)}, "hold no pixel"),
    ],
)
def test_what_does_not_fit_is_told_at_once(frames: np.ndarray, settings: dict, words: str) -> None:
    monitor = revisit.Monitor(metrics=["flicker"], **settings)
    with pytest.raises(UsageError, match=words):
        monitor.update(frames, name="a")


def test_a_black_clip_ends_no_training() -> None:
    from revisit.monitor.layouts import frames_to_uint8

    black = np.zeros((4, 8, 8, 3), np.float32)
    assert not frames_to_uint8(black, "THWC", (0, 255)).any()


def test_settings_that_cannot_be_meant() -> None:
    for wrong in ({"layout": "HWC"}, {"value_range": (1, 0)}, {"clips": 0}, {"seconds": 0}, {"memory": "nothing"}):
        with pytest.raises(UsageError):
            revisit.Monitor(**wrong)
    with pytest.raises(UsageError, match="no clip came"):
        revisit.Monitor().compute()


@pytest.fixture(scope="module")
def checkpoints() -> dict[str, revisit.Checkpoint]:
    """Of four models: one that remembers, one that forgets, one that stands still, one that mostly does."""
    ways = {
        "remembers": [truth, truth, truth],
        "forgets": [forgetting, forgetting, forgetting],
        "still": [still, still, still],
        "mostly still": [still, still, truth],
    }
    monitor = revisit.Monitor(layout="TCHW", value_range=(-1, 1), metrics=METRICS)
    found = {}
    for name, makers in ways.items():
        for seed, make in enumerate(makers):
            monitor.update(to_floats(make(seed)), name=str(seed), reference=truth(seed))
        found[name] = monitor.compute()
        monitor.reset()
    return found


@pytest.mark.long
def test_scores_are_those_of_the_same_bytes(checkpoints) -> None:
    clips = {str(seed): forgetting(seed) for seed in range(3)}
    results = revisit.score(clips, reference={str(seed): truth(seed) for seed in range(3)}, metrics=METRICS)
    found = checkpoints["forgets"].results
    for name in clips:
        for metric in ("return_consistency", "motion_amount"):
            assert found.score(f"{name}@model", metric) == results.score(f"{name}@model", metric)


def test_a_static_model_does_not_win(checkpoints) -> None:
    memory = {name: checkpoint.memory.mean for name, checkpoint in checkpoints.items()}
    assert memory["remembers"] > 0.95 and checkpoints["remembers"].coverage == 1
    sure, table = checkpoints["remembers"].memory, checkpoints["remembers"].tested  # of the same three clips
    assert (sure.interval, sure.few_scenes) == (table.interval, table.few_scenes)
    assert memory["still"] == 0 and checkpoints["still"].coverage == 0 and checkpoints["still"].tested.mean is None
    assert (
        memory["mostly still"] < 0.4 and checkpoints["mostly still"].tested.mean > 0.95
    )  # a table's mean alone would win
    assert memory["forgets"] < memory["remembers"]
    assert {checkpoint.metric for checkpoint in checkpoints.values()} == {"return_consistency"}


def test_the_number_has_the_name_of_its_score(checkpoints) -> None:
    """What is held to the truth is not called by the name of what was measured."""
    checkpoint = checkpoints["remembers"]
    scalars = checkpoint.scalars()
    assert f"by {checkpoint.score}:" in checkpoint.sentence and checkpoint.score == "return_consistency.held"
    assert scalars["revisit/return_consistency.held"] == scalars["revisit/memory_tested"]
    assert scalars["revisit/return_consistency"] == checkpoint.results.cell("return_consistency").mean


def test_pictures_are_of_the_worst_moments(checkpoints) -> None:
    first, *_ = checkpoints["mostly still"].pictures()
    assert first.caption == "0: the camera is frozen: nothing moves"
    assert first.rgb.shape == (TITLE + 64, 3 * 96 + 8, 3)  # the first view, the last one, and the truth there
    assert abs(first.rgb[TITLE:, -96:].astype(int) - truth(0)[-1]).mean() < 12  # JPEG
    assert len(checkpoints["still"].pictures(2)) == 2


def test_cost_is_told(checkpoints) -> None:
    spent = checkpoints["forgets"].spent
    assert spent.total > spent.observers > 0 and spent.networks == 0
    assert checkpoints["forgets"].sentence.endswith("s a clip")
    assert checkpoints["forgets"].scalars()["revisit/seconds"] == spent.total


def test_the_mean_and_its_interval_are_those_of_the_clips(checkpoints) -> None:
    """Of yes and no Agresti's and Coull's, in closed form; else Student's t over three scenes, by scipy."""
    stats = pytest.importorskip("scipy.stats")
    scalars = checkpoints["mostly still"].scalars()
    assert checkpoints["mostly still"].results.score("2@model", "return_consistency") == 1
    margin = stats.norm.ppf(0.975) * np.sqrt(3 / 7 * 4 / 7 / 7)  # one of three, and two of each more
    assert scalars["revisit/memory"] == pytest.approx(1 / 3)
    assert scalars["revisit/memory_low"] == pytest.approx(3 / 7 - margin)
    assert scalars["revisit/memory_high"] == pytest.approx(3 / 7 + margin)
    scalars = checkpoints["forgets"].scalars()
    values = [checkpoints["forgets"].results.score(f"{k}@model", "motion_amount") for k in range(3)]
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (scalars["revisit/motion_amount_low"], scalars["revisit/motion_amount_high"]) == pytest.approx((low, high))


def test_a_clip_that_is_not_finite_counts_nothing_and_ends_nothing() -> None:
    broken = to_floats(truth(1))
    broken[3, 0, 0, 0] = np.nan
    checkpoint = monitored({"0": to_floats(truth(0)), "1": broken}, layout="TCHW", value_range=(-1, 1))
    assert [(entry.id, entry.reason) for entry in checkpoint.results.rejected] == [
        ("1@model", "1 has values that are not finite")
    ]
    assert checkpoint.coverage == 0.5 and checkpoint.memory.mean == pytest.approx(0.5, abs=0.01)


def test_a_first_checkpoint_without_any_finite_clip_ends_nothing(tmp_path: Path) -> None:
    monitor = revisit.Monitor(layout="TCHW", value_range=(-1, 1), metrics=METRICS, out=tmp_path)
    monitor.update(np.full((6, 3, 32, 48), np.nan, np.float32), name="0")
    checkpoint = monitor.compute(1)
    assert [entry.reason for entry in checkpoint.results.rejected] == ["0 has values that are not finite"]
    assert checkpoint.metric == "return_consistency" and checkpoint.tested.mean is None
    assert checkpoint.scalars()["revisit/coverage"] == 0 and not checkpoint.pictures() and checkpoint.report
    assert monitor.state_dict()["metric"] == "", "chosen at the first checkpoint that shows something"
    monitor.reset()
    monitor.update(to_floats(still(0)[:6]), name="0")
    monitor.compute(2)
    assert monitor.state_dict()["metric"] == "return_consistency"


def test_a_cache_that_cannot_be_written_ends_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/evidence").touch()  # a file where a folder should be made
    monitor = revisit.Monitor(layout="TCHW", value_range=(-1, 1), metrics=METRICS, out=tmp_path / "runs")
    monitor.update(to_floats(still(0)[:6]), name="0")
    assert monitor.compute(1).report
    assert "cannot be written" in (tmp_path / "runs/step-00000001/run.log").read_text()


def test_a_budget_of_clips_picks_the_same_ones_in_any_order() -> None:
    names = [f"scene-{number}" for number in range(50)]
    one, other = (revisit.Monitor(names=given, clips=5, metrics=["flicker"]) for given in (names, names[::-1]))
    assert [name for name in names if one.wants(name)] == [name for name in names if other.wants(name)]
    assert sum(map(one.wants, names)) == 5


def test_the_first_clips_within_a_budget_stay_over_checkpoints() -> None:
    monitor = revisit.Monitor(clips=2, metrics=METRICS, memory="return_consistency")
    for name in ("b", "a", "c"):
        monitor.update(still(0)[:6], name=name)
    assert sorted(case.sample for case in monitor.compute().results.cases) == ["a", "b"]
    monitor.reset()
    for name in ("c", "a"):
        monitor.update(still(0)[:6], name=name)
    checkpoint = monitor.compute()
    assert [case.sample for case in checkpoint.results.cases] == ["a"] and checkpoint.missing == ("b",)
    assert checkpoint.coverage == 0 and checkpoint.results.expected("return_consistency") == 2

    later = revisit.Monitor(clips=2, metrics=METRICS)
    later.load_state_dict(monitor.state_dict())
    assert [later.wants(name) for name in "abc"] == [True, True, False] and later.metric == "return_consistency"


def test_the_clips_of_all_ranks_are_kept_with_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint of a training is written by one rank, and read by all."""
    first, second = (revisit.Monitor(metrics=METRICS) for _ in range(2))
    first.update(still(0)[:6], name="a")
    second.update(still(0)[:6], name="b")
    second.compute()
    with monkeypatch.context() as patch:
        patch.setattr("revisit.monitor.monitor.gather_from_ranks", lambda part: [part, second._part])
        assert len(first.compute().results.cases) == 2
    later = revisit.Monitor(metrics=METRICS)
    later.load_state_dict(first.state_dict())
    assert later.wants("a") and later.wants("b") and not later.wants("c")


def test_a_budget_of_seconds_is_used_up_once() -> None:
    monitor = revisit.Monitor(seconds=1e-6, metrics=["flicker"], memory="return_consistency")
    for name in "ab":
        monitor.update(still(0)[:6], name=name)
    assert monitor.subset.chosen == ["a"]


def test_names_come_once_and_references_stay() -> None:
    monitor = revisit.Monitor(metrics=["psnr"], memory="return_consistency")
    monitor.update(still(0)[:6], name="a", reference=truth(0)[:6])
    with pytest.raises(UsageError, match="came twice"):
        monitor.update(still(0)[:6], name="a", reference=truth(0)[:6])
    monitor.reset()
    with pytest.raises(UsageError, match="the reference of 'a' is another one than before"):
        monitor.update(still(0)[:6], name="a", reference=truth(1)[:6])


def test_a_batch_takes_a_list_of_names() -> None:
    monitor = revisit.Monitor(layout="BTHWC", metrics=["flicker"])
    with pytest.raises(UsageError, match="batch of 2 clips: give a list of names"):
        monitor.update(np.stack([still(0)[:6], still(1)[:6]]), name="a")


def test_the_pages_tell_the_overhead_that_was_measured() -> None:
    made = script("monitor_overhead")
    told = made.sentence(json.loads(made.STORE.read_text(encoding="utf-8")))
    for page in made.PAGES:
        assert told in page.read_text(encoding="utf-8"), "run benchmarks/monitor_overhead.py --page"


def test_the_training_process_is_left_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.benchmark = True
    torch.set_num_threads(2)
    torch.manual_seed(3)
    np.random.seed(3)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(3)
    np.random.seed(3)
    monitor = revisit.Monitor(layout="TCHW", value_range=(0, 1), metrics=["flicker"])
    frames = torch.rand(6, 3, 32, 48, requires_grad=True, generator=torch.Generator().manual_seed(1))
    monitor.update(frames, name="a")
    assert (torch.rand(1), np.random.rand()) == expected
    assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.benchmark and torch.get_num_threads() == 2
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)


def test_a_batch_and_its_names() -> None:
    monitor = revisit.Monitor(layout="BTCHW", value_range=(-1, 1), metrics=["flicker"], memory="return_consistency")
    batch = np.stack([to_floats(still(seed)[:6]) for seed in (0, 1)])
    monitor.update(batch, name=["a", "b"])
    assert list(monitor._part.clips) == ["a", "b"]
    with pytest.raises(UsageError, match="1 name, 2 clips and 1 reference do not go together"):
        monitor.update(batch, name=["c"])


RANKS = """
import sys
import torch.distributed as distributed
import revisit
from tests.monitor.scenes import METRICS, forgetting, still, truth

rank = int(sys.argv[1])
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
monitor = revisit.Monitor(metrics=METRICS, out=sys.argv[3])
for seed, make in [(0, truth), (1, forgetting)] if rank == 0 else [(2, still), (0, truth)]:  # a sampler may pad
    monitor.update(make(seed), name=str(seed), reference=truth(seed))
checkpoint = monitor.compute(step=7)
memory = checkpoint.memory
print(memory.mean, memory.interval, checkpoint.coverage, len(checkpoint.results.cases), flush=True)
distributed.destroy_process_group()
"""


@pytest.mark.long
def test_ranks_give_what_one_process_gives(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = [str(tmp_path / "meeting"), str(tmp_path / "runs")]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANKS, str(rank), *words], cwd=PROJECT, stdout=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    said = [process.communicate(timeout=300)[0].strip() for process in ranks]
    alone = monitored({"0": truth(0), "1": forgetting(1), "2": still(2)})
    assert said[0] == said[1] == f"{alone.memory.mean} {alone.memory.interval} {alone.coverage} 3"
    run = revisit.load(tmp_path / "runs/step-00000007")  # that rank 0 wrote
    assert run.cell("return_consistency") == alone.results.cell("return_consistency")
    assert (tmp_path / "runs/step-00000007/report/index.html").is_file()
