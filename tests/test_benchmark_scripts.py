"""The scripts in benchmarks/: what they wrote into pages is what they stored, and what they count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmark_scripts import script
from tests.conftest import PROJECT


def test_the_tables_of_the_paper_set_are_those_of_its_figures() -> None:
    paper_set = script("paper_set")
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


@pytest.mark.parametrize("name", ["claims", "distance_failures", "distances", "gaps", "stopping", "truth_table"])
def test_figures_go_where_out_says_and_never_into_the_current_folder(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit):
        script(name).main()
    assert "--out" in capsys.readouterr().out
    if name in ("claims", "gaps"):
        assert script(name).OUT.parent == PROJECT / "build"  # which git ignores


def test_draws_of_another_folder_are_not_gone_on_with(tmp_path: Path) -> None:
    distances = script("distances")
    stored = next(cell for cell in distances.cells() if (distances.HERE / cell.file_name).is_file())
    assert distances.stored_sums(stored, distances.HERE).draws and not distances.stored_sums(stored, tmp_path).draws
