"""Compiled networks: other batches and failures run as they are, and numbers are the same."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from revisit.networks import compiled, preprocessing


class Network:
    def __init__(self) -> None:
        self.layer = torch.nn.Linear(5, 3)
        self.calls = 0

    def step(self, x, y):
        self.calls += not torch.compiler.is_compiling()
        return (self.layer(x) + y).relu()


class NormalisedNetwork(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(5, 3), torch.nn.LayerNorm(3)

    def step(self, x, y):
        return self.norm(self.layer(x)) + y


@pytest.fixture
def compiler(monkeypatch):
    """A compiler for batches of four from the second on, with the part of torch.compile that needs no C compiler."""
    monkeypatch.setattr(compiled, "_compiler", None)
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    compiled.enable_compilation(4, full_batches_before=1)
    return compiled._compiler


@pytest.mark.long
@torch.inference_mode()
def test_full_batches_are_compiled_and_say_the_same(compiler):
    network, x, y = Network(), torch.randn(4, 5), torch.randn(4, 3)
    first = compiled.run(network.step, x, y)
    assert network.calls == 1 and not compiler.made
    for _ in range(3):
        assert torch.equal(compiled.run(network.step, x, y), first)
    assert network.calls == 1, "the compiled form was not used"
    most = compiled.run(network.step, x[:3], y[:3])
    assert torch.equal(most, first[:3]) and network.calls == 1, "a batch that is nearly full is filled up"
    few = [compiled.run(network.step, x[:2], y[:2]) for _ in range(3)]
    assert torch.allclose(few[-1], first[:2], atol=1e-6) and network.calls == 4
    assert len(compiler.made) == 1, "only full batches are worth it"
    other = Network()
    for _ in range(3):
        compiled.run(other.step, x, y)
    assert other.calls == 1 and len(compiler.made) == 2


@pytest.mark.long
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@torch.inference_mode()
def test_recorded_steps_answer_each_batch_for_itself(monkeypatch):
    monkeypatch.setattr(compiled, "_compiler", None)
    compiled.enable_compilation(4, full_batches_before=1)
    network = Network()
    network.layer.cuda()
    batches = [(torch.randn(4, 5, device="cuda"), torch.randn(4, 3, device="cuda")) for _ in range(5)]
    found = [compiled.run(network.step, x, y) for x, y in batches]
    assert network.calls == 1
    for (x, y), answer in zip(batches, found, strict=True):
        assert torch.allclose(answer, network.step(x, y), atol=1e-6)
    assert torch.allclose(compiled.run(network.step, *(one[:3] for one in batches[0])), found[0][:3], atol=1e-6)


@torch.inference_mode()
def test_half_precision_is_that_of_the_caller(compiler):
    network, x, y = Network(), torch.randn(4, 5), torch.zeros(4, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen = [compiled.run(network.step, x, y) for _ in range(3)]
    assert {one.dtype for one in seen} == {torch.bfloat16} and torch.equal(seen[0], seen[2])


@torch.inference_mode()
def test_a_network_that_was_compiled_in_half_still_computes_in_full(compiler, monkeypatch):
    """Some observers want the same network in full precision, in the same process."""
    monkeypatch.setattr(torch, "compile", lambda step, **_: step)
    network, x, y = NormalisedNetwork(), torch.randn(4, 5), torch.randn(4, 3)
    expected = network.step(x, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = [compiled.run(network.step, x, y) for _ in range(3)]
    (step,) = compiler.made.values()
    assert step.__self__.layer.weight.dtype == torch.bfloat16, "converted once, not for each batch"
    assert step.__self__.norm.weight.dtype == torch.float32, "torch normalises in full precision"
    assert torch.equal(outputs[0], outputs[2])
    assert network.layer.weight.dtype == torch.float32 and torch.equal(network.step(x, y), expected)


@torch.inference_mode()
def test_what_cannot_be_compiled_runs_as_it_is(compiler, monkeypatch, capsys):
    monkeypatch.setattr(compiled, "BACKEND", "no_such_compiler")
    network, x, y = Network(), torch.randn(4, 5), torch.randn(4, 3)
    seen = [compiled.run(network.step, x, y) for _ in range(4)]
    assert torch.equal(seen[0], seen[3]) and network.calls == 4
    said = capsys.readouterr().err
    assert said.startswith("revisit: a network runs uncompiled, which is slower (") and said.count("\n") == 1


def test_nothing_is_compiled_unless_allowed(monkeypatch):
    monkeypatch.setattr(compiled, "_compiler", None)
    network = Network()
    compiled.run(network.step, torch.randn(64, 5), torch.randn(64, 3))
    assert network.calls == 1


def test_exact_numbers_are_not_compiled(monkeypatch):
    from revisit.networks import settings

    assert settings.compile_mode() == "auto"
    monkeypatch.setenv("REVISIT_PRECISION", "float32")
    assert settings.compile_mode() == "off"
    monkeypatch.delenv("REVISIT_PRECISION")
    monkeypatch.setenv("REVISIT_COMPILE", "off")
    assert settings.compile_mode() == "off"


@pytest.mark.parametrize("size", [(20, 31), (41, 64), (37, 31)])
@torch.inference_mode()
def test_compiled_resizing_gives_the_same_levels(compiler, size):
    shown = torch.randint(0, 256, (4, 37, 53, 3), dtype=torch.uint8).permute(0, 3, 1, 2)
    plain = preprocessing.resize_levels(shown, size)
    alone = [preprocessing.resize_levels(shown, size) for _ in range(2)][-1]
    network = Half(size)
    within = [compiled.run(network.step, shown) for _ in range(3)][-1]
    assert len(compiler.made) == 2 and network.calls == 1
    for found in (alone, 2 * within):
        assert found.shape == plain.shape and found.dtype == plain.dtype
        assert (found - plain).abs().max() <= 2 and (found != plain).float().mean() < 1e-3


class Half:
    def __init__(self, size) -> None:
        self.size, self.calls = size, 0

    def step(self, shown):
        self.calls += not torch.compiler.is_compiling()
        return preprocessing.resize_levels(shown, self.size) / 2
