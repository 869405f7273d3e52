"""Shot changes by TransNetV2: its parts in closed form, its windows, and its real weights on clips that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Score
from revisit.metrics.cuts import shot_changes
from tests.looking import as_frames, look, read, wall, window

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from revisit.networks import runtime, transnet  # noqa: E402
from revisit.observers.cuts import shot_change_probabilities as observed  # noqa: E402


@pytest.fixture(autouse=True)
def own_networks() -> Any:
    """No network of another test's weights."""
    runtime.forget_cached_networks()
    yield
    runtime.forget_cached_networks()


def shots(*counts: int) -> np.ndarray:
    """Shots of so many frames: a window that slides over a few coloured blocks, from numpy's generator alone."""
    rng = np.random.default_rng(0)
    frames = []
    for count in counts:
        wide = rng.integers(0, 256, (3, 8, 3)).astype(np.uint8).repeat(9, axis=0).repeat(12, axis=1)
        frames += [wide[:, start : start + 48] for start in range(count)]
    return np.stack(frames)


def test_histograms_count_colours() -> None:
    frames = np.zeros((1, 2, 27, 48, 3), np.uint8)
    frames[0, 1, :, 24:] = (255, 32, 0)
    found = transnet.unit_colour_histograms(torch.from_numpy(frames))
    assert found.shape == (1, 2, 512)
    assert found[0, 0, 0] == 1 and found[0, 0].sum() == 1
    assert found[0, 1, [0, 7 * 64 + 8]].tolist() == pytest.approx([0.5**0.5] * 2)


def test_likeness_is_looked_up_around_each_frame() -> None:
    layer = transnet.SimilarityWindow()
    torch.nn.init.zeros_(layer.fc.weight)
    torch.nn.init.zeros_(layer.fc.bias)
    with torch.no_grad():
        layer.fc.weight[0, transnet.REACH] = 1  # the frame itself
        layer.fc.weight[1, transnet.REACH + 1] = 1  # the next one
        layer.fc.weight[2, transnet.REACH - 2] = 1  # the one before the last
        unit = torch.tensor([[1.0, 0], [0, 1], [0.6, 0.8], [1, 0]])[None]
        seen = layer(unit)[0]
    assert seen[:, 0].tolist() == pytest.approx([1, 1, 1, 1])
    assert seen[:, 1].tolist() == pytest.approx([0, 0.8, 0.6, 0])
    assert seen[:, 2].tolist() == pytest.approx([0, 0, 0.6, 0])


def test_windows_see_what_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that answers with the number of the frame, told by its first pixel: every frame comes out once."""

    class Echo:
        def __call__(self, frames: Any) -> tuple[Any, Any]:
            assert frames.shape == (1, 100, 27, 48, 3)
            number = frames[..., 0, 0, 0].float() + 256 * frames[..., 0, 0, 1].float()
            return (number / 1000).logit(), (number / 2000).logit()

    for count in (1, 49, 50, 51, 130):
        frames = np.zeros((count, 27, 48, 3), np.uint8)
        frames[:, 0, 0, 0], frames[:, 0, 0, 1] = (np.arange(count) + 1) % 256, (np.arange(count) + 1) // 256
        ends, during = transnet.shot_end_and_transition_probabilities(Echo(), frames)  # type: ignore[arg-type]
        np.testing.assert_allclose(ends * 1000, np.arange(count) + 1, rtol=1e-4)
        np.testing.assert_allclose(during * 2000, np.arange(count) + 1, rtol=1e-4)


def cuts_in(pictures: list[np.ndarray], fps: float = 24.0) -> list[int]:
    score = shot_changes(look(observed, as_frames(pictures, fps), fps))
    assert isinstance(score, Score)
    frames: list[int] = score.facts["frames"]
    return frames


def pan(seed: int, count: int, speed: int = 4) -> list[np.ndarray]:
    scene = wall(seed=seed)
    return [window(scene, x) for x in range(0, count * speed, speed)]


@pytest.mark.long
def test_joined_clips_are_cut_where_they_were_joined(small_weights: Path) -> None:
    assert cuts_in(pan(0, 20) + pan(1, 25)) == [20]


def test_numbers_of_the_published_network(small_weights: Path) -> None:
    """Frozen from the port in the package that carries the weights, on the same frames; ours differed by 1e-8."""
    ends, during = transnet.shot_end_and_transition_probabilities(
        runtime.network(transnet.ID, transnet.build), shots(20, 25, 15)
    )
    assert ends.shape == during.shape == (60,) and ends.dtype == np.float32
    assert np.flatnonzero(ends > 0.5).tolist() == [19, 44]
    frozen = [0.00182, 0.00805, 0.65092, 0.01075, 0.133, 0.83157, 0.17406, 0.01033]
    assert ends[[0, 18, 19, 20, 43, 44, 45, 59]].tolist() == pytest.approx(frozen, abs=2e-5)
    frozen = [0.04316, 0.42362, 0.0362, 0.32146, 0.74608, 0.50843]
    assert during[[18, 19, 20, 43, 44, 45]].tolist() == pytest.approx(frozen, abs=2e-5)


@pytest.mark.slow
@pytest.mark.long
def test_a_dissolve_between_photographs_is_seen(small_weights: Path) -> None:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image for its pictures")
    motorcycle, coffee = data.stereo_motorcycle()[0], data.coffee()
    pictures = []
    for k in range(50):
        share = min(max((k - 20) / 13, 0), 1)  # twelve frames show both
        both = [scene[100:280, k : k + 320] for scene in (motorcycle, coffee)]
        pictures.append((both[0] * (1 - share) + both[1] * share).astype(np.uint8))
    (frame,) = cuts_in(pictures)
    assert 20 < frame <= 33


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("clip", "wanted"),
    [("hamilton", [20, 82, 211]), ("wf_lingbot", [])],
)
def test_what_the_eye_counts(shared: Path, small_weights: Path, clip: str, wanted: list[int]) -> None:
    frames, fps = read(shared / f"clips/{clip}.mp4")
    score = shot_changes(look(observed, frames, fps))
    assert isinstance(score, Score)
    assert score.facts["frames"] == wanted
