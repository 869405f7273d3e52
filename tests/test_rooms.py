"""The rooms of the house: which folder may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src/revisit"
ALLOWED = {
    "core": set(),
    "evidence": {"core"},
    "media": {"core"},
    "weights": {"core", "media", "http_client"},
    "networks": {"core", "weights"},
    "geometry": {"core"},
    "stats": {"core"},
    "datasets": {"core", "media", "control"},
    "results": {"core", "media", "geometry", "stats", "diagnosis"},
    "control": {"core", "geometry", "media"},
    "observers": {"core", "evidence", "media", "geometry", "weights", "networks"},
    "servers": {"core", "media", "http_client"},
    "judges": {"core", "evidence", "media", "stats", "servers"},
    "metrics": {"core", "evidence", "geometry"},
    "diagnosis": {"core", "evidence", "stats"},
    "suites": {
        "core",
        "evidence",
        "media",
        "geometry",
        "datasets",
        "control",
        "judges",
        "servers",
        "metrics",
        "stats",
        "diagnosis",
        "results",
    },
    "engine": {
        "core",
        "weights",
        "networks",
        "evidence",
        "media",
        "geometry",
        "observers",
        "judges",
        "stats",
        "diagnosis",
        "results",
    },
    "monitor": {"core", "evidence", "media", "networks", "engine", "results", "report"},
    "runs": {"core", "media", "networks", "observers", "results", "engine"},
    "posing": {"core", "evidence", "media", "geometry", "observers", "engine"},
    "preflight": {"core", "evidence", "media", "geometry", "control"},
    "report": {"core", "evidence", "media", "stats", "engine", "diagnosis", "results", "runs", "web"},
    "web": {"core", "media"},
    "labels": {
        "core",
        "media",
        "stats",
        "results",
        "diagnosis",
        "geometry",
        "report",
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
        "stats",
        "diagnosis",
        "metrics",
        "engine",
        "labels",
        "report",
        "results",
        "web",
        "worlds",
    },
}
# Files of a suite's folder that live on the floor of another room, by the beginning of their name or of their folder's.
FLOORS = {
    "evidence": "evidence",
    "observers": "observers",
    "metrics": "metrics",
    "questions": "judges",
    "imports": "observers",
    "world": "worlds",
}
ANYTHING = ("commands", "api")  # may import everything, as cli/ does
KNOWN = ("mbench.py",)  # the public path of MBench's API
HEAVY = {
    "httpx",
    "cv2",
    "av",
    "torch",
    "transformers",
    "onnxruntime",
    "scipy",
    "skimage",
    "starlette",
    "uvicorn",
    "psycopg",
    "matplotlib",
}


def within(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a statement, at any depth; expressions, which are most of a module, hold no imports."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from within(statement)


def names(statements: Iterable[ast.AST]) -> Iterator[str]:
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """What a module imports at its top, and anywhere."""
    tree = tree_of(path)
    return frozenset(names(tree.body)), frozenset(names(within(tree)))


def imports(path: Path, only_top: bool = False) -> frozenset[str]:
    top, anywhere = imported(path)
    return top if only_top else anywhere


MODULES = sorted(PACKAGE.rglob("*.py"))


def part(name: str) -> str:
    """The part of a suite's folder that a file, or a folder of files, belongs to: `metrics` of metrics_camera."""
    parts = (part for part in (*FLOORS, *ANYTHING) if name == part or name.startswith(f"{part}_"))
    return next(parts, "")


def part_of(path: Path) -> str:
    """The part of a suite's folder that a module belongs to; nothing outside of suites."""
    room, *inside = path.relative_to(PACKAGE).with_suffix("").parts
    return part(inside[1]) if room == "suites" and len(inside) > 1 else ""


@pytest.mark.fast
def test_a_room_imports_only_what_it_may() -> None:
    guilty = {}
    for path in MODULES:
        inside = part_of(path)
        room = FLOORS.get(inside, path.relative_to(PACKAGE).parts[0])
        if room in ALLOWED and inside not in ANYTHING:
            used = {name.split(".")[1] for name in imports(path) if name.startswith("revisit.")}
            home = path.relative_to(PACKAGE).parts[0]
            guilty[path.relative_to(PACKAGE).as_posix()] = used - {room, home, "_version"} - ALLOWED[room]
    assert not {name: rooms for name, rooms in guilty.items() if rooms}


def test_a_file_on_another_floor_imports_only_what_its_room_may_from_its_suite() -> None:
    guilty = {}
    for path in MODULES:
        inside = part_of(path)
        if inside in FLOORS:
            floor = FLOORS[inside]
            own = [name.split(".")[3:] for name in imports(path) if name.startswith("revisit.suites.")]
            guilty[path.relative_to(PACKAGE).as_posix()] = {
                ".".join(n) for n in own if not n or FLOORS.get(part(n[0])) not in {floor, *ALLOWED[floor]}
            }
    assert not {name: used for name, used in guilty.items() if used}


def test_only_commands_and_the_shell_are_above_the_engine() -> None:
    """What everybody else reads of a suite does not need its commands."""
    for path in MODULES:
        used = {".".join(name.split(".")[1:]) for name in imports(path) if name.startswith("revisit.suites.")}
        above = {name for name in used if part([*name.split("."), "", ""][2]) in ANYTHING}
        assert not above or part_of(path) in ANYTHING or len(path.relative_to(PACKAGE).parts) == 1, (path, above)


def test_suites_do_not_import_each_other() -> None:
    folders = {entry.name for entry in (PACKAGE / "suites").iterdir() if entry.is_dir()}
    for path in (PACKAGE / "suites").glob("*/**/*.py"):
        used = {name.split(".")[2] for name in imports(path) if name.startswith("revisit.suites.")}
        assert not used & (folders - {path.relative_to(PACKAGE).parts[1]}), path


def test_nobody_else_imports_a_suite() -> None:
    """A further benchmark is a folder more: rooms and verbs find all of them by what these register."""
    for path in MODULES:
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith("suites/") and place not in KNOWN:
            assert not any(f"{name}.".startswith("revisit.suites.") for name in imports(path)), place


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    for path in MODULES:
        if path.name == "worker.py":
            continue  # a program of its own
        parts = path.relative_to(PACKAGE).parts
        definitions = parts[0] == "networks" and parts[-1] not in ("__init__.py", "runtime.py", "spread.py")
        allowed = {"torch"} if definitions else set()  # a network's definition is imported when it is wanted
        assert not {name.split(".")[0] for name in imports(path, only_top=True)} & (HEAVY - allowed), path


def test_metrics_are_pure() -> None:
    for path in MODULES:
        if path.relative_to(PACKAGE).parts[0] != "metrics" and part_of(path) != "metrics":
            continue
        used = {name.split(".")[0] for name in imports(path)}
        assert not used & (HEAVY | {"os", "pathlib", "subprocess", "io", "random", "time"}), path


def names_with_members(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Modules and their members that statements import."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported_modules() -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports anywhere, also where only type checkers do.

    Of a package's `__init__.py` what runs counts: for type checkers it lists what its members have.
    """
    modules = {module_name(path): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        graph[module] = set()
        tree = tree_of(path)
        statements = tree.body if path.name == "__init__.py" else within(tree)
        for name in names_with_members(statements):
            while name and name not in modules:
                name = name.rpartition(".")[0]
            graph[module] |= {name} - {"", module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of nodes each of which leads to all others of its set (strongly connected components of two or more)."""
    rest = {node: set(ends) for node, ends in graph.items()}
    while leaves := [node for node, ends in rest.items() if not ends & rest.keys()]:
        for node in leaves:
            del rest[node]
    reach: dict[str, set[str]] = {}
    for node in rest:
        todo, reach[node] = [node], set()
        while todo:
            fresh = (rest[todo.pop()] & rest.keys()) - reach[node]
            reach[node] |= fresh
            todo += fresh
    found = {frozenset(end for end in reach[node] if node in reach[end]) for node in rest}
    return sorted((set(circle) for circle in found if circle), key=sorted)


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert not circles(imported_modules())


def test_rooms_do_not_import_each_other_in_circles() -> None:
    """A folder, and a file beside the folders, is a room, which stands above all that it imports."""
    rooms: dict[str, set[str]] = {}
    for module, used in imported_modules().items():
        room = module.split(".")[1] if "." in module else "revisit"
        others = {name.split(".")[1] if "." in name else "revisit" for name in used}
        rooms.setdefault(room, set()).update(others - {room})
    assert not circles(rooms)


def test_a_public_class_name_is_used_once() -> None:
    classes = [node.name for path in MODULES for node in ast.parse(path.read_text()).body if type(node) is ast.ClassDef]
    assert not [name for name, count in Counter(classes).items() if count > 1 and not name.startswith("_")]


def code_lines_of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature to the end, without the docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0)


def test_no_function_is_longer_than_a_screen() -> None:
    """80 lines; of a command the body counts, because its options are its help."""
    long = []
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = code_lines_of_function(node) - (node.body[0].lineno - node.lineno if is_command(node) else 0)
                long += [f"{module_name(path)}.{node.name}: {body}"] if body > 80 else []
    assert not long


def is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether parameters have options of typer as their defaults."""
    return any("typer.Option" in ast.unparse(default) for default in node.args.defaults)
