"""Settings of networks: wrong ones are told before any work is done, by the name the user gave them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.networks import settings
from tests.conftest import Cli


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.NAMES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_asked_is_our_choice() -> None:
    settings.check_all_settings()
    assert (
        settings.requested_devices() == [] and settings.requested_batch_size() is None and settings.cpu_threads() == 1
    )
    assert settings.requested_precision() == "" and settings.process_of_networks() == "auto"


def test_what_was_asked_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(settings.NAMES, ("cuda:0, cuda:1", "float16", "7", "3", "host", "off", "on"), strict=True):
        monkeypatch.setenv(name, value)
    settings.check_all_settings()
    assert settings.requested_devices() == ["cuda:0", "cuda:1"] and settings.requested_precision() == "float16"
    assert (settings.requested_batch_size(), settings.cpu_threads(), settings.process_of_networks()) == (7, 3, "host")
    assert settings.compile_mode() == "off"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (settings.DEVICE, "gpu", "--device gpu .*choose cpu, cuda"),
        (settings.DEVICE, "cuda:x", "choose cpu"),
        (settings.DEVICE, "cpu,", "choose cpu"),
        (settings.PRECISION, "half", "--precision half .*float32, float16, bfloat16"),
        (settings.BATCH, "0", "--batch 0 .*a whole number of at least 1"),
        (settings.BATCH, "²", "a whole number of at least 1"),
        (settings.THREADS, "foo", "REVISIT_THREADS=foo: expected a whole number"),
        (settings.NETWORKS, "everywhere", "auto, host"),
        (settings.COMPILE, "perhaps", "REVISIT_COMPILE=perhaps: choose on, off or auto"),
        (settings.OPENVINO, "yes", "REVISIT_OPENVINO=yes: choose on, off or auto"),
    ],
)
def test_wrong_settings_are_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=words):
        settings.check_all_settings()


@pytest.mark.long
def test_the_command_refuses_them_before_it_looks_at_a_clip(
    make_clip: Callable[..., Path], revisit: Cli, tmp_path: Path
) -> None:
    make_clip(tmp_path / "clips/a.mp4")
    for option, value in (("--device", "gpu"), ("--precision", "half")):
        done = revisit("eval", "clips", option, value, "--out", "run", check=2)
        assert f"{option} {value}" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
    checks = json.loads(revisit("doctor", "--json", env={settings.DEVICE: "gpu"}, check=None).stdout)
    [said] = [check["finding"] for check in checks if check["name"] == "settings" and check["state"] == "bad"]
    assert "choose cpu, cuda" in said


def test_evidence_in_another_precision_has_another_address(
    small_weights: Path, make_clip: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="networks run on torch")
    from revisit.core import SUITES
    from revisit.engine.dependencies import ObserverSet
    from revisit.engine.plan import make_plan
    from revisit.observers.sets import load_roles

    make_clip(tmp_path / "clips/a.mp4")

    def keys() -> dict[str, str]:
        observers = ObserverSet("small", load_roles("small"))
        plan = make_plan(SUITES["folder"], tmp_path / "clips", observers, metrics=["wr_integrity", "motion_amount"])
        return {task.observer: key for key, (_, _, task) in plan.tasks.items()}

    default = keys()
    monkeypatch.setenv(settings.PRECISION, "float32")
    exact = keys()
    assert default.keys() == exact.keys() and {id for id in exact if exact[id] != default[id]} == {"small.integrity"}


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell leaves it that was told `export REVISIT_NETWORKS=`."""
    for name in settings.NAMES:
        monkeypatch.setenv(name, "")
    settings.check_all_settings()
    assert settings.process_of_networks() == "auto"
