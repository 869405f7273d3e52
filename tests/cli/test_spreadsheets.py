"""Names that a spreadsheet would take for formulas: texts in every table, and the same when they are read back."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import revisit
from revisit.cli.main import app
from revisit.media import text_files
from revisit.media.text_files import csv_dict_reader, csv_text, write_xlsx
from tests.media.test_media_folder import fill

SIGNS = "=+-@\t\r"  # a cell that begins with one of them may be a formula, says OWASP
MODEL = "=cmd|' !A0'"
NAMES = [
    MODEL,
    "+SUM(1)",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "'=x",
    "''-1",
    "-5 apples",
    "wan",
    "it's",
    "",
    "–",
    "'quoted'",
]


def formulas(text: str) -> list[str]:
    """Cells that a spreadsheet may compute, as the csv module reads the file; numbers and rows of them are none."""
    found = []
    for cell in (cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row):
        try:
            for number in re.split("[ ,;]+", cell):
                float(number)
        except ValueError:
            if cell[:1] in tuple(SIGNS) and cell not in ("-", "+"):
                found.append(cell)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two models, one of them with the name of a formula."""
    root = tmp_path_factory.mktemp("formulas")
    for model in (MODEL, "wan"):
        for count, scene in enumerate(("@kitchen", "hall"), 4):
            (root / "clips" / model).mkdir(parents=True, exist_ok=True)
            fill(root / "clips" / model / scene, [f"{k}.png" for k in range(count)])
    revisit.evaluate(root / "clips", metrics=["flicker"], out=root / "run")
    return root / "run"


@pytest.mark.slow
def test_a_run_has_no_formula_and_keeps_its_names(run: Path) -> None:
    results = revisit.load(run)
    text = results.to_csv()
    assert formulas(text) == []
    rows = list(csv_dict_reader(text))
    assert {(row["model"], row["sample"]) for row in rows} == {
        (model, scene) for model in (MODEL, "wan") for scene in ("@kitchen", "hall")
    }
    assert [float(row["value"]) for row in rows] == [record.value for record in results.records]
    assert "\nhall@wan#0,wan,hall," in text  # ordinary names as they were


@pytest.mark.slow
@pytest.mark.parametrize("command", ["table", "leaderboard"])
def test_tables_for_papers_have_no_formula(run: Path, tmp_path: Path, command: str) -> None:
    made = tmp_path / "made.csv"
    more = ["-m", "flicker"] if command == "table" else []
    done = CliRunner().invoke(app, [command, str(run), *more, "--format", "csv", "--out", str(made)])
    assert done.exit_code == 0, done.output
    text = made.read_text(encoding="utf-8")
    assert formulas(text) == []
    assert {row["model"] for row in csv_dict_reader(text)} == {MODEL, "wan"}


def test_every_name_comes_back(tmp_path: Path) -> None:
    text = csv_text(["name", "=head"], [[name, name] for name in NAMES])
    assert formulas(text) == []
    assert [(row["name"], row["=head"]) for row in csv_dict_reader(text)] == [(name, name) for name in NAMES]


@example(["-1 1"])
@given(st.lists(st.text(alphabet="'=+-@\t\r\n ab1.,\"", max_size=6), min_size=1, max_size=4))
def test_any_name_comes_back(names: list[str]) -> None:
    text = csv_text(["name", "end"], [[name, "x"] for name in names])
    assert formulas(text) == []
    assert [row["name"] for row in csv_dict_reader(text)] == names


def test_numbers_and_ordinary_names_stay_as_they_are() -> None:
    cells = [
        -1.5,
        "-1.5",
        "+3",
        "-1e-07",
        "-inf",
        "nan",
        "-12%",
        "-",
        "-1.0 2.0 -3.5",
        "a=b",
        "wan-2.1",
        "x@y",
        None,
        7,
    ]
    plain = io.StringIO(newline="")
    csv.writer(plain).writerows([["cell"], *([cell] for cell in cells)])
    assert csv_text(["cell"], [[cell] for cell in cells]) == plain.getvalue()


def test_a_workbook_holds_texts(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    names = [name for name in NAMES if name and name.isprintable()]
    write_xlsx(tmp_path / "a.xlsx", ["id", "value"], [[name, -1.5] for name in names])
    page = load_workbook(tmp_path / "a.xlsx").active
    assert page is not None
    rows = list(page.iter_rows(min_row=2))
    assert [row[0].value for row in rows] == names
    assert {row[0].data_type for row in rows} == {"s"} and {row[1].data_type for row in rows} == {"n"}


def test_no_other_file_writes_csv() -> None:
    """One place writes CSV and xlsx, so that one rule holds for all."""
    source = Path(text_files.__file__).parents[1]
    writers = ("csv.writer(", "DictWriter(", "Workbook(", ".to_csv(", ".to_excel(")
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if any(writer in path.read_text(encoding="utf-8") for writer in writers)
    }
    assert found == {"media/text_files.py", "results/results.py"}  # the second calls the function of that name


def test_names_in_latex_start_no_option_of_a_row() -> None:
    from revisit.report.leaderboards import _escape_latex

    assert _escape_latex("[2pt] a*b <x>|") == r"{[}2pt{]} a{*}b \textless{}x\textgreater{}\textbar{}"
