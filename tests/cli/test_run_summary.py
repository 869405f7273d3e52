"""What `revisit eval` prints of a run: words that stand in it once, and clips as people call them."""

from __future__ import annotations

from revisit.cli.run_summary import print_suite_table
from revisit.core.cases import clip_title
from revisit.results.cells import make_score_cell
from revisit.results.display import FEW_SCENES


def test_that_scenes_are_too_few_stands_once_below_the_table(capsys) -> None:
    few = make_score_cell([(0.98, "a"), (0.97, "b"), (0.99, "c")], 3, (0, 1), True).as_json()
    other = make_score_cell([(0.1, "a"), (0.9, "b"), (0.5, "c")], 3, (0, 1), True).as_json()
    rows = [{"name": "one", "cells": [few, other]}, {"name": "two", "cells": [few, other]}]
    print_suite_table({"title": "Scores", "note": "of clips", "columns": ["x", "y"], "rows": rows})
    *table, note = capsys.readouterr().out.splitlines()
    assert note == f"* {FEW_SCENES}: no interval" and not any(FEW_SCENES in line for line in table)
    assert sum("0.98 (3/3)*" in line for line in table) == 2
    print_suite_table({"title": "Scores", "note": "", "columns": ["y"], "rows": [{"name": "one", "cells": [other]}]})
    assert "*" not in capsys.readouterr().out


def test_clips_are_called_by_model_and_scene() -> None:
    assert clip_title("Zen@Garden@wan#0") == "wan, Zen@Garden" and clip_title("a/b@wan#3") == "wan, a/b, seed 3"
    assert clip_title("hall@truth") == "truth, hall"
    for other in ("manifest.jsonl line 2", "a@m#0 (b.mp4)", ""):
        assert clip_title(other) == other


def test_a_clip_that_cannot_be_read_is_one_sentence_and_no_table_of_dashes(revisit, tmp_path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/a.mp4").touch()
    done = revisit("eval", "v", "--no-report", "--workers", 0, check=1)
    assert done.stdout == "no clip could be scored\n"
    assert "failed: v, a: a.mp4: the file is empty" in done.stderr and "not asked" not in done.stderr
    assert "Flicker" in revisit("show", "runs/v", "--all").stdout
