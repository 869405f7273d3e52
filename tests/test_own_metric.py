"""Metrics that others write: a bare number is a score, what is no answer is that clip's failure, and typos are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revisit
from revisit.core import METRICS, RevisitError, UsageError
from revisit.evidence.appearance import LabStats
from revisit.results import Results
from tests.media.test_media_folder import fill

CLIPS = {name: np.full((4, 32, 48, 3), level, np.uint8) for name, level in (("dark", 40), ("light", 200))}


@pytest.fixture
def own() -> Iterator[Any]:
    """Registers functions of LabStats as metrics, and forgets them afterwards."""
    names: list[str] = []

    def register(name: str, fn: Any, **card: Any) -> str:
        id = f"mine.{name}"
        names.append(id)
        revisit.metric(
            id=id, version=1, title=name, unit="L*", range=(None, None), higher_is_better=True, needs=(LabStats,),
            suites=(), **card,
        )(fn)  # fmt: skip
        return id

    yield register
    for id in names:
        METRICS._things.pop(id, None)


def scored(*metrics: str) -> Results:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return revisit.score(CLIPS, metrics=[*metrics, "flicker"])


@pytest.mark.parametrize(
    "value",
    [1.5, 3, np.float32(2.25), np.float64(-1), np.int64(7), np.uint8(9), np.asarray(4.5)],
    ids=lambda value: type(value).__name__,
)
def test_a_bare_number_is_a_score(own: Any, value: Any) -> None:
    id = own("number", lambda lab: value)
    results = scored(id)
    for case in results.cases:
        record = results.answer(case, id)
        assert record is not None and record.status == "scored" and record.value == float(value)
        assert results.answer(case, "flicker").status == "scored"
    assert METRICS[id](None).value == float(value)  # called by hand, too


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (float("nan"), "returned nan (float)"),
        (np.float32("inf"), "returned inf (float32)"),
        (-(10**400), "returned -inf (int)"),
        (None, "returned None"),
        ("0.5", "returned a str"),
        (True, "returned a bool"),
        (np.bool_(True), "returned a bool"),
        (1 + 2j, "returned a complex"),
        (np.zeros(3), "returned a ndarray"),
        ([0.5], "returned a list"),
        ({"value": 1}, "returned a dict"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_score_is_the_failure_of_that_clip(own: Any, value: Any, named: str) -> None:
    id = own("odd", lambda lab: value if lab.mean[0, 0] < 50 else 1.0)
    results = scored(id)
    dark, light = results.cases
    failed = results.answer(dark, id)
    assert failed is not None and failed.status == "failed"
    assert failed.sentence.startswith(f"{id} {named}") and "return a" in failed.sentence
    assert results.score(light, id) == 1.0
    assert results.score(dark, "flicker") is not None
    cell = results.cell(id)
    assert (cell.n, cell.of, cell.failed) == (1, 2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: revisit.Score(1.0, units=[1, 2]),  # type: ignore[arg-type]
        lambda: revisit.Score(1.0, facts={"what": object()}),
        lambda: revisit.Score(1.0, facts=[1]),  # type: ignore[arg-type]
        lambda: revisit.Score(float("nan")),
        lambda: revisit.GateResult("open", "seen"),
    ],
    ids=["units", "facts", "list of facts", "nan", "verdict"],
)
def test_a_score_with_odd_parts_is_the_failure_of_that_clip(own: Any, answer: Any, tmp_path: Path) -> None:
    id = own("parts", lambda lab: answer())
    (tmp_path / "clips").mkdir()
    fill(tmp_path / "clips" / "a", ["0.png", "1.png", "2.png"])
    with pytest.warns(UserWarning, match=id):
        results = revisit.evaluate(tmp_path / "clips", metrics=[id, "flicker"], out=tmp_path / "run", workers=0)
    statuses = {record.question: record.status for record in results.records}
    assert statuses == {id: "failed", "flicker": "scored"}


def test_a_metric_that_raises_is_counted_and_told_once(own: Any) -> None:
    def broken(lab: LabStats) -> float:
        raise KeyError("no such thing")

    id = own("broken", broken)
    with pytest.warns(UserWarning) as told:
        results = revisit.score(CLIPS, metrics=[id, "flicker"])
    (warning,) = told
    assert str(warning.message).startswith(f"{id} failed on 2 of 2 clips") and "KeyError" in str(warning.message)
    assert warning.filename == __file__
    assert [results.answer(case, id).status for case in results.cases] == ["failed", "failed"]
    cell = results.mean(id)["model"]
    assert (cell.mean, cell.n, cell.of, cell.failed) == (None, 0, 2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scalars = results.scalars()  # was told already
        results.where(sample="dark").scalars()
    assert not any(id in name for name in scalars) and any("flicker" in name for name in scalars)


def test_a_metric_that_raises_alone_is_told(own: Any) -> None:
    id = own("alone", lambda lab: lab.no_such_field)
    with pytest.warns(UserWarning, match=rf"{id} failed on 2 of 2 clips.*AttributeError"):
        results = revisit.score(CLIPS, metrics=[id])
    assert results.scalars() == {}


@pytest.mark.slow
def test_a_loaded_run_tells_of_its_failures_with_its_scalars(own: Any, tmp_path: Path) -> None:
    def broken(lab: LabStats) -> float:
        if len(lab.index) < 4:
            raise RuntimeError("too few")
        return 2.0

    id = own("sometimes", broken)
    (tmp_path / "clips").mkdir()
    fill(tmp_path / "clips" / "short", ["0.png", "1.png"])
    fill(tmp_path / "clips" / "long", [f"{k}.png" for k in range(5)])
    with pytest.warns(UserWarning, match="failed on 1 of 2 clips"):
        revisit.evaluate(tmp_path / "clips", metrics=[id, "flicker"], out=tmp_path / "run", workers=0)
    loaded = revisit.load(tmp_path / "run")
    with pytest.warns(UserWarning, match=rf"{id} failed on 1 of 2 clips.*RuntimeError: too few"):
        scalars = loaded.scalars()
    assert [value for name, value in scalars.items() if id in name] == [2.0]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["models"]["clips"]["scores"][id]["n"], summary["models"]["clips"]["scores"][id]["failed"]) == (1, 1)


@pytest.mark.slow
def test_the_command_tells_of_a_failing_metric_in_one_line(tmp_path: Path) -> None:
    """A metric of an installed plugin that fails on every clip."""
    plugin = tmp_path / "plugin"
    (plugin / "falling-1.dist-info").mkdir(parents=True)
    (plugin / "falling-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: falling\nVersion: 1\n")
    (plugin / "falling-1.dist-info" / "entry_points.txt").write_text("[revisit.plugins]\nfalling = falling\n")
    (plugin / "falling.py").write_text(
        "import revisit\nfrom revisit.evidence.appearance import LabStats\n"
        "@revisit.metric(id='mine.falls', version=1, title='Falls', unit='', range=(None, None),\n"
        "    higher_is_better=True, needs=(LabStats,), suites=('folder',))\n"
        "def falls(lab: LabStats):\n    'Never anything.'\n    raise RuntimeError('down')\n"
    )
    (tmp_path / "clips").mkdir()
    for count, name in enumerate(("a", "b", "c"), 3):
        fill(tmp_path / "clips" / name, [f"{k}.png" for k in range(count)])
    env = {**os.environ, "PYTHONPATH": f"{plugin}:{Path(revisit.__file__).parents[1]}"}
    command = [sys.executable, "-m", "revisit", "eval", str(tmp_path / "clips"), "-m", "mine.falls", "-m", "flicker"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True, env=env, check=False
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "RuntimeError: down" in line]
    assert len(said) == 1 and "and 2 more clips" in said[0], done.stdout + done.stderr
    assert "RuntimeError: down (falling.py:7)" in said[0]
    assert "Traceback" not in done.stderr and done.returncode == 1
    rows = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert len(rows) == 6


@pytest.mark.parametrize(
    "ask",
    [
        lambda results: results.mean("flickr"),
        lambda results: results.mean("flickr", common=True),
        lambda results: results.cell("flickr"),
        lambda results: results.paired("flickr", "model", "model"),
        lambda results: results.ranks("flickr"),
        lambda results: results.scores("flickr"),
        lambda results: results.records_for("flickr"),
        lambda results: results.score("dark@model", "flickr"),
        lambda results: results.answer("dark@model", "flickr"),
        lambda results: results.series("dark@model", "flickr"),
        lambda results: results.common("flickr"),
        lambda results: results.where(sample="nothing").mean("flickr"),
    ],
)
def test_an_unknown_metric_is_told_with_the_nearest(ask: Any) -> None:
    results = scored()
    with pytest.raises(ValueError, match=r"no metric called 'flickr'; did you mean flicker\?") as caught:
        ask(results)
    assert isinstance(caught.value, UsageError) and isinstance(caught.value, RevisitError)


def test_an_unknown_model_of_a_pair_is_told() -> None:
    with pytest.raises(ValueError, match="no model called 'modle'; these results have model"):
        scored().paired("flicker", "modle", "model")


def test_a_known_metric_that_was_not_asked_has_no_scores() -> None:
    cell = scored().cell("psnr")
    assert cell.mean is None and cell.n == 0
