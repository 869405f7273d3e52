"""LPIPS: the observer against the lpips package, its weights, and the metric.

Weights are random, from a generator of numpy, so that every version of torch gets the same ones; the pictures
too. `GOLDEN` holds what the lpips package (0.1.4, torch 2.13 on a CPU) says of them; it is compared with the
package itself where that can be imported.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from revisit.core import OBSERVERS, InvalidEvidence, MissingPrerequisite, Score, Unscored
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import PerceptualDistance
from revisit.metrics.fidelity import NO_FRAMES, lpips, lpips_returned
from revisit.observers.sets import load_roles
from revisit.weights import file, folder, tensors, why_missing
from revisit.weights.pull import pull_weights
from tests.conftest import SHARED_DATA
from tests.looking import as_frames, look
from tests.registry import write_lock

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs torch: pip install 'revisit-bench[networks]'"
)
SIZES = ((64, 80), (97, 131))  # (height, width); the second leaves a rest at every pool
GOLDEN = {"lpips_alex": [0.08301312, 0.08515305], "lpips_vgg": [0.08775048, 0.09521104]}


def network() -> Any:
    """The module of the network, which imports torch."""
    return importlib.import_module("revisit.networks.lpips")


def table(name: str) -> Any:
    """The layers of LPIPS on AlexNet or VGG16."""
    return getattr(network(), name.removeprefix("lpips_").upper())


def loading() -> Any:
    return importlib.import_module("revisit.networks.loading")


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
    for depth, layers in enumerate(table(name)):
        for layer in layers:
            if isinstance(layer, network().Conv):
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
    return measured(name, [(a, b)])[0]


def measured(name: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """Distances of pairs with random weights."""
    import torch

    net = loading().load_tensors_strictly(network().Lpips(table(name)), random_tensors(name), Path("random weights"))
    sides = [torch.from_numpy(np.stack(side)).permute(0, 3, 1, 2) for side in zip(*pairs, strict=True)]
    with torch.inference_mode():
        return [float(value) for value in net(*sides)]


def layers_of(table: Any) -> Any:
    """The layers of a network one after the other, as torchvision lists them: a ReLU behind each convolution."""
    from torch import nn

    made: list[Any] = []
    inputs = 3
    for layer in (layer for row in table for layer in row):
        if hasattr(layer, "outputs"):
            made += [nn.Conv2d(inputs, layer.outputs, layer.kernel, layer.stride, layer.padding), nn.ReLU()]
            inputs = layer.outputs
        else:
            made.append(nn.MaxPool2d(layer.kernel, layer.stride))
    return nn.Sequential(*made, nn.MaxPool2d(2))


@pytest.fixture
def lpips_package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lpips package, where it is installed. It wants torchvision only for the layers of its networks."""
    pytest.importorskip("torch", reason="needs torch")
    if find_spec("lpips") is None:
        pytest.skip("compares with the package lpips: pip install --no-deps lpips tqdm")
    models: Any = ModuleType("torchvision.models")
    models.alexnet = lambda **_: SimpleNamespace(features=layers_of(network().ALEX))
    models.vgg16 = lambda **_: SimpleNamespace(features=layers_of(network().VGG))
    package: Any = ModuleType("torchvision")
    package.models = models
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lpips", "torchvision")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return importlib.import_module("lpips")


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with random weights of AlexNet put there by hand, named by REVISIT_WEIGHTS."""
    import torch

    from revisit.networks import runtime

    folder = tmp_path / "weights"
    folder.mkdir()
    torch.save(random_tensors("lpips_alex"), folder / "lpips_alex.pth")
    monkeypatch.setenv("REVISIT_WEIGHTS", str(folder))
    runtime.forget_cached_networks()
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
def test_pairs_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch):
    a, b = pictures(*SIZES[0])
    alone = GOLDEN["lpips_alex"][0]
    assert measured("lpips_alex", [(a, b), (a, a), (b, a)]) == pytest.approx([alone, 0, alone], abs=1e-6)
    monkeypatch.setattr(network(), "PIXELS", 1)  # one pair at a time, as with large pictures
    assert measured("lpips_alex", [(a, b), (a, a), (b, a)]) == pytest.approx([alone, 0, alone], abs=1e-6)


@needs_torch
def test_weights_of_another_network_are_refused(weights: Path):
    with pytest.raises(MissingPrerequisite, match=r"lpips_alex.pth: this is not .* of Lpips: it lacks .*net.slice1.2"):
        network().lpips_vgg(weights / "lpips_alex.pth")


@needs_torch
def test_both_kinds_of_file_are_read_as_the_lpips_package_writes_them(weights: Path):
    import torch

    safetensors = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    state = random_tensors("lpips_alex")
    # The package lists the weights of channels twice, and its shift and scale.
    repeated = {"lins.0.model.1.weight": state["lin0.model.1.weight"], "scaling_layer.shift": torch.zeros(1, 3, 1, 1)}
    torch.save({**state, **repeated}, weights / "lpips_alex.pth")
    old = network().lpips_alex(file("lpips_alex"))
    safetensors.save_file(state, weights / "lpips_alex.safetensors")
    assert file("lpips_alex").suffix == ".safetensors"
    new = network().lpips_alex(file("lpips_alex"))
    assert all(torch.equal(one, new.state_dict()[name]) for name, one in old.state_dict().items())
    assert tensors(file("lpips_alex")).keys() == state.keys()


@needs_torch
def test_damaged_weights_cost_only_lpips(make_clip, tmp_path: Path, revisit, weights: Path):
    (weights / "lpips_alex.pth").write_bytes(b"damaged")
    make_clip(tmp_path / "v/a.mp4")
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps({"model": "m", "video": "a.mp4", "reference": "a.mp4"}))
    asked = ("-m", "psnr", "-m", "lpips", "--set", "perceptual", "--workers", 0, "--json", "--no-report")
    scores = json.loads(revisit("eval", "v", *asked, check=None).stdout)["models"]["m"]["scores"]
    assert scores["psnr"]["n"] == 1
    assert scores["lpips"]["failed"] == 1


@pytest.mark.slow
@needs_torch
def test_real_weights_have_the_heads_of_the_lpips_package(
    small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The package's own archive holds the heads, and the registry gives it."""
    import torch

    heads = {
        "alex": "df73285e35b22355a2df87cdb6b70b343713b667eddbda73e1977e0c860835c0",
        "vgg": "a78928a0af1e5f0fcb1f3b9e8f8c3a2a5a3de244d830ad5c1feddc79b8432868",
    }
    source = {
        "pypi": "lpips==0.1.4",
        "archive": "lpips-0.1.4-py3-none-any.whl",
        "sha256": "fd537af5828b69d2e6ffc0a397bd506dbc28ca183543617690844c08e102ec5e",
        "take": {f"{net}.pth": f"lpips/weights/v0.1/{net}.pth" for net in heads},
    }
    files = [
        {"name": f"{net}.pth", "sha256": sha256, "convert": "safetensors", "becomes": f"{net}.safetensors"}
        for net, sha256 in heads.items()
    ]
    write_lock(tmp_path / "lock.yaml", heads={"files": files, "sources": [source]})
    real = {net: tensors(file(f"lpips_{net}")) for net in heads}
    monkeypatch.setenv("REVISIT_WEIGHTS_LOCK", str(tmp_path / "lock.yaml"))
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "heads"))
    [done] = pull_weights(["heads"])
    if done.state == "failed":
        pytest.skip(f"needs the archive of the lpips package: {done.said}")
    for net, found in real.items():
        theirs = tensors(folder("heads") / f"{net}.safetensors")
        assert len(theirs) == 5
        for name, one in theirs.items():
            assert torch.equal(found[name], one), f"{net} {name}"


@needs_torch
def test_real_weights_begin_as_torchvisions_alexnet(small_weights: Path):
    """What torch prints of the first row of AlexNet's first kernel, in many places."""
    first = tensors(file("lpips_alex"))["net.slice1.0.weight"][0, 0, 0].tolist()
    assert [*first[:3], *first[-3:]] == pytest.approx(
        [1.1864e-01, 9.4069e-02, 9.5435e-02, 5.5822e-02, 2.1575e-02, 4.9963e-02], rel=5e-5
    )


@pytest.mark.long
@needs_torch
def test_real_weights_give_the_numbers_in_the_manual_of_torchmetrics(small_weights: Path):
    """torchmetrics 0.10 and 0.9 print 0.3493 and 0.3566 for ten pairs of noise and VGG16.

    The noise is drawn after VGG16 and the heads were set up with random numbers, as many as they have weights.
    """
    import torch

    net = network().lpips_vgg(file("lpips_vgg"))
    generator = torch.Generator().manual_seed(123)
    left = 138_357_544 + 64 + 128 + 256 + 512 + 512
    while left:
        drawn = min(left, 1 << 22)
        torch.rand(drawn, generator=generator)
        left -= drawn
    a, b = (torch.rand(10, 3, 100, 100, generator=generator) for _ in range(2))
    with torch.inference_mode():
        assert float(net(a * 255, b * 255).mean()) == pytest.approx(0.3493, abs=5.1e-5)
        assert float(net((a + 1) * 127.5, (b + 1) * 127.5).mean()) == pytest.approx(0.3566, abs=5.1e-5)


@needs_torch
@pytest.mark.parametrize(("other", "published"), [("ex_p0.png", 0.722), ("ex_p1.png", 0.138)])
def test_real_weights_give_the_numbers_of_the_authors_example(small_weights: Path, other: str, published: float):
    """What the authors print of their three pictures, which lie beside the checkout or where LPIPS_EXAMPLE says."""
    import cv2
    import torch

    folder = Path(os.environ.get("LPIPS_EXAMPLE") or SHARED_DATA / "lpips_example")
    if not (folder / "ex_ref.png").is_file():
        pytest.skip(
            "needs ../shared/data/lpips_example beside the checkout; or set LPIPS_EXAMPLE to the folder `imgs` of the "
            "LPIPS authors' repository, which holds ex_ref.png"
        )
    names = [folder / name for name in ("ex_ref.png", other)]
    levels = [torch.from_numpy(cv2.imread(str(name))[..., ::-1].copy()).permute(2, 0, 1)[None] for name in names]
    with torch.inference_mode():
        found = float(network().lpips_alex(file("lpips_alex"))(*levels)[0])
    assert found == pytest.approx(published, abs=5.1e-4)


def test_what_is_missing_is_said_with_what_to_do():
    with pytest.raises(
        MissingPrerequisite,
        match=r"weights of lpips_alex are missing: .* is not there; revisit weights pull lpips_alex$",
    ):
        file("lpips_alex")
    reason = why_missing(["lpips_alex"])
    assert reason and reason.startswith(("torch is not installed: pip install", "weights of lpips_alex are missing"))


@pytest.mark.parametrize("name", ["perceptual", "small", "paper"])
def test_sets_add_lpips_to_lite(name: str):
    roles = load_roles(name)
    assert roles["perceptual_distance"].id == "torch.lpips_alex"
    assert roles["frame_fidelity"].id == "lite.fidelity"
    assert "perceptual_distance" not in load_roles("lite")


@pytest.mark.parametrize("chosen", ["lite", "perceptual"])
def test_a_run_without_the_network_loses_only_lpips(chosen, make_clip, tmp_path: Path, revisit, monkeypatch):
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "nowhere"))
    make_clip(tmp_path / "v/a.mp4")
    make_clip(tmp_path / "v/truth.mp4", seed=1)
    line = {"id": "a", "model": "m", "video": "a.mp4", "reference": "truth.mp4"}
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps(line))
    asked = ("-m", "psnr", "-m", "lpips", "--set", chosen, "--workers", 0, "--json", "--no-report")
    if chosen != "lite":  # nothing of the set is left
        told = revisit("eval", "v", *asked, check=3).stderr
        assert "cannot run here" in told and ("weights pull lpips_alex" in told or "pip install" in told)
        return
    summary = json.loads(revisit("eval", "v", *asked).stdout)
    scores = summary["models"]["m"]["scores"]
    assert scores["psnr"]["n"] == 1 and not summary["failed"]
    words = "needs perceptual_distance, which no observer in the set 'lite' makes; --set small or paper has one"
    assert summary["not_asked"] == {"lpips": words}  # nobody can observe it, so it is not asked


@pytest.mark.long
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
    assert lpips(made([])) == Unscored(NO_FRAMES)
    late = lpips_returned(made([0.1]), CasePhases(1, 5, "given"))
    assert isinstance(late, Unscored) and late.kind == "no_overlap"
    with pytest.raises(InvalidEvidence, match="between -1e-6 and inf"):
        lpips(made([0.1, -0.2]))
    with pytest.raises(InvalidEvidence, match="it must be"):
        lpips(replace(made([0.1]), distance=np.ones(2)))


@pytest.mark.parametrize(("asked", "half"), [("", None), ("float16", "float16")])
def test_half_precision_is_for_those_who_ask(asked, half, monkeypatch):
    """With the real weights it moves a clip's distance by 1e-4, a hundred times the tolerance on the card."""
    pytest.importorskip("torch", reason="needs torch")
    from revisit.networks import runtime

    told = []

    def stopped(half: str | None = None) -> None:
        told.append(half)
        raise InterruptedError

    monkeypatch.setenv("REVISIT_PRECISION", asked)
    monkeypatch.setattr(runtime, "inference", stopped)
    with pytest.raises(InterruptedError):
        OBSERVERS["torch.lpips_alex"].fn(None)
    assert told == [half]
