"""revisit.fvd, kvd, fid and kid with the real networks: what they say, what they refuse, and numbers by other means."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

import revisit
from revisit import catalog
from revisit.core import UsageError, import_registering_modules
from revisit.media import encode_mp4
from revisit.results.distances import KINDS
from revisit.weights import lock
from tests.painted_datasets import wall

import_registering_modules()


def sliding(seed: int, blur: float = 0.0, frames: int = 16) -> np.ndarray:
    """A view that slides along a wall, out of focus by so many pixels."""
    around = wall(seed)
    clip = np.stack([around[40:136, 8 * k : 8 * k + 96] for k in range(frames)])
    return np.stack([cv2.GaussianBlur(frame, (0, 0), blur) for frame in clip]) if blur else clip


def test_fvd_says_what_it_rests_on_and_refuses_few_scenes(tmp_path: Path, small_weights: Path) -> None:
    for seed in (0, 1):
        encode_mp4(tmp_path / "clips" / f"{seed}.mp4", sliding(seed), 8.0)
    answer = revisit.fvd(tmp_path / "clips", ["nowhere.mp4"])  # a refusal does not wait for all clips to be read
    assert answer.value is None and answer.interval is None
    assert answer.unscored == "1632 scenes are needed, and there are 1"
    assert (answer.n, answer.reference_n, answer.scenes, answer.dimensions) == (2, 1, 1, 400)
    assert (answer.frames, answer.size, answer.network) == (16, 224, "i3d-kinetics-400")
    assert answer.digest == lock.require_lock_entry("i3d-kinetics-400").files[0].sha256


def test_what_cannot_be_compared_is_refused_with_a_sentence(small_weights: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        revisit.kvd([], [sliding(0)])
    with pytest.raises(UsageError, match="nowhere is no folder"):
        revisit.kvd([sliding(0)], "nowhere")
    with pytest.raises(UsageError, match="2 videos have 1 scenes"):
        revisit.kvd([sliding(0), sliding(1)], [sliding(2)], scenes=["a"])
    with pytest.raises(UsageError, match=r"video 0 .* 5 frames"):
        revisit.kvd([sliding(0, frames=5)], [sliding(1)])


@pytest.mark.long
def test_kvd_of_blurred_clips_is_that_of_their_logits(small_weights: Path) -> None:
    """Twenty scenes; the mean over pairs of different scenes by a double loop over logits of the network itself."""
    from revisit.networks.i3d import clip_logits

    blurred, sharp = [sliding(k, 2.0) for k in range(20)], [sliding(k) for k in range(20)]
    answer = revisit.kvd(blurred, sharp, scenes=range(20), reference_scenes=range(20))
    a, b = (
        np.stack([clip_logits(np.stack([cv2.resize(f, (224, 224)) for f in clip])) for clip in clips]).astype(float)
        for clips in (blurred, sharp)
    )
    kernels = [(x @ y.T / 400 + 1) ** 3 for x, y in ((a, a), (b, b), (a, b))]
    means = [kernel[~np.eye(20, dtype=bool)].mean() for kernel in kernels]
    assert answer.value == pytest.approx(means[0] + means[1] - 2 * means[2], rel=1e-3)
    assert answer.value is not None and answer.interval is not None
    assert 0 < answer.interval[0] < answer.value < answer.interval[1]


def test_each_distance_has_a_card() -> None:
    assert {row["id"] for row in catalog.list_rows_of_kind("distances")} == set(KINDS) == {"fvd", "kvd", "fid", "kid"}
    for id in KINDS:
        text = catalog.card_text(catalog.card_of_id(id))
        assert f"revisit.{id}(videos, reference)" in text and "scenes" in text and callable(getattr(revisit, id))
    assert "1632 for 400 dimensions" in catalog.card_of_id("fvd")["least_scenes"]
