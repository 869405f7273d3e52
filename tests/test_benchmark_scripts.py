"""The scripts in benchmarks/: what they import is there, and what they wrote into pages is what they stored."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.benchmark_scripts import script

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))


@cache
def names_of(module: str) -> frozenset[str] | None:
    """Names that a module of ours defines or imports, without importing it; None where there is no such module."""
    path = ROOT / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return None
    names = {child.stem for child in path.glob("*.py")} | {child.name for child in path.glob("*/")}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(one.asname or one.name).partition(".")[0] for one in node.names}
    return frozenset(names)


def missing_imports(path: Path) -> list[str]:
    """Imports from our own package that would fail."""
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "revisit":
            continue
        names = names_of(str(node.module))
        for one in node.names:
            lazy = names is not None and "__getattr__" in names
            if names is None or (one.name not in names and not lazy):
                missing.append(f"{path.relative_to(ROOT)}:{node.lineno}: from {node.module} import {one.name}")
    return missing


def test_what_benchmarks_import_is_there() -> None:
    assert not [line for path in SCRIPTS for line in missing_imports(path)]


def test_a_missing_name_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    names_of.cache_clear()
    (tmp_path / "src/revisit").mkdir(parents=True)
    (tmp_path / "src/revisit/one.py").write_text("def here(): ...\n", encoding="utf-8")
    path = tmp_path / "script.py"
    path.write_text("from revisit.one import here, gone\nfrom revisit.other import x\n", encoding="utf-8")
    found = [line.partition(": ")[2] for line in missing_imports(path)]
    names_of.cache_clear()
    assert found == ["from revisit.one import gone", "from revisit.other import x"]


def test_the_tables_of_the_paper_set_are_those_of_its_figures() -> None:
    spec = importlib.util.spec_from_file_location("paper_set", ROOT / "benchmarks/paper_set.py")
    assert spec is not None and spec.loader is not None
    paper_set = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper_set)
    figures = json.loads(paper_set.FILE.read_text(encoding="utf-8"))
    page = paper_set.PAGE.read_text(encoding="utf-8").split(paper_set.MARK)
    assert page[1].strip() == paper_set.tables(figures).strip(), "python benchmarks/paper_set.py --page"


def test_code_is_counted_without_docstrings_comments_and_blank_lines() -> None:
    text = """'''Module.

Two paragraphs.
'''

import os  # counts

# does not
TEXT = '''one
two'''


def f(
    x,
):
    "Docstring."
    return x
"""
    assert script("code_lines").code_lines(text) == 7  # import, two of the string, three of the signature, return
    assert script("code_lines").statements(text) == 4


def test_an_answer_that_differs_under_the_same_key_is_no_change_of_version(tmp_path: Path) -> None:
    def write(run: str, *rows: tuple[str, str, float]) -> Path:
        lines = (
            {"case": "a@m", "metric": metric, "version": 1, "key": key, "status": "scored", "score": score}
            for metric, key, score in rows
        )
        (tmp_path / run).mkdir()
        (tmp_path / run / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return tmp_path / run

    before = write("before", ("psnr", "k1", 30.0), ("ssim", "k2", 0.5), ("lpips", "k3", 0.1), ("mse", "k4", 1.0))
    after = write("after", ("psnr", "k1", 30.0), ("ssim", "k2", 0.6), ("lpips", "new", 0.2), ("flicker", "k5", 0.0))
    comparison = script("same_numbers").Comparison()
    assert comparison.add(before, after) == {
        "same": 1, "differ, same key": 1, "differ, another key": 1, "only before": 1, "only after": 1,
    }  # fmt: skip
    assert comparison.unexplained == ["a@m: ssim: score was 0.5 and is 0.6"]
    with pytest.raises(SystemExit, match="no answers"):
        comparison.add(before, write("empty"))
