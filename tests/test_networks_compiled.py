"""Compiling in the background: other batches and failures run as they are, and numbers are the same."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

import torch

from revisit.networks import compiled


class Network:
    def __init__(self) -> None:
        self.layer = torch.nn.Linear(5, 3)
        self.calls = 0

    def step(self, x, y):
        self.calls += not torch.compiler.is_compiling()
        return (self.layer(x) + y).relu()


@pytest.fixture
def compiler(monkeypatch):
    """A compiler for batches of four, with the part of torch.compile that needs no C compiler."""
    monkeypatch.setattr(compiled, "_compiler", None)
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    compiled.allow(4)
    return compiled._compiler


def until_known(compiler, count):
    end = time.monotonic() + 120
    while sum(made is not None for made in compiler.known.values()) < count:
        assert time.monotonic() < end, "nothing was compiled"
        time.sleep(0.05)


@torch.inference_mode()
def test_full_batches_are_compiled_and_say_the_same(compiler):
    network, x, y = Network(), torch.randn(4, 5), torch.randn(4, 3)
    first = compiled.run(network.step, x, y)
    until_known(compiler, 1)
    before = network.calls
    assert torch.equal(compiled.run(network.step, x, y), first)
    assert network.calls == before, "the compiled form was not used"
    few = compiled.run(network.step, x[:3], y[:3])
    assert torch.allclose(few, first[:3], atol=1e-6) and network.calls == before + 1
    assert len(compiler.known) == 1, "only full batches are worth it"
    compiled.run(Network().step, x, y)
    until_known(compiler, 2)


@torch.inference_mode()
def test_half_precision_is_that_of_the_caller(compiler):
    network, x, y = Network(), torch.randn(4, 5), torch.zeros(4, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = compiled.run(network.step, x, y)
        until_known(compiler, 1)
        again = compiled.run(network.step, x, y)
    assert first.dtype == again.dtype == torch.bfloat16 and torch.equal(first, again)


@torch.inference_mode()
def test_what_cannot_be_compiled_runs_as_it_is(compiler, monkeypatch, capsys):
    monkeypatch.setattr(compiled, "BACKEND", "no_such_compiler")
    network, x, y = Network(), torch.randn(4, 5), torch.randn(4, 3)
    first = compiled.run(network.step, x, y)
    compiler.thread.join(60)
    assert torch.equal(compiled.run(network.step, x, y), first)
    said = capsys.readouterr().err
    assert said.startswith("revisit: networks run uncompiled, which is slower (") and said.count("\n") == 1


def test_nothing_is_compiled_unless_allowed(monkeypatch):
    monkeypatch.setattr(compiled, "_compiler", None)
    network = Network()
    compiled.run(network.step, torch.randn(64, 5), torch.randn(64, 3))
    assert network.calls == 1


def test_exact_numbers_are_not_compiled(monkeypatch):
    from revisit.networks import settings

    assert settings.compiles()
    monkeypatch.setenv("REVISIT_PRECISION", "float32")
    assert not settings.compiles()
    monkeypatch.delenv("REVISIT_PRECISION")
    monkeypatch.setenv("REVISIT_COMPILE", "off")
    assert not settings.compiles()
