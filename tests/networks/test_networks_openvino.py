"""Networks by OpenVINO: torch's numbers, kept for the next run, and torch itself where it is off, missing or fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import MissingPrerequisite
from revisit.networks import settings
from revisit.weights import derived_files

torch = pytest.importorskip("torch", reason="networks run on torch")

from revisit.networks import lpips, openvino, runtime, transnet  # noqa: E402


@pytest.fixture(autouse=True)
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.OPENVINO, "on")
    monkeypatch.setenv(settings.DEVICE, "cpu")
    monkeypatch.delenv(settings.PRECISION, raising=False)
    runtime.forget_cached_networks()
    openvino._ready.clear()


@pytest.fixture
def installed() -> None:
    pytest.importorskip("openvino", reason="needs OpenVINO: pip install 'revisit-bench[cpu]'")


def network() -> Any:
    """LPIPS on AlexNet with random weights."""
    torch.manual_seed(3)
    return lpips.Lpips(lpips.ALEX).requires_grad_(False).eval()


def pictures(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8))


def test_numbers_are_those_of_torch_also_from_the_cache(
    installed: None, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    net, shown = network(), pictures(1, 3, 43, 71)
    with runtime.inference():
        wanted = net.channels_last(shown)
        found = openvino.run(net.channels_last, shown)
        assert [one.shape for one in found] == [one.shape for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
        assert len(list(own_cache.glob("networks/*.made"))) == 1
        first = [one.clone() for one in found]
        openvino.run(net.channels_last, 255 - shown)
        assert all(torch.equal(one, other) for one, other in zip(found, first, strict=True))  # the caller's own

        openvino._ready.clear()
        monkeypatch.setattr(torch.jit, "trace", None)  # nothing is converted again
        again = openvino.run(net.channels_last, shown)
        assert all(torch.equal(one, other) for one, other in zip(again, found, strict=True))


def test_other_weights_are_another_network(installed: None) -> None:
    net, shown = network(), pictures(1, 3, 43, 71)
    names = [openvino._cache_name(net.channels_last, shown, [])]
    net.get_parameter("net.slice5.10.bias")[0] += 1e-3
    names += [openvino._cache_name(net.channels_last, one, []) for one in (shown, shown[..., 1:], shown.float())]
    assert len(set(names)) == 4


def test_torch_where_it_is_not_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    net, shown = network(), pictures(1, 3, 43, 71)

    def fails(*_: Any) -> None:
        raise RuntimeError("unknown operation\nand more")

    monkeypatch.setattr(openvino, "_compiled", fails)
    monkeypatch.setattr(runtime, "find_spec", lambda name: object())
    with runtime.inference():
        wanted = net.channels_last(shown)
        for _ in range(2):
            assert all(map(torch.equal, openvino.run(net.channels_last, shown), wanted))
        assert capsys.readouterr().err.count("without OpenVINO, which is slower (unknown operation)") == 1
        monkeypatch.setenv(settings.PRECISION, "float32")
        assert not runtime.uses_openvino() and runtime.describe_device() == "cpu"
        monkeypatch.delenv(settings.PRECISION)
        assert runtime.uses_openvino() and runtime.describe_device() == "cpu, by OpenVINO"
        monkeypatch.setattr(runtime, "find_spec", lambda name: None)
        with pytest.raises(MissingPrerequisite, match=r"pip install 'revisit-bench\[cpu\]'"):
            openvino.run(net.channels_last, shown)
        monkeypatch.setenv(settings.OPENVINO, "auto")
        assert not runtime.uses_openvino()
        assert all(map(torch.equal, openvino.run(net.channels_last, shown), wanted))


def test_what_is_kept_is_whole_and_bounded(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_files, "MOST", 2)
    for name in "abc":
        derived_files.store_derived_bytes(name, name.encode() * 100)
    assert [derived_files.load_derived_bytes(name) for name in "abc"] == [None, b"b" * 100, b"c" * 100]
    file = own_cache / "networks/c.made"
    file.write_bytes(file.read_bytes()[:-1])
    assert derived_files.load_derived_bytes("c") is None


def test_transnet_joins_what_is_published() -> None:
    """Four dilated convolutions and batch normalisation, by torch's own layers."""
    torch.manual_seed(1)
    dilated = transnet.Dilated(3, 2)
    for tensor in (dilated.bn.running_mean, dilated.bn.running_var, dilated.bn.weight, dilated.bn.bias):
        torch.nn.init.uniform_(tensor, 0.5, 2)
    x = torch.randn(1, 3, 11, 5, 7)
    parts = []
    for dilation in transnet.DILATIONS:
        over_picture, over_time = (dilated.get_parameter(f"Conv3D_{dilation}.layers.{k}.weight") for k in (0, 1))
        wide = torch.nn.functional.conv3d(x, over_picture, padding=(0, 1, 1))
        parts.append(torch.nn.functional.conv3d(wide, over_time, padding=(dilation, 0, 0), dilation=(dilation, 1, 1)))
    wanted = dilated.eval().bn(torch.cat(parts, dim=1))[0].transpose(0, 1)
    torch.testing.assert_close(transnet.Joined(dilated)(x[0].transpose(0, 1)), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.long
def test_real_weights(installed: None, small_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On noise, which is harder than pictures: within what the cards promise of every score."""
    from revisit.networks import efficientnet_lite

    shown, frames = pictures(2, 3, 192, 320), pictures(60, 27, 48, 3).numpy()
    told = []
    for asked in ("off", "on"):
        monkeypatch.setenv(settings.OPENVINO, asked)
        runtime.forget_cached_networks()
        with runtime.inference():
            distance = runtime.network("lpips_alex", lpips.lpips_alex)(shown[:1], shown[1:])
            patches, whole = efficientnet_lite.unit_patch_and_picture_descriptors(shown)
            cells = efficientnet_lite.head_maps(shown)
            ends, _ = transnet.shot_end_and_transition_probabilities(
                runtime.network(transnet.ID, transnet.build), frames
            )
        told.append([distance, patches, whole, cells, torch.from_numpy(ends)])
    for one, other, apart in zip(*told, (1e-6, 1e-5, 1e-5, 1e-4, 1e-5), strict=True):
        torch.testing.assert_close(one, other, atol=apart, rtol=0)


def test_five_by_threes() -> None:
    conv = torch.nn.Conv2d(3, 4, 5, padding=2).requires_grad_(False)
    x = torch.randn(2, 3, 11, 14)
    torch.testing.assert_close(lpips.conv_5x5_as_3x3(conv, x), conv(x), atol=1e-5, rtol=1e-5)
