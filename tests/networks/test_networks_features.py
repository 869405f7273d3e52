"""EfficientNet-Lite0 and VGG: the networks against other implementations, the observers on real clips and films."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")
pytest.importorskip("safetensors", reason="needs safetensors: pip install 'revisit-bench[networks]'")

from safetensors.torch import save_file  # noqa: E402

from revisit.core import OBSERVERS, SUITES, Batch, Case, Clip, ClipInfo, MissingPrerequisite, Observer, Score  # noqa: E402
from revisit.engine.dependencies import ObserverSet  # noqa: E402
from revisit.engine.evidence_plan import EvidencePlanner  # noqa: E402
from revisit.evidence.frames import FrameFacts  # noqa: E402
from revisit.metrics.integrity import wr_integrity  # noqa: E402
from revisit.networks import gram, runtime  # noqa: E402
from revisit.networks import preprocessing as shapes  # noqa: E402
from revisit.networks.efficientnet_lite import (  # noqa: E402
    ID,
    STAGES,
    EfficientNetLite0,
    build,
    resize_to_whole_patches,
    unit_patch_and_picture_descriptors,
)
from revisit.observers.frames import frame_facts  # noqa: E402
from revisit.observers.masks import are_whole_views, cut_square_on_grey, unit_object_descriptors  # noqa: E402
from revisit.suites.mbench.evidence import GramDistances  # noqa: E402
from revisit.suites.mbench.observers import returned_pairs  # noqa: E402
from revisit.suites.memobench.metrics.identity import best_patch_similarity  # noqa: E402
from revisit.worlds.state import TARGET  # noqa: E402
from tests.conftest import Cli  # noqa: E402
from tests.looking import as_frames, driven, look, read  # noqa: E402

EGYPTIAN_CAT, ESPRESSO = 285, 967


@pytest.fixture(autouse=True)
def own_networks() -> Iterator[None]:
    """No network of another test's weights."""
    runtime.forget_cached_networks()
    yield
    runtime.forget_cached_networks()


@pytest.fixture
def random_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both networks with random numbers, where users have theirs."""
    torch.manual_seed(0)
    folder = tmp_path / "weights"
    net = EfficientNetLite0()
    for name, value in net.state_dict().items():
        if name.endswith("running_mean"):
            value.normal_(0, 0.1)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
    (folder / ID).mkdir(parents=True)
    torch.save(net.state_dict(), folder / ID / "efficientnet-lite0-57934424.pth")
    trunk = {f"net.slice{depth}.{name}": value for depth, name, value in lpips_names(gram.Vgg(gram.VGG16))}
    (folder / "lpips_vgg").mkdir()
    save_file(
        {**trunk, "lin0.model.1.weight": torch.zeros(1, 64, 1, 1)}, folder / "lpips_vgg" / "model.safetensors"
    )  # fmt: skip
    monkeypatch.setenv("REVISIT_WEIGHTS", str(folder))
    return folder


def lpips_names(net: Any) -> Iterator[tuple[int, str, Any]]:
    """Depth, rest of the name and tensor of each weight, as the file of LPIPS has them."""
    starts = (0, 5, 10, 17, 24)
    for name, value in net.state_dict().items():
        number = int(name.split(".")[1])
        yield sum(number >= start for start in starts), name.removeprefix("features."), value


def batch(rgb: list[np.ndarray], reference: list[np.ndarray] | None = None) -> Batch:
    index = np.arange(len(rgb))
    return Batch(index, index / 8.0, rgb, reference or [], index if reference else np.zeros(0, np.int64))


def noise(count: int, size: tuple[int, int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, size[0] // 8, size[1] // 8, 3), dtype=np.uint8)
    return [np.ascontiguousarray(one.repeat(8, axis=0).repeat(8, axis=1)) for one in coarse]


# The networks


def written_out(state: dict[str, Any], x: Any) -> list[Any]:
    """The stages of EfficientNet-Lite0 once more, from the paper's table and TensorFlow's rule of padding."""
    functional = torch.nn.functional

    def conv(name: str, x: Any, stride: int = 1, groups: int = 1) -> Any:
        kernel = state[f"{name}.weight"].shape[-1]
        rows, columns = x.shape[-2:]
        down, across = (max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in (rows, columns))
        wide = functional.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))
        return functional.conv2d(wide, state[f"{name}.weight"], stride=stride, groups=groups)

    def norm(name: str, x: Any) -> Any:
        mean, var, scale, shift = (
            state[f"{name}.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / torch.sqrt(var + 1e-3) * scale + shift

    x = norm("_bn0", conv("_conv_stem", (x - 127) / 128, 2)).clamp(0, 6)
    maps, number = [], 0
    for count, _, stride, expansion, _ in STAGES:
        for k in range(count):
            at, step = f"_blocks.{number}", stride if k == 0 else 1
            y = norm(f"{at}._bn0", conv(f"{at}._expand_conv", x)).clamp(0, 6) if expansion > 1 else x
            y = norm(f"{at}._bn1", conv(f"{at}._depthwise_conv", y, step, y.shape[1])).clamp(0, 6)
            y = norm(f"{at}._bn2", conv(f"{at}._project_conv", y))
            x = x + y if k else y
            number += 1
        maps.append(x)
    return maps


def test_the_stages_are_those_of_the_table_at_any_size(random_weights: Path) -> None:
    with torch.no_grad():
        net = build(random_weights / ID / "efficientnet-lite0-57934424.pth").eval()
        for size in ((64, 96), (75, 101)):
            pictures = torch.randint(0, 256, (2, 3, *size)).float()
            for made, wanted in zip(net.stage_maps(pictures), written_out(net.state_dict(), pictures), strict=True):
                assert made.shape == wanted.shape
                assert float((made - wanted).abs().max()) < 1e-4
        assert net(pictures).shape == (2, 1000)


def test_a_file_of_another_network_is_refused_by_name(random_weights: Path) -> None:
    path = random_weights / ID / "efficientnet-lite0-57934424.pth"
    state = torch.load(path, weights_only=True)
    for changed, said in (
        ({name: value for name, value in state.items() if "_fc" not in name}, "lacks _fc.bias and _fc.weight"),
        ({**state, "more": torch.zeros(1)}, "has besides more"),
        ({**state, "_fc.bias": torch.zeros(7)}, r"_fc.bias \(\(7,\) instead of \(1000,\)\)"),
    ):
        torch.save(changed, path)
        with pytest.raises(MissingPrerequisite, match=said) as refused:
            build(path)
        assert str(path) in str(refused.value)


def test_gram_matrices_follow_their_formula(random_weights: Path) -> None:
    with torch.no_grad():
        maps = torch.randn(2, 3, 4, 5)
        found = gram.gram(maps).numpy()
        for k in range(2):
            flat = maps[k].numpy().reshape(3, -1).astype(float)
            assert found[k] == pytest.approx(np.einsum("ip,jp->ij", flat, flat) / (3 * 20), abs=1e-6)
        one, other = torch.eye(2)[None], 3 * torch.eye(2)[None]
        assert [float(part) for part in gram.gram_difference_and_own_norms([one], [other])] == pytest.approx(
            [8**0.5, 2**0.5, 18**0.5]
        )
        net = runtime.network("lpips_vgg", gram.build_vgg16_from_lpips_file)
        assert [matrix.shape[-1] for matrix in net(torch.zeros(1, 3, 32, 48))] == [64, 128, 256, 512, 512]
        assert len(net.features) == 11  # up to the first convolution of the last block
        assert len(gram.Vgg(gram.VGG19).features) == 13
        assert "features.28.weight" in gram.Vgg(gram.VGG19).state_dict()


# The observers


FRAME_OBSERVERS = [OBSERVERS[f"small.{name}"] for name in ("patches", "identity", "integrity", "feature_error")]


@pytest.mark.parametrize(
    "observer", [FRAME_OBSERVERS[0], *(pytest.param(one, marks=pytest.mark.long) for one in FRAME_OBSERVERS[1:])],
    ids=lambda observer: observer.id,
)  # fmt: skip
def test_a_frame_is_described_alike_alone_and_among_others(random_weights: Path, observer: Observer) -> None:
    rgb, truth = noise(5, (72, 128)), noise(5, (72, 128), seed=1)
    given = truth if observer.pairs else None
    together = observer.fn(batch(rgb, given))
    for k in (0, 4):
        alone = observer.fn(batch(rgb[k : k + 1], given and given[k : k + 1]))
        for name in ("tokens", "whole", "mse", "valid"):
            if hasattr(together, name):
                made, wanted = (np.asarray(getattr(x, name), float) for x in (alone, together))
                assert made[0] == pytest.approx(wanted[k], abs=1e-3 if name == "tokens" else 1e-5)  # half floats


def test_full_field_and_crop(random_weights: Path) -> None:
    wide = batch(noise(2, (120, 200)))
    patches = OBSERVERS["small.patches"].fn(wide)
    assert patches.tokens.shape == (2, 12, 20, 112)
    assert patches.tokens.dtype == np.float16
    assert np.linalg.norm(patches.tokens.astype(float), axis=-1) == pytest.approx(1, abs=2e-3)
    assert OBSERVERS["small.identity"].fn(wide).tokens.shape == (2, 240, 112)
    cropped = OBSERVERS["small.identity"].fn(wide, crop=True)
    assert cropped.tokens.shape == (2, 196, 112)
    assert cropped.cropped
    # 320 x 180 lies in 12 rows of 16 pixels, 6 of them above it and 6 below: the first and the last row hold padding
    padded = OBSERVERS["small.integrity"].fn(batch(noise(2, (144, 256))))
    assert padded.valid.shape == (2, 240)
    assert padded.valid.reshape(2, 12, 20)[:, 1:-1].all()
    assert not padded.valid.reshape(2, 12, 20)[:, [0, -1]].any()
    assert OBSERVERS["small.integrity"].fn(wide, crop=True).valid.shape == (2, 196)


def test_identity_frames_are_those_of_the_classical_observer() -> None:
    choose = OBSERVERS["small.identity"].choose
    assert choose is not None
    assert choose(81, 16.0, (25, 55), samples=9, crop=False).tolist() == [0, 55, 58, 61, 64, 67, 70, 73, 76, 80]


def test_grams_without_poses_pair_frames_from_both_ends() -> None:
    pairs = returned_pairs.frame_pairs_to_compare(10, None, {}, samples=4, rule="corrected", convention="auto")
    assert [pair for pair in pairs if not pair[2]] == [(3, 0, False), (6, 3, False), (9, 6, False)]
    assert {pair[:2] for pair in pairs if pair[2]} == {(9, 0), (8, 1), (7, 2), (6, 3), (5, 4)}


def test_the_papers_style_is_over_all_frames_in_closed_form() -> None:
    """Eq. 13 of MBench, 1 - mean ||G_t - G_{t-1}||, over every frame: with matrices that need no network."""
    from revisit.core import OBSERVERS, SUITES
    from revisit.suites.mbench.metrics.rendering import rendering_style

    rng = np.random.default_rng(3)
    values = rng.random(41) * 0.2
    info = ClipInfo(8, 6, 41, 8.0, np.arange(41) / 8)
    frames = as_frames([np.full((6, 8, 3), k, np.uint8) for k in range(41)], 8)
    for id in ("small.grams", "paper.grams"):
        asked = {**OBSERVERS[id].params, **SUITES["mbench"].protocols["paper"][id]}
        pairs = returned_pairs.frame_pairs_to_compare(info.count, None, {}, **asked)

        def matrices(pictures: list[np.ndarray]) -> list[Any]:
            found = torch.tensor([values[int(rgb[0, 0, 0])] for rgb in pictures], dtype=torch.float32)
            return [found[:, None, None] * torch.eye(1)]  # matrices of one number each

        seen = driven(returned_pairs.collect_gram_distances(pairs, matrices, "made up"), frames)
        score = rendering_style(seen, rule="paper")
        assert score.facts["pairs"] == 40
        assert score.value == pytest.approx(1 - np.abs(np.diff(values)).mean(), abs=1e-6)
    assert (
        len(
            [
                pair
                for pair in returned_pairs.frame_pairs_to_compare(41, None, {}, samples=32, rule="x", convention="")
                if not pair[2]
            ]
        )
        == 31
    )


def test_a_file_of_poses_is_used_where_there_is_one_and_not_asked_for(random_weights: Path, tmp_path: Path) -> None:
    def task(artifacts: dict[str, Path]) -> Any:
        case = Case("s@m", "mbench", "m", "s", Clip(Path("a.mp4")), artifacts=artifacts)
        known = ObserverSet("small", {GramDistances.evidence_id: OBSERVERS["small.grams"]})
        planner = EvidencePlanner(SUITES["mbench"], [], known, {}, "auto", tmp_path)
        planner.digest_of = {case.clip: "clip", **{path: f"digest of {path}" for path in artifacts.values()}}
        return planner.task_or_reason(case, GramDistances)

    without, given = task({}), task({"da3": tmp_path / "poses.npz"})
    assert without.inputs["artifacts.da3?"] is None
    assert given.inputs["artifacts.da3?"] == tmp_path / "poses.npz"
    assert without.key != given.key


def test_grams_of_a_repeated_picture_do_not_differ(random_weights: Path) -> None:
    seen = gram_distances([*noise(2, (32, 48)), noise(2, (32, 48))[0]])
    assert seen.maker == "vgg16"
    assert seen.difference.shape == (3, 5)
    returned = int(np.flatnonzero(seen.fold)[0])
    assert seen.difference[returned].max() < 1e-5 * seen.norm[returned].max()
    assert seen.difference[0].min() > 0


def gram_distances(pictures: list[np.ndarray]) -> Any:
    """What `small.grams` makes of pictures, without a file of poses."""
    return OBSERVERS["small.grams"](pictures, fps=8.0)


def test_a_thing_is_cut_out_on_grey() -> None:
    rgb = np.full((40, 60, 3), 200, np.uint8)
    mask = np.zeros((20, 30), bool)  # at half the size
    mask[5:10, 10:20] = True
    square = cut_square_on_grey(rgb, mask)
    assert square.shape == (20, 20, 3)
    assert (square[5:15] == 200).all()
    assert (square[:5] == 127).all()
    assert (square[15:] == 127).all()


def test_what_the_edge_leaves_of_a_thing_is_no_view_of_it() -> None:
    masks = np.zeros((4, 40, 40), bool)
    masks[0, 10:20, 10:20] = True
    masks[1, 10:20, :4] = True  # four tenths of it
    masks[2, 10:20, :8] = True  # most of it
    masks[3, 10, 10] = True  # a pixel
    assert are_whole_views(list(masks)).tolist() == [True, False, True, False]
    assert are_whole_views([masks[2], masks[2]]).tolist() == [True, True]  # a thing that never fits into the frame
    assert are_whole_views([]).tolist() == []


# With the real weights


@pytest.fixture
def in_use(small_weights: Path) -> Path:
    return small_weights


def test_photographs_are_what_they_show(in_use: Path) -> None:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image for its photographs")
    with runtime.inference():
        for name, label, sure in (("chelsea", EGYPTIAN_CAT, 0.77), ("coffee", ESPRESSO, 0.90)):
            levels = shapes.resize_levels(runtime.channels_first_on_device([getattr(data, name)()]), (224, 224))
            chances = runtime.network(ID, build)(levels).softmax(dim=1)[0]
            assert int(chances.argmax()) == label
            assert float(chances[label]) == pytest.approx(sure, abs=0.005)


REAL = ("wrb_case_a_yaw_rl", "wf_mg3_city", "sam2_bedroom", "skv_bikes", "7scenes_redkitchen_return")


@pytest.mark.long
def test_on_real_clips_one_scene_is_above_another(shared: Path, in_use: Path) -> None:
    """A third of a second apart against another clip: patches, wholes and the feature error all tell."""
    views = []
    for clip in REAL:
        frames, fps = read(shared / f"clips/{clip}.mp4", [40, 41, 42, 43, 44, 45, 48, 50])
        gap = min(frames, key=lambda f: abs(f.index - 40 - fps / 3))
        views.append([cv2.resize(frame.rgb, (320, 180)) for frame in (frames[0], gap)])
    seen = OBSERVERS["small.patches"].fn(batch([view for pair in views for view in pair]))
    n = len(REAL)
    for tokens in (seen.whole, seen.tokens.reshape(2 * n, -1, seen.tokens.shape[-1])):
        flat = tokens.reshape(2 * n, -1).astype(float) / np.sqrt(tokens[0].size / tokens.shape[-1])
        alike = flat @ flat.T
        same = [alike[2 * k, 2 * k + 1] for k in range(n)]
        other = [alike[i, j] for i in range(2 * n) for j in range(i) if i // 2 != j // 2]
        assert min(same) > max(other) + 0.1
    error = OBSERVERS["small.feature_error"].fn(batch([p[0] for p in views], [p[1] for p in views])).mse
    wrong = OBSERVERS["small.feature_error"].fn(batch([p[0] for p in views], [views[k - 1][0] for k in range(n)])).mse
    assert error.max() < wrong.min()


@pytest.mark.long
def test_identical_frames_lie_at_the_bound_and_blur_leads_away_from_it(shared: Path, in_use: Path) -> None:
    frames, _ = read(shared / "clips/sam2_bedroom.mp4", [40])
    clear = frames[0].at(320)
    blurred = [clear, *(cv2.GaussianBlur(clear, (0, 0), sigma) for sigma in (0.7, 1.5, 3, 6))]
    error = OBSERVERS["small.feature_error"].fn(batch(blurred, [clear] * 5)).mse
    assert error[0] == 0
    assert (np.diff(error) > 0).all()
    tokens = OBSERVERS["small.identity"].fn(batch(blurred)).tokens
    likeness, _ = best_patch_similarity(tokens[0], tokens, 0.4)
    assert likeness[0] == pytest.approx(1, abs=1e-3)
    assert (np.diff(likeness) < 0).all()
    layers = returned_pairs.gram_matrices_of_pictures("lpips_vgg", blurred)
    difference, norm, other = gram.gram_difference_and_own_norms(
        layers, [layer[:1].expand_as(layer) for layer in layers]
    )
    style = runtime.to_numpy((difference / (norm + other)).mean(dim=1))
    assert style[0] == 0
    assert (np.diff(style) > 0).all()


@pytest.mark.slow
@pytest.mark.long
def test_integrity_of_a_clip_that_ends_in_another_place(shared: Path, in_use: Path) -> None:
    scores = {}
    for clip in ("wmark_m6_good", "wmark_m6_bad", "wmark_m5_bad"):
        frames, fps = read(shared / f"clips/{clip}.mp4")
        frames = as_frames([cv2.resize(frame.rgb, (320, 180)) for frame in frames], fps)
        facts: FrameFacts = look(frame_facts, frames, fps)
        score = wr_integrity(look(OBSERVERS["small.integrity"], frames, fps), facts)
        assert isinstance(score, Score)
        assert score.facts["described_by"] == "efficientnet-lite0"
        scores[clip] = score.value
    assert scores["wmark_m6_good"] > max(scores["wmark_m6_bad"], scores["wmark_m5_bad"]) + 0.1


def test_things_are_told_apart(in_use: Path) -> None:
    """Three photographs of two things, cut out by hand."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image for its photographs")
    cup, cat = data.coffee(), data.chelsea()
    ellipse = np.zeros(cup.shape[:2], np.uint8)
    cv2.ellipse(ellipse, (330, 200), (190, 130), 0, 0, 360, 1, -1)
    smaller = cv2.resize(cup, (300, 200), interpolation=cv2.INTER_AREA)
    small_mask = cv2.resize(ellipse, (300, 200), interpolation=cv2.INTER_NEAREST)
    other = cut_square_on_grey(cat, np.asarray(cv2.resize(ellipse, cat.shape[1::-1])) > 0)
    vectors = unit_object_descriptors(
        [cut_square_on_grey(cup, ellipse > 0), cut_square_on_grey(smaller, small_mask > 0), other]
    )
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.8
    assert alike[0, 2] < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("change", ["texture", "shape"])
def test_the_more_of_an_object_is_swapped_the_lower(in_use: Path, change: str) -> None:
    """In the rendered room: its descriptor leaves that of the kept object, and the feature error grows."""
    from tests.mbench_world import room

    film = room().film
    state = film.states[-1]
    shots = [film.shot(len(film) - 1, replace(state, **{change: share})) for share in (0, 0.25, 0.5, 0.75, 1)]
    vectors = unit_object_descriptors([cut_square_on_grey(shot.rgb, shot.mask == TARGET) for shot in shots])
    alike = vectors @ vectors[0]
    assert alike[0] == pytest.approx(1, abs=1e-5)
    assert (np.diff(alike) < 0).all()
    error = OBSERVERS["small.feature_error"].fn(batch([shot.rgb for shot in shots], [shots[0].rgb] * 5)).mse
    assert error[0] == 0
    assert (np.diff(error) > 0).all()


@pytest.mark.slow
def test_patches_of_one_place_find_each_other(in_use: Path) -> None:
    """In a rendered room with known depth: the nearest patch of the other view is the right one."""
    from tests.mbench_world import room

    film = room()
    i, j = 0, len(film.rgb) - 1
    with runtime.inference():
        tokens, _ = unit_patch_and_picture_descriptors(
            resize_to_whole_patches(runtime.channels_first_on_device([film.rgb[i], film.rgb[j]]))
        )
    a, b = runtime.to_numpy(tokens)
    assert right_patches(film, i, j, a, b) > 0.85


def right_patches(film: Any, i: int, j: int, a: np.ndarray, b: np.ndarray) -> float:
    """Share of patches of view i whose nearest one in view j is where their middle is seen there, or beside it."""
    from revisit.geometry.two_view import project_pixels_to_second_view, relative_pose, sample_nearest_depth

    poses, K = film.film.poses, film.film.K
    pixels, z = project_pixels_to_second_view(film.depth[i], K, K, *relative_pose(poses[i], poses[j]))
    there = sample_nearest_depth(film.depth[j], pixels)
    rows, columns = a.shape[:2]
    height, width = film.depth[i].shape
    middles = [((np.arange(n) + 0.5) * size / n).astype(int) for n, size in ((rows, height), (columns, width))]
    at = np.ix_(*middles)
    shared = ((there > 0) & (np.abs(z - there) < 0.05 * np.maximum(there, 1e-6)))[at]
    wanted = pixels[at][shared] * [columns / width, rows / height]
    best = (a[shared] @ b.reshape(-1, b.shape[-1]).T).argmax(axis=1)
    found = np.stack([best % columns + 0.5, best // columns + 0.5], axis=1)
    return float((np.abs(found - wanted).max(axis=1) <= 1.5).mean())


@pytest.mark.slow
def test_the_small_set_from_the_command(in_use: Path, revisit: Cli, make_clip: Any, tmp_path: Path) -> None:
    for seed in (0, 1):
        make_clip(tmp_path / f"clips/model/clip{seed}.mp4", seed=seed)
    asked = ("-m", "wr_integrity", "-m", "visual_integrity_lite")
    options = ("--set", "small", "--out", tmp_path / "run", "--no-report", "--quiet", "--workers", 0)
    revisit("eval", tmp_path / "clips", *options, *asked)
    lines = (tmp_path / "run/records.jsonl").read_text(encoding="utf-8").splitlines()
    found = {(one["metric"], one["case"]): one for one in map(json.loads, lines) if "metric" in one}
    assert len(found) == 4
    for (metric, _), record in found.items():
        assert record["status"] == "scored"
        assert 0 < record["score"] <= 1
        assert record["facts"].get("described_by", "") == ("efficientnet-lite0" if metric == "wr_integrity" else "")
