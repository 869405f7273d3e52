"""-m with commas, typos that get the nearest id, and --json in every command that prints something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from revisit.cli.console import print_table
from revisit.cli.main import app
from tests.run_directories import make_scenes

KNOWN = "return_consistency"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("names")
    return str(make_scenes(folder, ["alpha", "beta"], ["one", "two", "three"], pictures=False))


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    "words",
    [
        ("table", "RUN"), ("compare", "RUN"), ("figure", "scatter", "RUN"), ("report", "RUN", "--by", "model"),
        ("trend", "RUN", "--by", "order"),
    ],
)  # fmt: skip
def test_a_typo_gets_the_nearest_id_and_is_not_called_missing(run: str, words: tuple[str, ...]) -> None:
    command = [run if word == "RUN" else word for word in words]
    wrong = call(*command, "-m", f"{KNOWN},return_consistencyy")
    assert wrong.exit_code == 2 or isinstance(wrong.exception, Exception)
    said = f"{wrong.output}{wrong.exception}"
    assert "did you mean return_consistency" in said and "not installed" not in said
    absent = call(*command, "-m", "psnr")
    assert "psnr was not asked in" in f"{absent.output}{absent.exception}"


def test_commas_name_several(run: str) -> None:
    made = call("table", run, "-m", f"{KNOWN},{KNOWN}", "--json")
    assert [column["key"] for column in json.loads(made.stdout)[0]["columns"]] == ["posed", KNOWN]
    assert json.loads(call("compare", run, "-m", f" {KNOWN} ,", "--json").stdout)["deltas"][0]["metric"] == KNOWN


def commands(group: Any, context: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from commands(command, inner, (*words, name))
        else:
            yield " ".join((*words, name)), command


def test_every_command_prints_json() -> None:
    root = get_command(app)
    found = dict(commands(root, root.make_context("revisit", [], resilient_parsing=True)))
    assert len(found) > 50
    without = {name for name, one in found.items() if not any("--json" in param.opts for param in one.params)}
    assert without == set()


def test_json_of_files_and_runs(run: str, tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    listed = json.loads(call("view", run, run, "--json").stdout)
    assert [(one["models"], one["clips"], one["suite"]) for one in listed] == [("alpha, beta", 6, "folder")] * 2
    page = tmp_path / "b.html"
    assert call("leaderboard", run, "--format", "html", "--out", str(page)).exit_code == 0 and page.is_file()
    sheet = page.with_suffix(".csv")  # without --format a file is what its ending says
    assert call("leaderboard", run, "--out", str(sheet)).exit_code == 0 and "|" not in sheet.read_text()


def test_names_in_the_head_of_a_table_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Comparisons have the names of models in their heads."""
    print_table(["metric", "wan [red]x[/red]", "a[/b]"], [["PSNR", "[i]1", "2"]])
    head, *_, row = capsys.readouterr().out.strip().splitlines()
    assert "wan [red]x[/red]" in head and "a[/b]" in head and "[i]1" in row
