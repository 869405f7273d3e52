"""A run is not replaced in silence, and its folder is no folder of clips."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import SUITES, UsageError
from revisit.engine.request import Request, recognise_suite, rescore_run_folder
from revisit.media import encode_mp4
from revisit.results.run import Run


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Two models with a clip each, and two folders of truth beside them."""
    for number, name in enumerate(("week/one/a", "week/two/a", "gt/a", "flat/a")):
        path = tmp_path / f"{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(number)
        encode_mp4(
            path, [np.kron(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8), np.ones((6, 6, 1), np.uint8))] * 3, 8
        )
    return tmp_path / "week"


def scored(source: Path, out: Path, *, warned: list[str] | None = None, fresh: bool = False, **options: object) -> Run:
    settings = {"metrics": ["psnr"], **options}
    heard = [] if warned is None else warned
    return Request.from_options(source, **settings).run(out, warned=heard.append, fresh=fresh, workers=0)


def test_a_run_with_another_truth_is_not_replaced(clips: Path, tmp_path: Path):
    out, truth = tmp_path / "run", tmp_path / "gt"
    scored(clips, out, reference=truth)
    before = (out / "summary.json").read_bytes()
    with pytest.raises(UsageError, match=rf"holds a run with --reference {truth}, and this call has no --reference"):
        scored(clips, out)
    with pytest.raises(UsageError, match="2 of its 2 clips would be compared with another truth or none; use the f"):
        scored(clips, out, reference=tmp_path / "flat")
    assert (out / "summary.json").read_bytes() == before
    heard: list[str] = []
    scored(clips, out, reference=truth, warned=heard)
    assert not heard and (out / "summary.json").read_bytes() == before
    moved = shutil.copytree(truth, tmp_path / "moved")  # the same truth elsewhere
    scored(clips, out, reference=moved, warned=heard)
    assert not heard
    scored(clips, out, fresh=True)
    with pytest.raises(UsageError, match=r"holds a run with no --reference, .* use the former to go on with that run"):
        scored(clips, out, reference=truth)


def test_a_run_that_is_read_otherwise_is_not_replaced(clips: Path, tmp_path: Path):
    scored(clips, tmp_path / "run")
    with pytest.raises(UsageError, match="2 of its 2 clips would be read otherwise"):
        scored(clips, tmp_path / "run", layout="{scene}/{model}.mp4")


def test_a_manifest_that_names_clips_otherwise_says_that_it_replaces_answers(clips: Path, tmp_path: Path):
    out, heard = tmp_path / "run", list[str]()
    scored(clips, out, metrics=["flicker"])
    lines = [{"id": "one", "model": "a", "video": "one/a.mp4"}, {"id": "a", "model": "two", "video": "two/a.mp4"}]
    (clips / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scored(clips, out, metrics=["flicker"], warned=heard)
    assert heard == [
        f"{out} holds answers of another reading: 1 of its 2 clips are called otherwise now (a@one#0 is one@a#0), and "
        "their answers are replaced; another --out keeps both"
    ]


def test_answers_that_are_replaced_are_told_and_growth_is_not(clips: Path, tmp_path: Path):
    out = tmp_path / "run"
    heard: list[str] = []
    scored(clips, out, metrics=["flicker"])
    scored(clips, out, metrics=["flicker", "psnr"], warned=heard)
    shutil.copyfile(tmp_path / "flat/a.mp4", clips / "one/b.mp4")
    scored(clips, out, metrics=["flicker", "psnr"], warned=heard)
    assert not heard
    scored(clips, out, metrics=["flicker"], warned=heard)
    (sentence,) = heard
    assert sentence == (
        f"{out} was made with -m flicker,psnr (now flicker): 1 of 2 questions left out; the earlier command brings "
        "them back from the cache, and another --out keeps both"
    )


def test_a_run_does_not_write_among_the_clips(clips: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"is the source itself, .* such as runs/week"):
        scored(clips, clips)
    with pytest.raises(UsageError, match="is a folder of the source"):
        scored(clips, clips / "one")
    assert sorted(path.name for path in clips.rglob("*")) == ["a.mp4", "a.mp4", "one", "two"]


def test_a_run_in_a_new_folder_of_the_source_is_not_read_as_clips(clips: Path):
    revisit.evaluate(clips, metrics=["flicker"], out=clips / "runs/week", workers=0)
    again = revisit.evaluate(clips, metrics=["flicker"], out=clips / "runs/week", workers=0)
    assert [case.id for case in again.cases] == ["a@one#0", "a@two#0"]
    assert any("runs/week" in remark for remark in Run(clips / "runs/week").plan["remarks"])


def test_a_run_is_scored_again_from_another_folder(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Options that are paths hold from everywhere, also where the command named them from its own folder."""
    monkeypatch.chdir(tmp_path)
    first = scored(clips, tmp_path / "run", options=["reference=gt"])
    keys = [record.key for record in first.results.records]
    monkeypatch.chdir(clips)
    again = rescore_run_folder(tmp_path / "run")
    assert [record.key for record in again.results.records] == keys and again.results.scores("psnr")
    assert again.facts["request"]["options"] == [f"reference={tmp_path / 'gt'}"]


def test_options_that_are_paths_are_known_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kind = re.compile(r"(a |your own )?(folders?|file|CSV|JSON|YAML|sheet)\b", re.IGNORECASE)
    for suite in SUITES.values():
        paths = {name for name, meaning in suite.options.items() if kind.match(meaning)}
        assert paths == set(suite.card.get("paths") or ()), suite.id
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one,two").mkdir()
    given = {"artifacts": "da3, /masks", "questions": "one,two", "models": "a"}
    assert SUITES["mbench"].with_absolute_paths(given) == {
        "artifacts": f"{tmp_path}/da3,/masks", "questions": f"{tmp_path}/one,two", "models": "a",
    }  # fmt: skip


def test_a_run_is_no_source(clips: Path, tmp_path: Path):
    scored(clips, tmp_path / "run")
    with pytest.raises(
        UsageError, match=r"is a run, no folder of clips: `revisit eval .*run --rescore` scores it again"
    ):
        scored(tmp_path / "run", tmp_path / "run")


def test_a_cache_that_cannot_be_used_is_refused_before_the_work(clips: Path, tmp_path: Path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(
        UsageError, match=r"file/cache cannot be used \(Not a directory\); set REVISIT_CACHE to a folder"
    ):
        scored(clips, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_folder_above_a_benchmarks_predictions_is_not_read_as_models(tmp_path: Path):
    """`data` and `output` of MemoBench were compared as two models, and `data` came out first."""
    for place in ("output/mine/Real/007/video.mp4", "data/Real_Raw/007/007.mp4"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    with pytest.raises(UsageError, match=r"holds data and output in the layout of MemoBench; evaluate .*output \("):
        recognise_suite(tmp_path)
    assert recognise_suite(tmp_path / "output").id == "memobench"
    assert recognise_suite(tmp_path / "output/mine/Real/007").id == "folder"


def test_another_place_of_the_target_is_answered_anew(make_clip, tmp_path: Path):
    """Metrics may read where the target is from the case, without evidence that was made of it."""
    make_clip(tmp_path / "truth.mp4", seed=1)
    make_clip(tmp_path / "clip.mp4", seed=2)
    scores = []
    for box, run in (((0, 0, 0.5, 0.5), "run"), ((0.5, 0.5, 1, 1), "run"), ((0.5, 0.5, 1, 1), "fresh")):
        entry = {"id": "a", "video": "clip.mp4", "reference": "truth.mp4", "target": {"name": "cup", "box": box}}
        (tmp_path / "manifest.jsonl").write_text(json.dumps(entry))
        asked = revisit.evaluate(
            tmp_path / "manifest.jsonl", metrics=["target_in_view"], out=tmp_path / run, workers=0, truth=False
        )
        scores.append(asked.scalars())
    assert scores[0] != scores[1] == scores[2]


@pytest.mark.parametrize("content", ["", "{", '{"invocations": [{}]}'])
def test_a_damaged_account_of_a_run_is_written_anew(clips: Path, tmp_path: Path, content: str):
    asked = {"metrics": ["flicker"], "out": tmp_path / "run", "workers": 0}
    before = revisit.evaluate(clips, **asked).scalars()
    (tmp_path / "run/run.json").write_text(content)
    assert revisit.evaluate(clips, **asked).scalars() == before
    assert revisit.rescore(tmp_path / "run").scalars() == before


def test_a_set_file_is_found_again_from_another_folder(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A set that was named from one folder, and the one beside it that it extends, as scored again from another."""
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets/base.yaml").write_text("extends: lite\n")
    (tmp_path / "sets/mine.yaml").write_text("extends: base.yaml\n")
    monkeypatch.chdir(tmp_path)
    out = scored(clips, tmp_path / "run", set="sets/mine.yaml", metrics=["flicker"]).path
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert revisit.rescore(out).scalars() == revisit.load(out).scalars() != {}


def test_a_set_file_does_not_go_by_the_name_of_a_set(clips: Path, tmp_path: Path):
    (tmp_path / "lite.yaml").write_text("extends: lite\n")
    run = scored(clips, tmp_path / "run", set=str(tmp_path / "lite.yaml"), metrics=["flicker"])
    assert run.facts["set"] == "lite.yaml"
