"""A benchmark is one folder: outside of it, no line of the package names one of those that were added last."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src/revisit"
TEXT = {".py", ".yaml", ".yml", ".json", ".toml", ".js", ".css", ".html", ".txt", ".md", ".lock"}


@pytest.mark.parametrize("name", ["worldmark", "wbench"])
def test_no_line_outside_its_folder_names_it(name: str) -> None:
    own = PACKAGE / "suites" / name
    files = [path for path in PACKAGE.rglob("*") if path.suffix in TEXT and own not in path.parents]
    assert len(files) > 400, "the package was looked at"
    naming = {
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if name in line.lower().replace("-", "").replace("_", "").replace(" ", "")
    }
    assert not naming


@pytest.mark.parametrize("name", ["worldmark", "wbench"])
def test_its_folder_registers_it(name: str) -> None:
    if not (PACKAGE / "suites" / name).is_dir():
        pytest.skip(f"there is no folder suites/{name} in this checkout")
    from revisit.core import METRICS, SUITES

    suite = SUITES[name]
    assert suite.metrics() and all(METRICS[id].fn.__module__.startswith("revisit.") for id in suite.metrics())
    assert suite.published is not None and suite.published(False)


def test_no_card_says_a_thing_twice() -> None:
    """YAML takes the last of two, in silence."""
    for path in (PACKAGE / "suites").glob("*/card.yaml"):
        keys = [line.partition(":")[0] for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isalpha()]
        assert len(keys) == len(set(keys)), path
