"""The rooms of the house: which folder may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
    "web": {"core", "media"},
    "labels": {
        "core",
        "media",
        "stats",
        "results",
        "diagnosis",
        "evidence",
        "judges",
        "metrics",
        "suites",
        "engine",
        "web",
    },
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
HEAVY = {"cv2", "av", "torch", "transformers", "onnxruntime", "scipy", "skimage", "starlette", "uvicorn", "psycopg"}


def imports(path: Path, only_top: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if only_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_a_room_imports_only_what_it_may() -> None:
    guilty = {}
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0]
        if room in ALLOWED:
            used = {name.split(".")[1] for name in imports(path) if name.startswith("revisit.")}
            guilty[path.relative_to(PACKAGE).as_posix()] = used - {room} - ALLOWED[room]
    assert not {name: rooms for name, rooms in guilty.items() if rooms}


def test_suites_do_not_import_each_other() -> None:
    folders = {entry.name for entry in (PACKAGE / "suites").iterdir() if entry.is_dir()}
    for path in (PACKAGE / "suites").glob("*/*.py"):
        used = {name.split(".")[2] for name in imports(path) if name.startswith("revisit.suites.")}
        assert not used & (folders - {path.parent.name}), path


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    for path in MODULES:
        if path.name == "worker.py":
            continue  # a program of its own
        parts = path.relative_to(PACKAGE).parts
        definitions = parts[0] == "networks" and parts[-1] not in ("__init__.py", "runtime.py", "spread.py")
        allowed = {"torch"} if definitions else set()  # a network's definition is imported when it is wanted
        assert not {name.split(".")[0] for name in imports(path, only_top=True)} & (HEAVY - allowed), path


def test_metrics_are_pure() -> None:
    for path in (PACKAGE / "metrics").rglob("*.py"):
        used = {name.split(".")[0] for name in imports(path)}
        assert not used & (HEAVY | {"os", "pathlib", "subprocess", "io", "random", "time"}), path
