"""The rooms of the house: which folder may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src/revisit"
ALLOWED = {
    "core": set(),
    "evidence": {"core"},
    "media": {"core"},
    "weights": {"core", "media"},
    "networks": {"core", "weights"},
    "geometry": {"core"},
    "stats": {"core"},
    "results": {"core", "media", "stats"},
    "control": {"core", "geometry", "media"},
    "observers": {"core", "evidence", "media", "geometry", "weights", "networks"},
    "judges": {"core", "evidence", "media", "stats"},
    "metrics": {"core", "evidence", "geometry"},
    "diagnosis": {"core", "evidence", "stats", "results"},
    "suites": {"core", "evidence", "media", "control", "judges", "metrics", "stats", "diagnosis", "results"},
    "engine": {
        "core",
        "weights",
        "networks",
        "evidence",
        "media",
        "geometry",
        "observers",
        "judges",
        "metrics",
        "suites",
        "stats",
        "diagnosis",
        "results",
    },
    "posing": {"core", "evidence", "media", "geometry", "observers", "engine"},
    "report": {"core", "evidence", "media", "stats", "engine", "catalog", "diagnosis", "results"},
    "worlds": {"core", "evidence", "media", "geometry"},
    "audit": {
        "core",
        "evidence",
        "media",
        "geometry",
        "networks",
        "observers",
        "metrics",
        "suites",
        "stats",
        "diagnosis",
        "engine",
        "report",
        "results",
        "worlds",
    },
}
HEAVY = {"cv2", "av", "torch", "transformers", "onnxruntime", "scipy", "skimage"}


def imports(path: Path, only_top: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if only_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_what_it_may(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    if room not in ALLOWED:
        return
    used = {name.split(".")[1] for name in imports(path) if name.startswith("revisit.")}
    assert used - {room} <= ALLOWED[room], f"{room}/ may not import {sorted(used - {room} - ALLOWED[room])}"


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "suites").glob("*/*.py")), ids=lambda path: "/".join(path.parts[-2:])
)
def test_suites_do_not_import_each_other(path: Path) -> None:
    folders = {entry.name for entry in (PACKAGE / "suites").iterdir() if entry.is_dir()} - {path.parent.name}
    used = {name.split(".")[2] for name in imports(path) if name.startswith("revisit.suites.")}
    assert not used & folders


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    if path.name == "worker.py":
        return  # a program of its own
    parts = path.relative_to(PACKAGE).parts
    definitions = parts[0] == "networks" and parts[-1] not in ("__init__.py", "runtime.py", "spread.py")
    allowed = {"torch"} if definitions else set()  # a network's definition is imported when it is wanted
    assert not {name.split(".")[0] for name in imports(path, only_top=True)} & (HEAVY - allowed)


@pytest.mark.parametrize("path", sorted((PACKAGE / "metrics").rglob("*.py")), ids=lambda path: path.name)
def test_metrics_are_pure(path: Path) -> None:
    used = {name.split(".")[0] for name in imports(path)}
    assert not used & (HEAVY | {"os", "pathlib", "subprocess", "io", "random", "time"})
