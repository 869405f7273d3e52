"""The names of `revisit` that users and plugins rely on: documented, with examples that run, and all a plugin needs."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import doctest
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import revisit
from revisit.core import (
    DERIVED,
    EVIDENCE,
    GATES,
    METRICS,
    OBSERVERS,
    SUITES,
    RevisitError,
    UsageError,
    import_registering_modules,
)
from tests.conftest import PROJECT
from tests.media.test_media_folder import fill

BOUNDARY = {"revisit", "revisit.evidence", "revisit.benchmark"}
NO_OBJECTS = {"ANY_SET", "Array", "FrameStream", "PairStream"}  # constants and aliases of types
MODULES = {"benchmark", "evidence"}
PUBLIC = {name: getattr(revisit, name) for name in revisit.__all__ if name not in NO_OBJECTS | MODULES}
METHODS = {
    f"Results.{name}": method
    for name, method in inspect.getmembers(revisit.Results, inspect.isfunction)
    if not name.startswith("_")
}
DOCUMENTED = {**PUBLIC, **METHODS}


def frames_in(folder: Path, count: int = 3) -> None:
    """A folder with so many pictures."""
    folder.mkdir(parents=True)
    fill(folder, [f"{number}.png" for number in range(count)])


@pytest.fixture
def registries() -> Iterator[None]:
    """Forgets afterwards what was registered meanwhile."""
    import_registering_modules()
    kept = [(one._things, dict(one._things)) for one in (DERIVED, EVIDENCE, GATES, METRICS, OBSERVERS, SUITES)]
    yield
    for things, before in kept:
        things.clear()
        things.update(before)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_has_a_numpy_docstring(name: str) -> None:
    thing = DOCUMENTED[name]
    text = inspect.getdoc(thing) or ""
    first, _, rest = text.partition("\n")
    assert len(first) > 15 and first[-1] in ".?", f"{name}: the first line is a sentence"
    assert not rest or rest.startswith("\n"), f"{name}: the first line stands alone"
    documented = set(re.findall(r"(?m)^([A-Z]\w+)\n-{3,}$", text))
    if inspect.isfunction(thing):
        parameters = [one for one in inspect.signature(thing).parameters if one != "self"]
        assert "Parameters" in documented or not parameters, f"{name}: say what {', '.join(parameters)} are"
        for parameter in parameters:
            assert describes(text, parameter), f"{name}: {parameter} is not described"
        returns = inspect.signature(thing).return_annotation
        assert "Returns" in documented or returns in (None, "None"), f"{name}: say what it returns"
    elif not issubclass(thing, Exception) and thing is not revisit.Results:
        assert documented & {"Parameters", "Attributes"}, f"{name}: say what its fields are"
        for field in [*getattr(thing, "__dataclass_fields__", ()), *getattr(thing, "__struct_fields__", ())]:
            assert describes(text, field), f"{name}: {field} is not described"
    if name in PUBLIC:
        assert "Examples" in documented and ">>> " in text, f"{name}: show an example"


def describes(text: str, name: str) -> bool:
    """Whether a docstring has this parameter or field, alone or among others of one line."""
    return bool(re.search(rf"(?m)^\*{{0,2}}(\w+, )*{name}(, \w+)*$", text))


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=False)
    found = [test for name, thing in DOCUMENTED.items() for test in finder.find(thing, name, globs={})]
    return [test for test in found if test.examples]


@pytest.fixture(scope="module")
def names_of_examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What examples may use without making it."""
    folder = tmp_path_factory.mktemp("examples")
    for count, clip in enumerate(("a", "b"), 3):
        frames_in(folder / "videos/mine" / clip, count)
    noise = np.random.default_rng(0).integers(0, 256, (2, 8, 32, 48, 3), dtype=np.uint8)
    results = revisit.score({"calm": noise[0] // 8, "wild": noise[1]}, metrics=["flicker", "motion_amount"])
    return {
        "__name__": "examples", "revisit": revisit, "np": np, "Path": Path, "dataclass": dataclasses.dataclass,
        "Annotated": Annotated, "videos": folder / "videos", "results": results,
    }  # fmt: skip


@pytest.mark.parametrize("example", examples(), ids=lambda test: test.name)
def test_examples_of_docstrings_run(
    example: doctest.DocTest, names_of_examples: dict[str, Any], registries: None, tmp_path: Path
) -> None:
    example.globs = {**names_of_examples, "run": tmp_path / "run"}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)


def test_examples_call_only_what_there_is() -> None:
    """Also those of modules that are not public, which are not run: two had outlived the names of their functions."""
    given = {*vars(builtins), "revisit", "np", "Path", "dataclass", "Annotated", "videos", "results", "run"}
    stale = []
    for path in sorted((PROJECT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_module = {name for node in tree.body for name in names_bound_by(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                examples = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
                used = [ast.parse(example.source) for example in examples]
                bound = {name for one in used for part in ast.walk(one) for name in names_bound_by(part)}
                calls = [part.func for one in used for part in ast.walk(one) if isinstance(part, ast.Call)]
                unknown = {part.id for part in calls if isinstance(part, ast.Name)} - bound - of_module - given
                stale += [f"{path.relative_to(PROJECT)}, {name}" for name in sorted(unknown)]
    assert not stale, stale


def names_bound_by(node: ast.AST) -> set[str]:
    """The names that a statement or a part of it gives to something."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if isinstance(node, ast.arg):
        return {node.arg}
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()


def imported(source: str) -> set[str]:
    """Modules of Revisit that a text imports, and what it reaches as an attribute of `revisit`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module}
            if node.module == "revisit":
                found |= {f"revisit:{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "revisit":
            found |= {f"revisit:{node.attr}"}
    return {name for name in found if name.split(".")[0].split(":")[0] == "revisit"}


def plugin_texts() -> Iterator[tuple[str, str]]:
    for path in sorted((PROJECT / "examples").rglob("*.py")):
        yield path.relative_to(PROJECT).as_posix(), path.read_text(encoding="utf-8")
    for page in ("own-metric.md", "python.md", "training.md"):
        text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
        for block in re.findall(r"(?ms)^```python[^\n]*\n(.*?)^```", text):
            yield f"docs/{page}", block


@pytest.mark.parametrize(("place", "text"), list(plugin_texts()))
def test_a_plugin_needs_nothing_else(place: str, text: str) -> None:
    for name in imported(text):
        module, _, member = name.partition(":")
        assert module in BOUNDARY, f"{place} imports {module}"
        assert not member or member in revisit.__all__ or member == "__version__", f"{place} uses revisit.{member}"


def test_all_kinds_of_evidence_are_in_the_package() -> None:
    import_registering_modules()
    kinds = {kind for kind in EVIDENCE.values() if kind.__module__.startswith("revisit.evidence.")}
    assert {kind.__name__ for kind in kinds} == set(revisit.evidence.__all__)
    assert {getattr(revisit.evidence, kind.__name__) for kind in kinds} == kinds
    with pytest.raises(AttributeError, match="no kind of evidence called 'LabStat'"):
        _ = revisit.evidence.LabStat


@pytest.mark.parametrize(("old", "new"), [("Verdict", "GateResult"), ("psnr", "frame_psnr"), ("mse", "frame_mse")])
def test_old_names_are_told_of(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"revisit.{old} is called revisit.{new} now"):
        assert getattr(revisit, old) is getattr(revisit, new)


def test_a_wrong_call_is_a_value_error() -> None:
    assert issubclass(UsageError, ValueError) and issubclass(UsageError, RevisitError)
    assert revisit.UsageError is UsageError


def test_evaluate_takes_what_the_command_takes() -> None:
    from revisit.cli.eval_ import eval_

    called = {"metric": "metrics", "root": "roots", "option": "options", "param": "params", "quiet": "progress"}
    called |= {"observer_set": "set"}
    apart = {"ctx", "all", "show_all", "json", "rescore"}  # of printing, or `revisit.rescore`
    command = {called.get(name, name) for name in inspect.signature(eval_).parameters if name not in apart}
    assert command == set(inspect.signature(revisit.evaluate).parameters)


def test_settings_of_networks_last_as_long_as_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REVISIT_DEVICE", raising=False)
    monkeypatch.setenv("REVISIT_BATCH", "3")
    frames_in(tmp_path / "videos/mine/a")
    revisit.evaluate(
        tmp_path / "videos", metrics=["flicker"], out=tmp_path / "run", workers=0, device="cpu", batch=2,
        precision="float32", limits="frames=100",
    )  # fmt: skip
    import os

    assert os.environ["REVISIT_BATCH"] == "3" and "REVISIT_DEVICE" not in os.environ
    with pytest.raises(ValueError, match="choose cpu"):
        revisit.evaluate(tmp_path / "videos", out=tmp_path / "other", device="tpu")
    assert "REVISIT_DEVICE" not in os.environ


def test_a_run_is_scored_again(tmp_path: Path, registries: None) -> None:
    factor = 1.0

    @revisit.metric
    def scaled(lab: revisit.evidence.LabStats) -> float:
        """Lightness."""
        return factor * float(lab.mean[0, 0])

    frames_in(tmp_path / "videos/mine/a")
    first = revisit.evaluate(tmp_path / "videos", metrics=["scaled"], out=tmp_path / "run", workers=0)
    factor = 2.0
    again = revisit.rescore(tmp_path / "run")
    assert again.records[0].value == 2 * (first.records[0].value or 0)
    assert revisit.load(tmp_path / "run").records[0].value == again.records[0].value


def test_measures_and_metrics_agree_on_the_frames_that_metrics_compare() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 256, (24, 40, 56, 3), dtype=np.uint8)
    noise = rng.integers(-9, 10, truth.shape) * np.linspace(0, 2, 24)[:, None, None, None]
    clip = np.clip(truth + noise, 0, 255).astype(np.uint8)
    for name in ("psnr", "ssim"):
        measure = getattr(revisit, f"frame_{name}")
        slow = revisit.score(clip, reference=truth, metrics=[name], fps=8)  # the metric then compares every frame
        assert slow.score("clip@model", name) == pytest.approx(measure(clip, truth), abs=1e-9)
        fast = revisit.score(clip, reference=truth, metrics=[name], fps=24)  # and here every third: two names
        assert fast.score("clip@model", name) != pytest.approx(measure(clip, truth), abs=1e-9)


def test_no_repr_prints_pixels() -> None:
    frames = np.full((6, 32, 48, 3), 137, np.uint8)
    results = revisit.score(frames, reference=frames, metrics=["psnr", "flicker"])
    lab = revisit.observe(frames, "lite.lab")
    shown = [results, results.cases, results.records, lab, results.series("clip@model", "psnr")]
    shown += [revisit.Frame(0, 0.0, frames[0], ""), revisit.Batch(np.arange(6), np.arange(6.0), frames)]
    shown += [revisit.ClipInfo(48, 32, 6, 24.0, np.arange(6) / 24)]
    for thing in shown:
        assert "array(" not in repr(thing) and "137" not in repr(thing) and len(repr(thing)) < 1500, repr(thing)
    assert "6 frames of 48x32" in repr(results.cases[0])


def test_results_are_a_table_in_a_notebook() -> None:
    frames = np.full((6, 32, 48, 3), 137, np.uint8)
    page = revisit.score({"a": frames, "b": frames // 2}, model="<mine>", metrics=["flicker"])._repr_html_()
    assert page.count("<tr>") == 2 and "flicker" in page and "&lt;mine&gt;" in page and "<mine>" not in page


# Metrics of frames


FRAMES = np.stack([np.full((32, 48, 3), level, np.uint8) for level in (10, 20, 30, 40)])


def test_a_number_of_frames_is_a_score(registries: None) -> None:
    @revisit.frame_metric
    def brightness(frames: np.ndarray, reference: np.ndarray) -> float:
        """Mean difference of lightness, 0 to 255."""
        return float(np.abs(frames.mean() - reference.mean()))

    assert (brightness.title, brightness.version, brightness.unit, brightness.range) == (
        "Brightness", 1, "", (None, None),
    )  # fmt: skip
    results = revisit.score(FRAMES + 5, reference=FRAMES)
    assert results.score("clip@model", "brightness") == 5 and "brightness" in results.metrics
    alone = revisit.score(FRAMES, metrics=["brightness"]).records[0]
    assert alone.reason is not None and alone.reason.kind == "no_reference"


@pytest.mark.parametrize("set", ["lite", "small"])
def test_values_of_frames_are_a_series(registries: None, set: str) -> None:
    @revisit.frame_metric(id="mine.level", unit="levels", higher_is_better=True, frames=revisit.every(at_most=2))
    def level(frames: np.ndarray, *, plus: float = 0.0) -> np.ndarray:
        """Mean level of each frame."""
        return np.asarray(frames.mean((1, 2, 3)) + plus)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the networks of the set are missing
        results = revisit.score(FRAMES, metrics=["mine.level"], set=set, params={"mine.level": {"plus": 1.0}})
    assert results.score("clip@model", "mine.level") == 26
    series = results.series("clip@model", "mine.level")
    assert series is not None and series["frame"].tolist() == [0, 3] and series["value"].tolist() == [11, 41]


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ("0.5", "failed", "return a number, or an array with a number for each of the 4 frames"),
        (np.zeros(3), "failed", r"ndarray of shape \(3,\)"),
        (None, "failed", "return a number"),
        (float("nan"), "failed", "returned nan"),
        (np.array([1, np.nan, 1, 1]), "failed", "returned nan"),
        (revisit.Unscored("too_short", "four frames are few"), "unscored", "four frames are few"),
    ],
    ids=["text", "length", "none", "nan", "nan in a frame", "unscored"],
)
def test_what_is_no_number_is_told(registries: None, answer: Any, status: str, words: str) -> None:
    @revisit.frame_metric
    def odd(frames: np.ndarray) -> Any:
        """Something else."""
        return answer

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = revisit.score({"a": FRAMES, "b": FRAMES + 1}, metrics=["odd"])
    assert {record.status for record in results.records} == {status}
    assert re.search(words, results.records[0].sentence)
    assert len(told) == (status == "failed")  # once, for both clips


FACTORY = '''
import revisit

def make_metric(factor):
    @revisit.frame_metric(id="scaled_level")
    def scaled(frames):
        """Mean level."""
        return frames.mean() * factor
'''


@pytest.mark.slow
def test_a_metric_that_a_function_registered_is_observed_where_it_was_called(
    tmp_path: Path, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers can import its module, which registers nothing."""
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_factory.py").write_text(FACTORY)
    importlib.import_module("own_factory").make_metric(2.0)
    for name in ("a", "b"):
        frames_in(tmp_path / "clips" / name, 2)
    asked = {"metrics": ["scaled_level", "flicker"], "out": tmp_path / "run"}
    results = revisit.evaluate(tmp_path / "clips", workers=2, **asked)
    assert (
        not results.failures
        and results.scalars() == revisit.evaluate(tmp_path / "clips", workers=0, fresh=True, **asked).scalars()
    )


FATAL = """
import os
import revisit

@revisit.frame_metric
def fatal(frames):
    os.kill(os.getpid(), 35)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")
def test_a_signal_without_a_name_costs_the_clip_and_not_the_run(
    tmp_path: Path, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_fatal.py").write_text(FATAL)
    importlib.import_module("own_fatal")
    frames_in(tmp_path / "clips/a", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = revisit.evaluate(tmp_path / "clips", metrics=["fatal"], out=tmp_path / "run", workers=1)
    assert "was killed by signal 35" in results.failures[0].sentence


LEVEL = 1.0


def test_values_from_around_a_frame_metric_are_part_of_its_address(
    registries: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the function stays the same, and its evidence of earlier must not."""
    frames_in(tmp_path / "clips/a", 2)

    def score_with(factor: float) -> float | None:
        @revisit.frame_metric
        def scaled(frames: np.ndarray) -> float:
            """Mean level."""
            return float(frames.mean() * factor + LEVEL)

        results = revisit.evaluate(tmp_path / "clips", metrics=["scaled"], out=tmp_path / "run", workers=0)
        return results.score(results.cases[0].id, "scaled")

    once, twice = score_with(1.0), score_with(2.0)
    assert once is not None and twice == pytest.approx(2 * once - 1)
    monkeypatch.setitem(globals(), "LEVEL", 3.0)
    assert score_with(1.0) == pytest.approx(once + 2)


def test_what_a_script_defines_is_observed_in_this_process(
    registries: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revisit.engine.request import Request

    def level(frames: np.ndarray) -> float:
        """Mean level."""
        return float(frames.mean())

    def cluster(*_: object, **__: object) -> None:
        raise AssertionError("no other machine can import it")

    level.__module__ = "__main__"
    revisit.frame_metric(level)
    frames_in(tmp_path / "clips/a", 2)
    request = Request.from_options(tmp_path / "clips", metrics=["level"])
    assert not request.run(tmp_path / "run", executor=cluster, workers=2).results.failures


def test_the_rate_of_a_folder_is_what_is_given(tmp_path: Path) -> None:
    import cv2

    for number, picture in enumerate(np.random.default_rng(0).integers(0, 256, (24, 32, 48, 3), dtype=np.uint8)):
        cv2.imwrite(str(tmp_path / f"{number:02}.png"), picture)
    assert [len(revisit.observe(tmp_path, "lite.thumbnails", fps=fps).index) for fps in (8, 24)] == [24, 9]


def test_a_frame_metric_takes_frames_and_perhaps_a_reference() -> None:
    with pytest.raises(TypeError, match="a function of frames, or of frames and reference"):
        revisit.frame_metric(lambda frames, reference, mask: 0.0)


def test_a_metric_names_its_evidence_by_its_annotations(registries: None) -> None:
    @revisit.metric
    def mean_lightness(lab: revisit.evidence.LabStats, case: revisit.Case, *, scale: float = 1.0) -> float:
        """Mean lightness."""
        return scale * float(lab.mean[:, 0].mean())

    assert mean_lightness.needs == (revisit.evidence.LabStats, revisit.Case)
    assert (mean_lightness.title, dict(mean_lightness.params)) == ("Mean lightness", {"scale": 1.0})
    assert revisit.score(FRAMES, metrics=["mean_lightness"]).records[0].scored
    with pytest.raises(TypeError, match="annotate 'lab' with a kind of evidence"):
        revisit.metric(lambda lab: 0.0)


MODULE = '''
import revisit

@revisit.frame_metric(higher_is_better=False)
def darkness(frames, reference):
    """How much darker than the reference."""
    return (reference.astype(float) - frames).mean((1, 2, 3)){change}
'''


@pytest.mark.slow
def test_a_frame_metric_of_a_module_runs_in_workers_and_again_when_edited(
    tmp_path: Path, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    frames_in(tmp_path / "clips/a", 2)
    frames_in(tmp_path / "clips/b", 3)
    rows = [f'{{"id": "{name}", "video": "clips/{name}", "reference": "clips/{name}"}}\n' for name in ("a", "b")]
    (tmp_path / "manifest.jsonl").write_text("".join(rows))
    values = []
    for change in ("", " + 1"):
        (tmp_path / "own_darkness.py").write_text(MODULE.format(change=change))
        sys.modules.pop("own_darkness", None)
        importlib.invalidate_caches()
        import linecache

        linecache.clearcache()
        importlib.import_module("own_darkness")
        results = revisit.evaluate(
            tmp_path / "manifest.jsonl", metrics=["darkness"], out=tmp_path / "run", workers=2, truth=False
        )
        values.append([record.value for record in results.records])
    assert values == [[0.0, 0.0], [1.0, 1.0]]


def test_a_name_that_does_not_exist_leads_to_those_spelt_alike() -> None:
    with pytest.raises(AttributeError, match=r"nothing called 'eval'; did you mean evaluate\b"):
        _ = revisit.eval


def test_names_of_benchmarks_lead_somewhere() -> None:
    for name in revisit.benchmark.__all__:
        assert getattr(revisit.benchmark, name) is not None
    with pytest.raises(AttributeError, match="has nothing called 'Bord'"):
        _ = revisit.benchmark.Bord
