"""LPIPS: the observer against the lpips package, its weights, and the metric.

Weights are random, from a generator of numpy, so that every version of torch gets the same ones; the pictures
too. `GOLDEN` holds what the lpips package (0.1.4, torch 2.13 on a CPU) says of them; it is compared with the
package itself where that can be imported.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import OBSERVERS, InvalidEvidence, MissingPrerequisite, Score, Unscored
from revisit.evidence.fidelity import PerceptualDistance
from revisit.evidence.frames import CasePhases
from revisit.metrics.fidelity import lpips, lpips_returned
from revisit.observers.sets import load_roles
from revisit.observers.torch import lpips as observing
from revisit.observers.torch.weights import load_state, weights_file, why_not_ready
from tests.looking import as_frames, look

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install 'revisit-bench[torch]'")
SIZES = ((64, 80), (97, 131))  # (height, width); the second leaves a rest at every pool
GOLDEN = {"lpips_alex": [0.08301312, 0.08515305], "lpips_vgg": [0.08775048, 0.09521104]}


def pictures(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """A picture of coloured blocks, and the same one darker and with noise."""
    rng = np.random.default_rng(height)
    blocks = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3))
    a = blocks.repeat(8, axis=0).repeat(8, axis=1)[:height, :width]
    b = a * 3 // 4 + rng.integers(0, 40, a.shape)
    return a.astype(np.uint8), b.astype(np.uint8)


def random_state(name: str) -> dict[str, np.ndarray]:
    """Weights under the names the lpips package gives them, drawn in the order of the layers.

    Kernels are normal with variance 2 / inputs, so that features keep their size through the network;
    biases are normal with 0.1; the weights of channels are uniform from 0 to 1.
    """
    rng = np.random.default_rng(7)
    state = {}
    inputs = 3
    for depth, layers in enumerate(observing.NETS[name]):
        for layer in layers:
            if isinstance(layer, observing.Conv):
                shape = (layer.outputs, inputs, layer.kernel, layer.kernel)
                key = f"net.slice{depth + 1}.{layer.number}"
                state[f"{key}.weight"] = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
                state[f"{key}.bias"] = 0.1 * rng.standard_normal(layer.outputs)
                inputs = layer.outputs
        state[f"lin{depth}.model.1.weight"] = rng.uniform(size=(1, inputs, 1, 1))
    return {key: values.astype(np.float32) for key, values in state.items()}


@cache
def random_tensors(name: str) -> dict[str, Any]:
    import torch

    return {key: torch.from_numpy(values) for key, values in random_state(name).items()}


def ours(name: str, a: np.ndarray, b: np.ndarray) -> float:
    state = observing.by_layer(random_tensors(name), observing.NETS[name], "random weights")
    return float(observing.distances(state, observing.NETS[name], [(a, b)])[0])


@pytest.fixture(scope="session")
def lpips_package() -> Iterator[Any]:
    """The lpips package, where it can be imported.

    It needs torchvision, which on a CPU build of torch looks for two compiled operators and does not find
    them; declaring their signatures is enough, because LPIPS never calls them.
    """
    torch = pytest.importorskip("torch", reason="needs torch")
    if find_spec("lpips") is None or find_spec("torchvision") is None:
        pytest.skip("compares with the package lpips: pip install lpips")
    library = None
    try:
        importlib.import_module("torchvision")
    except Exception:  # whatever a half-loaded library raises
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        package = importlib.import_module("lpips")
    except Exception as error:
        pytest.skip(f"lpips does not import here: {error}")
    yield package
    del library  # the operators live as long as this


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with random weights of AlexNet, named by REVISIT_WEIGHTS."""
    import torch

    folder = tmp_path / "weights"
    folder.mkdir()
    torch.save(random_tensors("lpips_alex"), folder / "lpips_alex.pth")
    monkeypatch.setenv("REVISIT_WEIGHTS", str(folder))
    observing.loaded.cache_clear()
    return folder


@needs_torch
@pytest.mark.parametrize("name", ["lpips_alex", "lpips_vgg"])
def test_equals_the_lpips_package(lpips_package: Any, name: str):
    import torch

    net = lpips_package.LPIPS(pretrained=False, net=name.removeprefix("lpips_"), pnet_rand=True, verbose=False)
    missing = net.load_state_dict(random_tensors(name), strict=False).missing_keys
    # The package lists the weights of channels twice; both names mean one tensor.
    assert all(key.startswith(("lins.", "scaling_layer.")) for key in missing)
    for size, golden in zip(SIZES, GOLDEN[name], strict=True):
        a, b = pictures(*size)
        tensors = [torch.from_numpy(x.transpose(2, 0, 1)[None].astype(np.float32) / 255) for x in (a, b)]
        with torch.no_grad():
            theirs = float(net(*tensors, normalize=True))
        assert ours(name, a, b) == pytest.approx(theirs, abs=1e-6)
        assert golden == pytest.approx(theirs, abs=1e-6)


@needs_torch
@pytest.mark.parametrize("name", ["lpips_alex", "lpips_vgg"])
def test_matches_the_stored_numbers(name: str):
    found = [ours(name, *pictures(*size)) for size in SIZES]
    assert found == pytest.approx(GOLDEN[name], abs=1e-6)


@needs_torch
def test_an_identical_clip_has_no_distance_and_a_changed_one_has(weights: Path):
    a, b = pictures(*SIZES[0])
    frames = as_frames([a, b, a])
    same = look(OBSERVERS["torch.lpips_alex"], frames, reference=frames)
    score = lpips(same)
    assert isinstance(score, Score)
    assert score.value == 0 and score.facts["net"] == "lpips_alex" and len(score.facts["weights"]) == 16
    changed = look(OBSERVERS["torch.lpips_alex"], frames, reference=as_frames([a, a, b]))
    assert changed.distance[0] == 0
    assert changed.distance[1:] == pytest.approx([GOLDEN["lpips_alex"][0]] * 2, abs=1e-6)
    assert (changed.width, changed.height) == (80, 64)


@needs_torch
def test_pairs_do_not_disturb_each_other():
    a, b = pictures(*SIZES[0])
    state = observing.by_layer(random_tensors("lpips_alex"), observing.ALEX, "random weights")
    together = observing.distances(state, observing.ALEX, [(a, b), (a, a), (b, a)])
    alone = GOLDEN["lpips_alex"][0]
    assert together == pytest.approx([alone, 0, alone], abs=1e-6)


@needs_torch
def test_weights_of_another_network_are_refused():
    with pytest.raises(MissingPrerequisite, match=r"expected net.slice1.0.weight of shape \(64, 3, 3, 3\)"):
        observing.by_layer(random_tensors("lpips_alex"), observing.VGG, "file.pth")
    with pytest.raises(MissingPrerequisite, match="nothing of that name"):
        observing.by_layer({}, observing.ALEX, "file.pth")


@needs_torch
def test_both_kinds_of_file_are_read_and_code_is_not(weights: Path):
    import torch

    safetensors = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    safetensors.save_file(random_tensors("lpips_alex"), weights / "copy.safetensors")
    assert weights_file("copy").suffix == ".safetensors"
    for name in ("copy", "lpips_alex"):
        assert torch.equal(
            load_state(weights_file(name))["lin0.model.1.weight"], random_tensors("lpips_alex")["lin0.model.1.weight"]
        )
    torch.save({"net": Path("anything")}, weights / "code.pth")
    (weights / "damaged.safetensors").write_bytes(b"not tensors")
    (weights / "damaged.pth").write_bytes(b"")
    for name in ("code.pth", "damaged.safetensors", "damaged.pth"):
        with pytest.raises(MissingPrerequisite, match=f"{name}: cannot be read as weights"):
            load_state(weights / name)


@needs_torch
def test_damaged_weights_cost_only_lpips(make_clip, tmp_path: Path, revisit, weights: Path):
    (weights / "lpips_alex.pth").write_bytes(b"damaged")
    make_clip(tmp_path / "v/a.mp4")
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps({"model": "m", "video": "a.mp4", "reference": "a.mp4"}))
    asked = ("-m", "psnr", "-m", "lpips", "--set", "perceptual", "--workers", 0, "--json", "--no-report")
    scores = json.loads(revisit("eval", "v", *asked, check=None).stdout)["models"]["m"]["scores"]
    assert scores["psnr"]["n"] == 1
    assert scores["lpips"]["failed"] == 1


def test_what_is_missing_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("REVISIT_WEIGHTS", raising=False)
    with pytest.raises(
        MissingPrerequisite, match=r"set REVISIT_WEIGHTS to a folder that holds lpips_alex.safetensors or"
    ):
        weights_file("lpips_alex")
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match=r"put lpips_vgg.safetensors or lpips_vgg.pth into"):
        weights_file("lpips_vgg")
    reason = why_not_ready("lpips_alex")
    assert reason and reason.startswith(("torch is not installed: pip install", "weights are missing: put"))


def test_the_set_adds_lpips_to_lite():
    roles = load_roles("perceptual")
    assert roles["perceptual_distance"].id == "torch.lpips_alex"
    assert roles["frame_fidelity"].id == "lite.fidelity"
    assert "perceptual_distance" not in load_roles("lite")


@pytest.mark.parametrize("chosen", ["lite", "perceptual"])
def test_a_run_without_the_network_loses_only_lpips(chosen, make_clip, tmp_path: Path, revisit):
    make_clip(tmp_path / "v/a.mp4")
    make_clip(tmp_path / "v/truth.mp4", seed=1)
    line = {"id": "a", "model": "m", "video": "a.mp4", "reference": "truth.mp4"}
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps(line))
    asked = ("-m", "psnr", "-m", "lpips", "--set", chosen, "--workers", 0, "--json", "--no-report")
    done = revisit("eval", "v", *asked, env={"REVISIT_WEIGHTS": str(tmp_path / "nowhere")})
    summary = json.loads(done.stdout)
    scores = summary["models"]["m"]["scores"]
    assert scores["psnr"]["n"] == 1 and not summary["failed"]
    if chosen == "lite":  # nobody can observe it, so it is not asked
        assert summary["not_asked"] == {"lpips": "needs perceptual_distance, which no observer of the set 'lite' makes"}
    else:
        assert scores["lpips"]["n"] == scores["lpips"]["failed"] == 0
        assert set(scores["lpips"]["unscored"]) <= {"torch is not installed", "weights are missing"}


@needs_torch
def test_a_run_with_the_network_scores_lpips(make_clip, tmp_path: Path, revisit, weights: Path):
    make_clip(tmp_path / "v/a.mp4", size=(64, 96))
    (tmp_path / "v/manifest.jsonl").write_text(
        json.dumps({"id": "a", "model": "m", "video": "a.mp4", "reference": "a.mp4"})
    )
    done = revisit("eval", "v", "-m", "lpips", "--set", "perceptual", "--json", "--no-report", "--workers", 1)
    assert json.loads(done.stdout)["models"]["m"]["scores"]["lpips"]["n"] == 1


def made(distance: list[float]) -> PerceptualDistance:
    index = np.arange(len(distance))
    return PerceptualDistance(index, index, np.array(distance), "lpips_alex", "0" * 16, 640, 360)


def test_the_metric_is_the_mean_and_the_return_is_scored_alone():
    seen = made([0.1, 0.1, 0.5, 0.3, 0.3])
    score = lpips(seen)
    assert isinstance(score, Score)
    assert score.value == pytest.approx(0.26)
    assert (score.facts["first"], score.facts["last"]) == (0.1, 0.3)
    returned = lpips_returned(seen, CasePhases(2, 3, "given"))
    assert isinstance(returned, Score)
    assert returned.value == pytest.approx(0.3)
    assert returned.facts["mean"] == pytest.approx({"visible": 0.1, "hidden": 0.5, "returned": 0.3})


def test_what_cannot_be_scored_is_said():
    assert lpips(made([])) == Unscored("no frame of the clip has an aligned frame in the reference")
    late = lpips_returned(made([0.1]), CasePhases(1, 5, "given"))
    assert isinstance(late, Unscored) and "frame 5" in late.reason
    with pytest.raises(InvalidEvidence, match="0 is identical"):
        lpips(made([0.1, -0.2]))
    with pytest.raises(InvalidEvidence, match="one row each"):
        lpips(replace(made([0.1]), distance=np.ones(2)))
