"""Networks of optical flow: GMFlow with its real weights, RAFT against frozen numbers, and warp errors by both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import MissingPrerequisite
from revisit.suites.memobench.evidence import WarpErrors
from revisit.suites.memobench.observers.warp_errors import all_sampled_frames, divide_by_255, warp_statistics_of_pair
from tests.conftest import Cli
from tests.looking import as_frames, look, wall, window

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from revisit.networks import flow_runs, gmflow, raft, runtime  # noqa: E402
from revisit.networks.flow_parts import coordinate_grid, sample_bilinear, shifted_neighbours, upsample_flow_convexly  # noqa: E402
from revisit.suites.memobench.observers.warp_errors import raft_warp  # noqa: E402


@pytest.fixture(autouse=True)
def own_networks() -> Any:
    """No network of another test's weights."""
    runtime.forget_cached_networks()
    yield
    runtime.forget_cached_networks()


def seeded(net: Any, seed: int = 0) -> dict[str, Any]:
    """Weights by name from numpy's generator, so that anybody can make the same ones."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, tensor in sorted(net.state_dict().items()):
        shape = tuple(tensor.shape)
        if name.endswith("num_batches_tracked"):
            values = np.zeros(shape)
        elif name.endswith("running_var"):
            values = rng.uniform(0.5, 1.5, shape)
        elif len(shape) >= 2:
            values = rng.standard_normal(shape) * np.sqrt(1 / np.prod(shape[1:]))
        elif name.endswith("weight"):
            values = rng.uniform(0.5, 1.5, shape)
        else:
            values = rng.standard_normal(shape) * 0.1
        made[name] = torch.tensor(values, dtype=tensor.dtype).reshape(shape)
    return made


def saved(folder: Path, id: str, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """These weights where users have theirs."""
    from safetensors.torch import save_file

    path = folder / id / "model.safetensors"
    path.parent.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    monkeypatch.setenv("REVISIT_WEIGHTS", str(folder))
    return path


def raft_pictures() -> tuple[Any, Any]:
    """Two smooth random pictures of 160 x 128, from -1 to 1."""
    noise = np.random.default_rng(1).uniform(-1, 1, (2, 3, 17, 22)).astype(np.float32)
    both = torch.nn.functional.interpolate(torch.from_numpy(noise), (128, 160), mode="bicubic", align_corners=True)
    return both.clamp(-1, 1).chunk(2)


# torchvision 0.28's raft_large on the weights of `seeded` and the pictures above, 3 rounds, every 41st row and 53rd
# column: x first, then y. Ours differed from it by 9e-6 (2e-5 after 12 rounds) on the machine that made these.
# fmt: off
FROZEN = [
    2.15669, 6.43348, 4.05002, -2.25754, 0.37257, 2.20835, -2.35388, 2.87113,
    -0.47639, -0.88408, 0.61762, 3.26539, -1.39123, 1.80981, 5.3024, 2.98556,
    -2.46762, -6.00222, -3.75957, -3.33225, -7.91958, -7.91138, -0.8555, -3.74558,
    -4.32839, 1.90206, 4.1069, -2.96194, -1.30532, -2.83343, -0.73469, -1.74458,
]
# fmt: on


def test_raft_gives_the_numbers_of_torchvision() -> None:
    net = raft.RAFT().eval()
    assert sum(p.numel() for p in net.parameters()) == 5_257_536
    net.load_state_dict(seeded(net))
    net.rounds = 3
    with torch.inference_mode():
        flow = net(*raft_pictures())
    assert flow.shape == (1, 2, 128, 160)
    assert flow[0, :, ::41, ::53].flatten().tolist() == pytest.approx(FROZEN, abs=2e-4)


def test_raft_reads_the_published_format(tmp_path: Path) -> None:
    state = seeded(raft.RAFT())
    torch.save(state, tmp_path / "raft_large.pth")
    net = raft.build(tmp_path / "raft_large.pth")
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    torch.save({**state, "head.weight": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(MissingPrerequisite, match=r"other\.pth: this is not .* of RAFT: it has besides head\.weight"):
        raft.build(tmp_path / "other.pth")


def test_raft_is_independent_of_its_batch_and_pads_to_whole_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, raft.ID, seeded(raft.RAFT()), monkeypatch)
    monkeypatch.setattr(raft.RAFT, "rounds", 2)
    rng = np.random.default_rng(2)
    pictures = [rng.integers(0, 255, (100, 140, 3), dtype=np.uint8) for _ in range(3)]
    together = flow_runs.raft_both_ways(pictures[:2], pictures[1:], levels_from_minus_one=True)
    alone = flow_runs.raft_both_ways(pictures[1:2], pictures[2:], levels_from_minus_one=True)
    assert together[1][0].shape == (100, 140, 2)
    np.testing.assert_allclose(together[1], alone[0], atol=1e-4)
    back = flow_runs.raft_both_ways(pictures[2:], pictures[1:2], levels_from_minus_one=True)[0]
    np.testing.assert_allclose(back[0], alone[0][1], atol=1e-4)  # the way back is the flow of the pair turned round
    unsigned = flow_runs.raft_both_ways(pictures[1:2], pictures[2:], levels_from_minus_one=False)[0]
    assert np.abs(unsigned[0] - alone[0][0]).max() > 0.01


def test_weights_of_another_network_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, gmflow.ID, seeded(raft.RAFT()), monkeypatch)
    with pytest.raises(MissingPrerequisite, match="this is not a weights file of GMFlow") as raised:
        gmflow.build(path)
    assert str(path) in str(raised.value)


@pytest.mark.long
def test_gmflow_is_independent_of_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, gmflow.ID, seeded(gmflow.GMFlow()), monkeypatch)
    monkeypatch.setattr(gmflow, "SMALLEST", 32)
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 255, (60, 90, 3), dtype=np.uint8) for _ in range(3)]
    together = flow_runs.gmflow_both_ways(pictures[:2], pictures[1:], max_long_side=512)
    alone = flow_runs.gmflow_both_ways(pictures[1:2], pictures[2:], max_long_side=512)
    assert together[1][0].shape == (60, 90, 2) and together[1][0].dtype == np.float32
    np.testing.assert_allclose(together[1], alone[0], atol=1e-3)
    back = flow_runs.gmflow_both_ways(pictures[2:], pictures[1:2], max_long_side=512)[0]
    np.testing.assert_allclose(back[0], alone[0][1], atol=1e-3)


def test_windows_are_cut_and_joined_and_shifted_ones_keep_opposite_edges_apart() -> None:
    maps = torch.arange(2 * 8 * 12 * 3, dtype=torch.float32).reshape(2, 8, 12, 3)
    cut = gmflow.cut_into_windows(maps, 2)
    assert cut.shape == (2, 4, 24, 3)
    assert torch.equal(cut[0, 1, 0], maps[0, 0, 6]) and torch.equal(cut[0, 2, 0], maps[0, 4, 0])
    assert torch.equal(gmflow.join_windows(cut, 2, 8, 12), maps)
    apart = gmflow.shifted_window_attention_mask(8, 12, 2, maps)
    assert not apart[0].any()  # the first window lies inside
    # In the last one, which a shift by half its size has filled from all four corners, only quarters see each other.
    assert (apart[3] == 0).float().mean() == 0.25
    assert sorted(apart.unique().tolist()) == [-100, 0]


def test_parts_of_flow_networks_in_closed_form() -> None:
    flow = torch.tensor([3.0, -1.0])[None, :, None, None].expand(1, 2, 4, 5)
    even = upsample_flow_convexly(flow, torch.zeros(1, 9 * 16, 4, 5), 4)
    assert even.shape == (1, 2, 16, 20)
    assert even[0, :, 8, 8].tolist() == pytest.approx([12, -4])  # flow of a finer picture is longer
    middle = torch.zeros(1, 9, 16, 4, 5)
    middle[:, 4] = 50
    assert upsample_flow_convexly(flow, middle.flatten(1, 2), 4)[0, 0].unique().tolist() == pytest.approx([12])
    maps = torch.rand(1, 2, 4, 5)
    place = coordinate_grid(4, 5, maps)[:, None]
    assert torch.allclose(sample_bilinear(maps, place[0], place[1]), maps, atol=1e-6)
    assert torch.equal(shifted_neighbours(maps, 1)[4], maps) and torch.equal(
        shifted_neighbours(maps, 1)[0][..., 1:, 1:], maps[..., :-1, :-1]
    )


def test_frames_that_are_sampled() -> None:
    wanted = all_sampled_frames(40, 16.0, (9, 30), flow_side=512)
    assert wanted.tolist() == [0, 4, 8, 30, 34, 38]
    assert all_sampled_frames(40, 16.0, (8, 30), step=4, closed=True).tolist() == [0, 4, 8, 30, 34, 38]


def shifted(speed: int, count: int = 12) -> list[np.ndarray]:
    scene = wall(height=96)
    return [window(scene, speed * k, 160) for k in range(count)]


def test_warp_errors_by_raft_take_the_path_of_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, raft.ID, seeded(raft.RAFT()), monkeypatch)
    monkeypatch.setattr(raft.RAFT, "rounds", 1)
    seen: WarpErrors = look(raft_warp, as_frames(shifted(2), 8.0), 8.0, phases=(5, 8), step=2)
    assert seen.index.tolist() == [0, 2, 8] and seen.other.tolist() == [2, 4, 10] and seen.phase.tolist() == [0, 0, 2]
    assert seen.maker == "raft-large" and (seen.width, seen.height) == (160, 96)
    monkeypatch.setattr(flow_runs, "pairs_at_once", lambda: 3)
    again: WarpErrors = look(raft_warp, as_frames(shifted(2), 8.0), 8.0, phases=(5, 8), step=2)
    np.testing.assert_allclose(again.error, seen.error, atol=1e-5)


def dis(earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    """Classical flow."""
    import cv2

    a, b = (cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in (earlier, later))
    return np.asarray(cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM).calc(a, b, None))


@pytest.mark.long
def test_a_picture_that_rests_is_at_the_bound(small_weights: Path) -> None:
    (picture,) = shifted(0, 1)
    ((there, back),) = flow_runs.gmflow_both_ways([picture], [picture], max_long_side=512)
    error, compared, inside, *_, length = warp_statistics_of_pair(
        divide_by_255(picture), divide_by_255(picture), there, back
    )
    assert error < 2e-4 and compared == inside == 1 and length < 1e-4


@pytest.mark.long
def test_gmflow_follows_a_leap_that_classical_flow_loses(small_weights: Path) -> None:
    """A pan by a seventh of the width; where the way back ends is what left the frame."""
    earlier, later = shifted(24, 2)
    ((there, back),) = flow_runs.gmflow_both_ways([earlier], [later], max_long_side=512)
    classical = dis(earlier, later)
    wrong = [float(np.hypot(flow[:, 24:, 0] + 24, flow[:, 24:, 1]).mean()) for flow in (there, classical)]
    assert wrong[0] < 0.2 < 1 < wrong[1]
    assert np.abs(back[:, :-24] - (24, 0)).mean() < 0.2


@pytest.mark.slow
@pytest.mark.long
def test_memobench_has_smoothness_and_geometry_with_the_small_set(
    small_weights: Path, tmp_path: Path, revisit: Cli
) -> None:
    """A pan there and back over a wall: flow explains all of it, from one sampled frame to the next."""
    from revisit.media import encode_mp4

    scene = wall(height=96)
    pictures = [window(scene, 60 + 6 * min(k, 26 - k), 128) for k in range(27)]
    (tmp_path / "videos").mkdir()
    encode_mp4(tmp_path / "videos/Barnyard_001_gt.mp4", pictures, fps=16)
    (tmp_path / "marks.csv").write_text("video_folder,exits,re-enter\nBarnyard_001,12,15\n")
    metrics = ("-m", "memo_motion_smoothness", "-m", "memo_geo3d")
    where = ("--out", tmp_path / "run", "--option", f"marks={tmp_path / 'marks.csv'}", "--workers", 1, "--no-report")
    revisit("eval", tmp_path / "videos", "--suite", "memobench", "--set", "small", *metrics, *where, "--quiet")
    lines = (tmp_path / "run/records.jsonl").read_text().splitlines()
    found = {one["metric"]: one for one in map(json.loads, lines) if "metric" in one}
    smooth, flat = found["memo_motion_smoothness"], found["memo_geo3d"]
    assert smooth["score"] > 97 and smooth["facts"]["flow"] == "gmflow" and smooth["facts"]["step"] == 4
    assert smooth["facts"]["motion"] * 128 == pytest.approx(24, abs=1)
    assert 70 < flat["score"] <= 100 and flat["facts"]["depth_by"] == "fastdepth"


@pytest.mark.slow
@pytest.mark.long
def test_gmflow_beats_classical_flow_on_a_stereo_pair_with_ground_truth(small_weights: Path) -> None:
    """Middlebury's motorcycle: disparity is flow. DIS errs by 2.63 pixels, GMFlow at a longer side of 512 by 1.77."""
    skimage = pytest.importorskip("skimage.data", reason="needs scikit-image for its stereo pair")
    left, right, disparity = skimage.stereo_motorcycle()
    known = np.isfinite(disparity)

    def wrong(flow: np.ndarray) -> float:
        return float(np.hypot(flow[..., 0] + disparity, flow[..., 1])[known].mean())

    ((there, back),) = flow_runs.gmflow_both_ways([left], [right], max_long_side=512)
    classical = dis(left, right)
    assert wrong(there) < 2.0 < wrong(classical)
    assert (back[..., 0][known] > 0).mean() > 0.95
