"""Every `pip install` that the code or the documentation prints names what there is, and works as it is printed."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="needs tomllib, which came with Python 3.11")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
ELSEWHERE = {"s3fs"}  # of a cloud's bucket; nothing of ours needs it
PLACES = ("src", "docs", "examples", "README.md", "CONTRIBUTING.md")
HINT = re.compile(r"pip install ((?:-{1,2}[\w-]+ )*)('[^']+'|[\w.{}\[\]()>=<,-]+)")
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,{}()]+)\])?")


def packages() -> set[str]:
    """Names of what the project itself installs."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return {re.match(r"[\w.-]+", entry)[0] for entries in lists for entry in entries}  # type: ignore[index]


def hints() -> list[tuple[str, str, str]]:
    """(file, options, what is installed) of every hint."""
    found = []
    for place in PLACES:
        paths = [ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*"))
        for path in paths:
            if path.suffix in (".py", ".md", ".html", ".js", ".yaml", ".toml") and path != Path(__file__):
                text = path.read_text(encoding="utf-8")
                found += [(str(path.relative_to(ROOT)), one[1], one[2].strip("'")) for one in HINT.finditer(text)]
    return found


def extras_of_calls() -> set[str]:
    """Extras that calls of `needs` and `install_extra_command` put into the sentences with a placeholder."""
    names = {"annotate"}  # the default of `needs`
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if name in ("needs", "install_command") and isinstance(node, ast.Call):
                place = 1 if name == "needs" else 0
                names |= {str(arg.value) for arg in node.args[place : place + 1] if isinstance(arg, ast.Constant)}
    return names


def test_hints_name_extras_and_packages_that_there_are() -> None:
    found = hints()
    assert len(found) > 20, "the search itself is broken"
    for file, options, what in found:
        if what in ("{package}", "{PACKAGES.get(name,"):  # names of libraries, which the next test looks up
            continue
        if "--no-index" in options:  # from a folder of wheels; the test of the image installs from one
            continue
        read = REQUIREMENT.match(what)
        assert read is not None, (file, what)
        name, extras = read[1], set((read[2] or "").split(",")) - {""}
        if name in (PROJECT["name"], "."):
            assert extras <= EXTRAS | {"{extra}"}, (file, what)
            # It is installed from a clone, and an index may not have it: nothing may make pip look there.
            assert not options or name == ".", f"{file}: pip would look for {name} in an index"
        else:
            assert name in packages() | ELSEWHERE, (file, what)
    assert extras_of_calls() <= EXTRAS


def test_hints_with_placeholders_name_packages_of_ours() -> None:
    from revisit.engine import doctor

    names = [*doctor.LIBRARIES, "video decoders", "torch"]
    assert {doctor.PACKAGES.get(name, name) for name in names} <= packages()


def test_pip_itself_takes_them_as_printed() -> None:
    """Without an index: what is installed satisfies a hint; of an extra that is none it warns."""

    def ask(extra: str) -> subprocess.CompletedProcess[str]:
        words = shlex.split(f"pip install --dry-run --no-index '{PROJECT['name']}[{extra}]'")
        return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)

    told = ask("annotate")
    if "No module named pip" in told.stderr or "No matching distribution" in told.stderr:
        pytest.skip("needs pip, the project and its extra annotate installed")
    assert told.returncode == 0 and "does not provide" not in told.stderr
    assert "does not provide the extra 'nothing'" in ask("nothing").stderr


def test_all_extras_are_tried_together_when_versions_are_locked() -> None:
    text = (ROOT / "release" / "lock.py").read_text(encoding="utf-8")
    tried = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EXTRAS"
    )
    assert set(tried) == {name for name, packages in PROJECT["optional-dependencies"].items() if packages}
