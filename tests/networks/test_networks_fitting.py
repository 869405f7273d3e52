"""Pictures that a GPU brings to a smaller size are those that OpenCV makes on a CPU, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from revisit.core import OBSERVERS, Batch, Frame  # noqa: E402
from revisit.engine.inference_host import resize_batch_on_gpu  # noqa: E402
from revisit.networks import compiled, preprocessing  # noqa: E402
from revisit.observers.fidelity import bring_pair_to_one_size, quick_size_on_gpu  # noqa: E402
from revisit.observers.pictures import resize_by_halving  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
SIZES = [  # (height, width) before and after
    ((48, 84), (37, 64)), ((48, 84), (24, 42)), ((96, 168), (30, 52)), ((51, 77), (40, 60)), ((64, 64), (64, 64)),
    ((7, 9), (4, 5)), ((80, 120), (20, 30)), ((45, 61), (22, 30)),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_pictures_are_bit_by_bit_those_of_opencv(before, after, device):
    pictures = np.random.default_rng(0).integers(0, 256, (3, *before, 3), dtype=np.uint8)
    assert preprocessing.can_resize_bytes_as_on_cpu(before, after)
    expected = np.stack([resize_by_halving(picture, after[1], after[0]) for picture in pictures])
    output = preprocessing.resize_bytes_as_on_cpu(torch.from_numpy(pictures).to(device), after)
    assert np.array_equal(output.cpu().numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
@torch.inference_mode()
def test_compiled_code_makes_the_same_bytes(device, monkeypatch):
    monkeypatch.setattr(compiled, "_compiler", None)
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager" if device == "cpu" else "inductor")
    compiled.enable_compilation(2, full_batches_before=1)
    pictures = np.random.default_rng(1).integers(0, 256, (2, 50, 86, 3), dtype=np.uint8)
    outputs = [preprocessing.resize_bytes_as_on_cpu(torch.from_numpy(pictures).to(device), (19, 33)) for _ in range(3)]
    assert compiled._compiler is not None and compiled._compiler.made
    expected = np.stack([resize_by_halving(picture, 33, 19) for picture in pictures])
    for output in outputs:
        assert np.array_equal(output.cpu().numpy(), expected)


@pytest.mark.parametrize(("before", "after"), [((91, 61), (40, 30)), ((40, 40), (60, 60)), ((99, 50), (33, 50))])
def test_what_is_far_larger_or_smaller_is_left_to_the_cpu(before, after):
    assert not preprocessing.can_resize_bytes_as_on_cpu(before, after)


def test_pairs_of_whole_frames_are_fitted_as_a_worker_would():
    rng = np.random.default_rng(2)
    pictures, others = rng.integers(0, 256, (2, 2, 72, 128, 3), dtype=np.uint8)
    number = np.arange(2)
    whole = Batch(number, number / 8, torch.from_numpy(pictures), torch.from_numpy(others), number)
    params = {"resize": "quick", "long_side": 80, "rate": None}
    batch = resize_batch_on_gpu(OBSERVERS["torch.lpips_alex"], params, whole)
    for row, (mine, other) in enumerate(zip(pictures, others, strict=True)):
        expected = bring_pair_to_one_size((Frame(row, 0.0, mine), Frame(row, 0.0, other)), "quick", 80)
        assert np.array_equal(batch.rgb[row], expected[0]) and np.array_equal(batch.reference[row], expected[1])
    assert resize_batch_on_gpu(OBSERVERS["torch.lpips_alex"], params, batch).rgb is batch.rgb, (
        "what is fitted already stays"
    )
    assert quick_size_on_gpu((72, 128), "area", 80) is None and quick_size_on_gpu((72, 128), "mind", None) is None
