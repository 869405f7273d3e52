"""The Dockerfile: what it copies is what `make wheels` writes, and its commands install and run without an index.

No image is built here; its commands are run in a plain environment instead.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "docker/Dockerfile"


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_it_copies_what_make_wheels_writes_and_nothing_else() -> None:
    copied = [rest.split()[0] for word, rest in instructions() if word == "COPY"]
    assert copied == ["dist/wheels"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--wheel-dir dist/wheels" in makefile and "--dest dist/wheels" in makefile
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert ignored[-2:] == ["*", "!dist/wheels"]
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert installs and all("--no-index --find-links /wheels" in line for line in installs)
    assert dict(instructions())["ENTRYPOINT"] == '["revisit"]' and dict(instructions())["USER"] == "revisit"
    base = re.search(r"python:(\d+)\.(\d+)", dict(instructions())["ARG"] + DOCKERFILE.read_text(encoding="utf-8"))
    assert base is not None and (int(base[1]), int(base[2])) >= (3, 10)


@pytest.mark.long
def test_its_commands_install_and_run_without_an_index(tmp_path: Path) -> None:
    """`make wheels` needs an index, and what follows must not; skipped where there is none."""
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)],
        [*pip, "download", "--quiet", "--dest", str(wheels), "--find-links", str(wheels), "revisit-bench[]"],
    ):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"needs a package index: {made.stderr.strip().splitlines()[-1]}")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = {**clean, "PIP_NO_INDEX": "1", "EXTRAS": ""}
    for word, rest in instructions():
        if word == "RUN" and "useradd" not in rest:
            line = rest.replace("/wheels", str(wheels)).replace("/opt/revisit", str(tmp_path / "opt"))
            line = line.replace("python -m venv", f"{shlex.quote(sys.executable)} -m venv")
            done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    listed = subprocess.run(
        [tmp_path / "opt/bin/revisit", "list", "suites"], env=environment, capture_output=True, text=True, check=True
    )
    assert "folder" in listed.stdout
