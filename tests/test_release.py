"""What a release is made of agrees with itself; `make release-check` tries the real thing."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from revisit import __version__

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict:
    tomllib = pytest.importorskip("tomllib", reason="needs tomllib, which came with Python 3.11")
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", line)[0].lower().replace("_", "-") for line in requirements}


def test_the_lock_has_digests_for_every_dependency_and_no_address(project):
    extras = project["project"]["optional-dependencies"]
    for file, wanted in (("base.txt", []), ("dev.txt", extras["dev"])):
        text = (PROJECT / "requirements" / file).read_text(encoding="utf-8")
        packages = re.findall(
            r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==[^\\]+\\\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)", text
        )
        locked = {name.lower() for name, _ in packages}
        assert len(packages) == len(re.findall(r"(?m)^\w", text)) and "://" not in text
        assert names(project["project"]["dependencies"] + wanted) <= locked, file


def test_licences_of_all_libraries_are_told(project):
    spec = importlib.util.spec_from_file_location("make_cards", PROJECT / "docs/make_cards.py")
    assert spec and spec.loader
    cards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cards)
    told = {name for group in cards.LIBRARIES.values() for name in group}
    extras = project["project"]["optional-dependencies"]
    users = [line for extra, lines in extras.items() if extra not in ("dev", "docs", "release") for line in lines]
    assert names(project["project"]["dependencies"] + users) == told


def test_versions_agree(project):
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__ and citation["license"] == project["project"]["license"]
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    [ruff] = [line for line in project["project"]["optional-dependencies"]["dev"] if line.startswith("ruff==")]
    assert f"rev: v{ruff.removeprefix('ruff==')}\n" in hooks


def test_the_workflow_runs_the_two_commands_on_both_systems():
    jobs = yaml.safe_load((PROJECT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["os"]) == {"ubuntu-latest", "macos-latest"}
    assert {"make demo", "make test"} <= {step.get("run") for step in jobs["test"]["steps"]}
    for form in (PROJECT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        assert {"name", "description", "body"} <= set(yaml.safe_load(form.read_text(encoding="utf-8"))), form.name
