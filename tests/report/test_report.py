"""The HTML report: made from a run directory alone, whatever its texts say, and the same each time."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from revisit.core import Case, Clip, Reason, Record, Series
from revisit.engine.cache import EvidenceCache
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.media import save_npz
from revisit.report.drawings import phases_of_gate, thin_series
from revisit.report.page_data import (
    _part_tables,
    _trouble_lists,
    funnel_rows,
    funnel_sentences,
    gate_finding_rows,
    model_table,
    suite_table,
)
from revisit.report.standalone import page_templates
from revisit.report.verdict import verdict_content
from revisit.report.write_html import json_for_script, write_report
from revisit.results import Results
from revisit.results.run import Run
from revisit.results.verdict import make_verdict
from tests.run_directories import add_records, make_scenes

FRAMES = 30
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "{{ 7 * 7 }}",
    "\u202egpj.exe",
    "שלום/日本語 🎥",
    "a\u2028b\u2029c",
)


class Page(HTMLParser):
    """Tags with their attributes, and the text of scripts, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self.inside == "script" else self.styles if self.inside == "style" else self.words).append(
            data
        )

    @property
    def data(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.scripts[0])
        return content


def make_run(
    folder: Path, *, name: str = "kitchen", model: str = "model", prompt: str = "a room", pictures: bool = True,
    partial: int | None = None, clip: Path | None = None, target: dict[str, Any] | None = None,
) -> Run:  # fmt: skip
    """A run of two clips: one that remembers, one with a frozen camera; and one entry that was rejected."""
    path, cache = folder / "run", EvidenceCache(folder / "cache")
    path.mkdir(parents=True)
    if clip is None:
        clip = folder / "videos" / "one clip #1.mp4"
        clip.parent.mkdir()
        clip.write_bytes(b"not really a video")
    index = np.arange(FRAMES)
    if pictures:
        parts = [f"picture {k}".encode() for k in index]
        offsets = np.cumsum([0, *map(len, parts)])
        cache.save("aa" * 20, Thumbnails(index, np.frombuffer(b"".join(parts), np.uint8), offsets, 192, 108))
        clock = FrameFacts(
            index, index / 10, np.zeros((FRAMES, 16), np.uint8), np.ones(FRAMES), np.ones(FRAMES), 640, 360, 10.0
        )
        cache.save("bb" * 20, clock)
    evidence = {"thumbnails": "aa" * 20, "frame_facts": "bb" * 20}
    case = {
        "suite": "folder", "model": model, "sample": name, "clip": {"path": str(clip), "fps": None}, "reference": None,
        "subset": "", "condition": "", "seed": 0, "prompt": prompt, "camera": "", "target": target, "phases": None,
        "annotations": {}, "artifacts": {}, "digest": "cc" * 32, "evidence": evidence, "absent": {},
    }  # fmt: skip
    gone = {"path": str(folder / "gone.mp4"), "fps": None}
    cases = [{**case, "id": f"{name}@{model}#0"}, {**case, "id": "still@other#0", "model": "other", "clip": gone}]
    phases = [["visible", 0, 9], ["away", 10, 19], ["returned", 20, 29]]
    save_npz(path / "units/aa/one.npz", {"frame": index[20:], "other": index[:10], "value": np.linspace(0.9, 0.3, 10)})
    frozen = {"kind": "gate_closed", "sentence": "frozen camera: the view never moves"}
    records: list[dict[str, Any]] = [
        {"case": cases[0]["id"], "gate": "view_return", "status": "open", "label": "left, returned",
         "facts": {"phases": phases, "away_seconds": 1.0}},
        {"case": cases[0]["id"], "metric": "return_consistency", "status": "scored", "score": 0.61, "raw": 0.6,
         "facts": {}, "n_units": 10, "units": "units/aa/one.npz"},
        {"case": cases[1]["id"], "gate": "view_return", "status": "closed", "label": "never left", "reason": frozen,
         "facts": {}},
        {"case": cases[1]["id"], "metric": "return_consistency", "status": "unscored", "reason": frozen, "facts": {}},
    ]  # fmt: skip
    for record in records:
        record |= {"version": 1, "protocol": "corrected:11111111", "key": "k", "seconds": 0.1}
    stages = [{"stage": stage, "n": n} for stage, n in (("all clips", 1), ("readable", 1), ("memory scored", 1))]
    scored = {"n": 1, "of": 1, "failed": 0, "mean": 0.61, "interval": None}
    empty = {"n": 0, "of": 1, "failed": 0, "unscored": {"gate_closed": 1}}
    summary = {
        "suite": "folder", "protocol": "corrected:22222222", "set": "lite", "partial": partial, "total_cases": 9,
        "cases": 2, "rejected": [{"id": "line 3", "reason": f"{name}: there is no such file"}],
        "failed": [{"case": "x", "reason": f"{prompt}: broken"}],
        "metrics": {"return_consistency": {
            "title": "Return consistency", "unit": "score", "range": [0, 1], "higher_is_better": True, "version": 1,
            "protocol": ["corrected:11111111"]}},
        "not_asked": {"psnr": "no reference video was given for this case"},
        "models": {
            model: {"cases": 1, "funnel": stages, "labels": {}, "scores": {"return_consistency": scored}},
            "other": {"cases": 1, "funnel": stages, "labels": {}, "scores": {"return_consistency": empty}},
        },
        "funnel": [{**stage, "n": 2} for stage in stages],
    }  # fmt: skip
    facts = {
        "revisit": "0.1.0", "suite": "folder", "set": "lite", "request": {"source": f"/data/{name}"},
        "protocol": {
            "name": "corrected", "hash": "22222222", "parameters": {}, "align": "auto",
            "metrics": {"return_consistency": "corrected:11111111"}, "gates": {"view_return": "corrected:33333333"},
            "observers": {"thumbnails": {
                "observer": "lite.thumbnails", "version": 1, "frames": "every frame, at most 192", "size": None,
                "weights": [], "params": {}, "decoding": 1}}},
        "environment": {"python": "3.10", "platform": "p", "host": "h", "cores": 2, "libraries": {"numpy": "2"}},
        "cache": str(cache.root), "notes": {}, "counters": {"decodes": 2, "observer_runs": {"lite.thumbnails": 2}},
        "invocations": [{
            "command": f"revisit eval '{name}'", "started": "2026-01-02T03:04:05.000+00:00",
            "finished": "2026-01-02T03:05:05.000+00:00", "seconds": 60, "counters": {}}],
    }  # fmt: skip
    plan = {
        "suite": "folder", "protocol": "corrected", "set": "lite", "align": "auto", "partial": partial,
        "total_cases": 9, "metrics": {"return_consistency": "corrected:11111111"},
        "gates": {"view_return": "corrected:33333333"}, "cases": cases, "rejected": [],
    }  # fmt: skip
    for file, content in (("run", facts), ("plan", plan), ("summary", summary)):
        (path / f"{file}.json").write_text(json.dumps(content), encoding="utf-8")
    (path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return Run(path)


def read(run: Run, **options: Any) -> Page:
    return Page(write_report(run, **options).read_text(encoding="utf-8"))


def scene_of(path: Path) -> dict[str, Any]:
    """What a file of a scene hands to the page."""
    found = re.fullmatch(r"revisitScene\((\".*\")\);\n", path.read_text(encoding="utf-8"))
    assert found
    content: dict[str, Any] = json.loads(json.loads(found[1]))
    return content


def clips_of(run: Run) -> list[dict[str, Any]]:
    """The clips of the one scene of a report."""
    (path,) = (run.path / "report" / "scenes").glob("*.js")
    return list(scene_of(path)["clips"])


def clip_of(run: Run, **options: Any) -> dict[str, Any]:
    """The clip that remembers, of a run that is shown anew."""
    write_report(run, **options)
    return next(clip for clip in clips_of(run) if not clip["id"].startswith("still@"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("/home/a/long/way/videos", "way/videos"),
        ("/videos", "/videos"),
        ("videos", "videos"),
        ("s3://a/b/c", "s3://a/b/c"),
    ],
)
def test_the_head_names_the_end_of_a_path_and_all_of_it_in_a_tooltip(tmp_path: Path, source: str, words: str) -> None:
    run = make_run(tmp_path)
    facts = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    (run.path / "run.json").write_text(json.dumps({**facts, "request": {"source": source}}), encoding="utf-8")
    page = read(Run(run.path))
    assert words in page.words
    assert ("bdi", {"title": source}) in page.tags


def test_the_page_holds_what_a_reader_asks_for(tmp_path: Path) -> None:
    run = make_run(tmp_path, target={"name": "cup", "box": [0.1, 0.2, 0.3, 0.4]})
    page = read(run)
    words = " ".join(page.words)
    for expected in (
        "Which model remembers best?", "Any folder of videos", "data/kitchen", "corrected:22222222",
        "Does it look the same?", "has a score", "Worst moments",
        "does not pose the test", "Return consistency", "0.61", "1/1", "0/1", "2026-01-02 03:05 UTC",
        "revisit eval 'kitchen'", "line 3",
        "no reference video was given for this case", "lite.thumbnails", "cluster-robust", "every frame, at most 192",
    ):  # fmt: skip
        assert expected in words, expected
    assert "Partial" not in words
    row = page.data["clips"][0]
    assert (row["found"], row["scores"], row["target"]) == (["left, returned"], [0.61], "cup")
    assert row["phases"] == [["visible", 0, 9], ["hidden", 10, 19], ["returned", 20, 29]]
    one = clip_of(run)
    assert one["findings"][0] == {"state": "open", "label": "left, returned", "reason": "", "seconds": ["away 1.0 s"]}
    assert [phase[0] for phase in one["lanes"][0]["phases"]] == ["visible", "hidden", "returned"]
    assert one["target"] == {"name": "cup", "box": [0.1, 0.2, 0.3, 0.4]}
    assert one["clock"] == {"frames": FRAMES, "fps": 10.0, "size": [640, 360]}


def test_a_partial_run_says_so_loudly(tmp_path: Path) -> None:
    page = read(make_run(tmp_path, partial=2))
    assert "Partial: 2 of 9 clips (--limit 2)" in page.words


def test_the_film_strip_runs_from_the_first_frame_to_the_last(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    film = read(run).data["clips"][0]["film"]
    assert len(film["frames"]) == 12
    assert (film["frames"][0], film["frames"][-1]) == (0, FRAMES - 1)
    for frame in film["frames"]:
        path = run.path / "report" / "frames" / film["name"] / f"{frame:06d}.jpg"
        assert path.read_bytes() == f"picture {frame}".encode()


def test_the_frame_that_hurt_most_stands_beside_the_frame_it_was_compared_with(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    clip = clip_of(run)
    (worst,) = clip["hurt"]
    assert (worst["frame"], worst["value"]) == (29, "0.30")
    assert [(shot["words"], shot["frame"]) for shot in worst["pictures"]] == [("as it was", 9), ("as it returned", 29)]
    assert (run.path / "report" / worst["pictures"][0]["src"]).read_bytes() == b"picture 9"
    series = next(line for line in clip["series"] if line["title"] == "Return consistency")
    assert series["worst"] == 29


def test_unscored_is_shown_with_its_reason_and_never_as_a_number(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    page = read(run)
    assert page.data["clips"][1]["scores"] == [None]
    other = next(clip for clip in clips_of(run) if clip["model"] == "other")
    assert other["scores"] == [[None, "frozen camera: the view never moves"]]
    assert other["findings"][0]["state"] == "closed"
    tips = {attributes["data-tip"] for _, attributes in page.tags if "data-tip" in attributes}
    assert "1 × test not posed" in tips


def test_the_score_that_counts_is_shown_and_what_was_measured_is_said(tmp_path: Path) -> None:
    """A reset looks like a return; where the outcome of the event is known, that is what it is worth."""
    path = make_scenes(tmp_path, ["a", "b"], ["one"], pictures=False)
    undone = {"case": "one@a#0", "metric": "event_outcome", "status": "scored", "score": 0.1, "facts": {}}
    add_records(path, [{**undone, "version": 1, "protocol": "p", "key": "k", "seconds": 0.1, "schema": 2}])
    plan = json.loads((path / "plan.json").read_text())
    plan["metrics"]["event_outcome"] = "p"
    (path / "plan.json").write_text(json.dumps(plan))
    run = Run(path)
    rows = read(run).data["clips"]
    assert [row["scores"] for row in rows] == [[0.1], [0.8]]
    shown = {clip["model"]: clip["scores"][0] for clip in clips_of(run) if not clip["truth"]}
    assert shown["a"] == [0.1, "0.10", "measured 0.90, but the unseen event is undone (outcome 0.10): a reset"]
    assert shown["b"] == [0.8, "0.80"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(tmp_path: Path, text: str) -> None:
    plain = read(make_run(tmp_path / "plain"))
    run = make_run(tmp_path / "hostile", name=text, model=text, prompt=text)
    page = read(run)
    # The same elements with the same attributes: nothing that was said has become markup.
    shape = [(tag, sorted(attributes)) for tag, attributes in page.tags]
    assert shape == [(tag, sorted(attributes)) for tag, attributes in plain.tags]
    assert len(page.scripts) == 2
    for clip in (page.data["clips"][0], clip_of(run)):
        assert (clip["sample"], clip["model"], clip["prompt"]) == (text, text, text)
        assert re.fullmatch(r"[0-9a-f]+", clip["anchor"])
    assert text in " ".join(page.words)


def test_a_data_block_cannot_end_its_element() -> None:
    block = str(json_for_script({"x": "</script><!--&\u2028\u2029"}))
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {"x": "</script><!--&\u2028\u2029"}


def test_a_scene_hands_over_one_text_and_nothing_else(tmp_path: Path) -> None:
    run = make_run(tmp_path, name='"); alert(1); ("', prompt="\u2028</script>")
    write_report(run)
    (path,) = (run.path / "report/scenes").glob("*.js")
    assert not set("<>&\u2028") & set(path.read_text(encoding="utf-8"))
    assert {clip["prompt"] for clip in clips_of(run)} == {"\u2028</script>"}


def test_the_policy_allows_this_script_and_style_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    page = read(run, copy_clips=True)
    (policy,) = [a["content"] or "" for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    for name, content in (("script-src", page.scripts[1]), ("style-src", page.styles[0])):
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
    for file in (run.path / "report").rglob("*"):
        if file.is_file():
            assert not re.search(rb"https?:|//cdn|@import|url\((?!#)", file.read_bytes()), file


def test_script_writes_text_only_as_text() -> None:
    folder = Path(write_report.__code__.co_filename).parent / "templates"
    scripts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.js")}
    for name, script in scripts.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script), name
        assert ("fetch(" in script) == (name == "live.js")  # only a page that is served asks for more


def test_without_its_cache_a_run_still_has_a_page_that_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path, pictures=False)
    clip = clip_of(run)
    assert clip["film"] is None
    assert "no longer in the evidence cache" in clip["film_note"]
    assert clip["last"] == FRAMES - 1
    assert [shot["src"] for shot in clip["hurt"][0]["pictures"]] == [None, None]
    assert clip["scores"] == [[0.61, "0.61"]]


def test_videos_are_found_from_the_report(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    here = clip_of(run)
    gone = next(clip for clip in clips_of(run) if clip["model"] == "other")
    assert (run.path / "report" / unquote(here["video"]["src"])).read_bytes() == b"not really a video"
    assert "%23" in here["video"]["src"]
    assert gone["video"]["src"] is None
    assert "no longer at" in gone["video"]["note"]


def test_a_folder_of_frames_has_no_video_to_play(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    clip = clip_of(make_run(tmp_path, clip=frames))
    assert clip["video"]["src"] is None
    assert "folder of frames" in clip["video"]["note"]


def test_copied_clips_travel_with_the_report(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    src = clip_of(run, copy_clips=True)["video"]["src"]
    assert re.fullmatch(r"clips/one_clip_1-[0-9a-f]{8}\.mp4", src)
    assert (run.path / "report" / src).read_bytes() == b"not really a video"
    write_report(run)
    assert not (run.path / "report" / "clips").exists()


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = make_run(tmp_path)

    def content() -> dict[str, bytes]:
        folder = write_report(run, copy_clips=True).parent
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    assert content() == content()


def test_keys_that_are_not_hashes_lead_nowhere(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    plan = run.plan
    plan["cases"][0]["evidence"]["thumbnails"] = "../../outside"
    (run.path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    records = (run.path / "records.jsonl").read_text(encoding="utf-8")
    save_npz(tmp_path / "outside.npz", {"frame": np.arange(3), "value": np.ones(3)})
    (run.path / "records.jsonl").write_text(records.replace("units/aa/one.npz", "../outside.npz"), encoding="utf-8")
    clip = clip_of(run)
    assert clip["film"] is None
    assert clip["series"] == []


def test_a_metric_that_is_not_installed_is_still_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for name in ("run.json", "plan.json", "summary.json", "records.jsonl"):
        text = (run.path / name).read_text(encoding="utf-8")
        (run.path / name).write_text(text.replace("return_consistency", "their.metric"), encoding="utf-8")
    page = read(run)
    assert "The code of this metric is not installed here." in page.words
    assert page.data["metrics"][0]["group"] == "Other"


def test_a_suite_with_other_tables_still_has_a_page(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    kept = {name: value for name, value in run.summary.items() if name in ("suite", "protocol", "set", "partial")}
    (run.path / "summary.json").write_text(json.dumps({**kept, "total_cases": 2, "tables": []}), encoding="utf-8")
    page = read(run)
    assert len(page.data["clips"]) == 2
    assert "No metric was asked of these clips." in page.words


def test_importing_the_report_loads_no_decoder_and_no_network() -> None:
    code = (
        "import sys, revisit.report.write_html; print([m for m in ('cv2', 'av', 'torch', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"phases": [["visible", 0, 4], ["away", 5, 9]]}, [["visible", "visible", 0, 4], ["hidden", "away", 5, 9]]),
        ({"phases": [["strange", -3, 99]]}, [["other", "strange", 0, 9]]),
        ({"phases": [["visible"], None, 3, ["visible", "x", 2]]}, []),
        ({"phases": "none"}, []),
        ({"first_hidden_frame": 3, "first_returned_frame": 7},
         [["visible", "visible", 0, 2], ["hidden", "hidden", 3, 6], ["returned", "returned", 7, 9]]),
        ({"first_away_frame": 3}, [["visible", "visible", 0, 2], ["hidden", "hidden", 3, 9]]),
        ({}, []),
    ],
)  # fmt: skip
def test_phases_are_read_from_what_a_gate_says(facts: dict[str, Any], expected: list[Any]) -> None:
    assert phases_of_gate(facts, None, 9) == expected


def test_phases_are_read_frame_by_frame_from_a_gates_units() -> None:
    sampled = Series(frame=[0, 2, 4, 6, 8], value=[1, 1, 0, 0.5, 1], phase=[0, 0, 1, -1, 2])
    assert phases_of_gate({}, sampled, 9) == [
        ["visible", "visible", 0, 3], ["hidden", "away", 4, 5], ["other", "cannot tell", 6, 7],
        ["returned", "returned", 8, 9],
    ]  # fmt: skip
    tracked = Series(frame=[0, 1, 2, 3, 4], value=np.ones(5), hidden=[False, True, True, False, True])
    assert [phase[1:] for phase in phases_of_gate({}, tracked, 4)] == [
        ["visible", 0, 0], ["hidden", 1, 2], ["returned", 3, 3], ["hidden", 4, 4],
    ]  # fmt: skip


def test_a_series_is_thinned_but_keeps_its_worst_value_and_its_gaps() -> None:
    value = np.ones(1000)
    value[[501, 0]] = 0.2, np.nan
    line = thin_series(Series(frame=np.arange(1000), value=value), (0, 1), True, 64)
    assert len(line["frame"]) <= 66
    assert line["worst"] == 501
    assert line["value"][line["frame"].index(501)] == 0.2
    assert line["value"][0] is None
    assert (line["low"], line["high"]) == (0, 1)


def test_a_model_called_truth_stands_beside_the_truth(tmp_path: Path) -> None:
    scores = {"truth": 0.4, "a": 0.7}
    models = {name: {"cases": 1, "scores": {"psnr": {"n": 1, "of": 1, "mean": mean}}} for name, mean in scores.items()}
    summary = {"models": models, "metrics": {"psnr": {"best": "truth"}}, "truth": {**models["a"], "name": "truth"}}
    table = model_table(summary, {"psnr": {"group": "Fidelity", "range": (0, 1)}})
    rows = [
        (row["model"], row["truth"], row["cells"][0]["cell"].mean, row["cells"][0]["best"]) for row in table["rows"]
    ]
    assert rows == [("truth", False, 0.4, True), ("a", False, 0.7, False), ("truth", True, 0.7, False)]


def test_the_best_of_all_clips_is_not_marked_in_tables_of_their_parts() -> None:
    scores = {name: {"cases": 1, "scores": {"psnr": {"n": 1, "of": 1, "mean": 0.5}}} for name in "ab"}
    parts = {"far": {"metrics": ["psnr"], "models": scores}}
    (part,) = _part_tables(
        {"metrics": {"psnr": {"best": "a"}}}, parts, {"psnr": {"group": "Fidelity", "range": (0, 1)}}
    )
    assert [row["cells"][0]["best"] for row in part["table"]["rows"]] == [False, False]


def test_intervals_of_the_table_are_written_as_everywhere() -> None:
    """With as many digits as tell the ends apart, and values that are all equal are called that."""
    cells = [{"n": 9, "of": 9, "mean": 0.5, "interval": ends} for ends in ([0.4981, 0.5024], [0.5, 0.5], None)]
    cells[2] |= {"few_scenes": True}
    extra = suite_table({"rows": [{"name": "a", "cells": cells}], "columns": ["x", "y", "z"], "title": "", "note": ""})
    html = (
        page_templates()
        .from_string('{% import "parts.html" as parts %}{{ parts.plain_scores(extra) }}')
        .render(extra=extra)
    )
    assert re.findall(r'class="interval"[^>]*>([^<]*)', html) == ["0.498 to 0.502", "all equal", "no interval"]
    assert 'title="too few scenes to see rare failures"' in html


def test_a_model_alone_is_not_marked_as_the_best() -> None:
    cases = [Case(f"{k}@{model}", "folder", model, f"s{k}", Clip(Path("x"))) for k in range(4) for model in "ab"]
    records = [Record(case, "event_outcome", False, "failed" if case.model == "b" else "scored",
                      None if case.model == "b" else 0.5 + 0.1 * int(case.sample[1:])) for case in cases]  # fmt: skip
    card = {"questions": [{"ask": "Which?", "metrics": ["event_outcome"]}]}
    table = verdict_content(make_verdict(Results(cases, records), card), {"models": {"a": {}, "b": {}}})["table"]
    assert [row["cells"][0].get("best", False) for row in table["rows"]] == [False, False]


FAR = ("a", 0.9, 1), ("b", 0.5, 2), ("c", 0.1, 3)  # models, their scores, and how these go up and down


def test_a_place_that_tells_nothing_is_left_out() -> None:
    """One model alone has no place, nor have two that cannot be told apart; three of which one is beaten have."""
    far = {name: [level + 0.01 * ((k * step) % 5) for k in range(10)] for name, level, step in FAR}
    for names, expected in (("a", [""]), ("abc", ["1", "2", "3"])):
        table = _table_of({name: far[name] for name in names})
        assert [row["cells"][0]["place"] for row in table["rows"]] == expected
    alike = _table_of({"a": [0.9, 0.1, 0.5, 0.5], "b": [0.1, 0.9, 0.5, 0.6]})
    assert [row["cells"][0]["place"] for row in alike["rows"]] == ["", ""]


def _table_of(scores: dict[str, list[float]]) -> Any:
    cases = {
        (m, k): Case(f"{k}@{m}", "folder", m, f"s{k}", Clip(Path("x"))) for m in scores for k in range(len(scores[m]))
    }
    records = [Record(case, "event_outcome", False, "scored", scores[m][k]) for (m, k), case in cases.items()]
    card = {"questions": [{"ask": "Which?", "metrics": ["event_outcome"]}]}
    verdict = make_verdict(Results(list(cases.values()), records), card)
    return verdict_content(verdict, {"models": {name: {} for name in scores}})["table"]


def test_missing_clips_stand_apart_from_rejected_ones() -> None:
    odd, missing = {"id": "line 3", "reason": "odd"}, {"id": "a", "reason": "1 clip is missing: s", "missing": True}
    trouble = _trouble_lists({"rejected": [odd, missing]})
    assert (trouble["rejected"], trouble["missing"], trouble["failed"]) == ([odd], [missing], [])


def test_the_funnel_says_in_words_what_it_draws() -> None:
    stages = [
        {"stage": stage, "n": n}
        for stage, n in (
            ("all clips", 10), ("readable", 9), ("camera moved", 7), ("view left", 5), ("view returned", 4),
            ("memory scored", 4),
        )
    ]  # fmt: skip
    assert funnel_sentences(stages)[0] == "Of 10 clips, 9 could be read, and in 7 of these the camera moved."
    assert [(row["share"], row["kind"]) for row in funnel_rows(stages)][-2:] == [("40 %", "view"), ("40 %", "scored")]
    assert funnel_rows([]) == []
    assert funnel_sentences([]) == []


def test_a_frozen_camera_is_counted_as_not_posing_the_test() -> None:
    cases = [Case(f"c{k}", "folder", "m", f"s{k}", Clip(Path(f"c{k}.mp4"))) for k in range(4)]
    still, moves, broken, short = cases
    records = [
        Record(still, "camera_moved", True, "closed", label="frozen camera", reason=Reason("gate_closed", "still")),
        Record(moves, "camera_moved", True, "open", label="moves"),
        Record(broken, "camera_moved", True, "failed", reason=Reason("failed", "broken")),
        Record(short, "camera_moved", True, "unscored", reason=Reason("too_short", "2 frames: one more is needed")),
        Record(short, "target_return", True, "unscored", reason=Reason("no_target", "no target was given")),
    ]
    (found,) = gate_finding_rows(
        Results(cases, records), {"camera_moved": "the camera moves", "target_return": "the target returns"}
    )
    assert found["parts"] == [
        {"state": "open", "label": "moves", "n": 1},
        {"state": "closed", "label": "frozen camera", "n": 1},
        {"state": "unscored", "label": "too short", "n": 1},
        {"state": "failed", "label": "failed", "n": 1},
    ]


def test_curves_are_drawn_with_and_without_bands():
    from revisit.report.plots import line_plot
    from revisit.results import Cell

    ticks = [(0.0, "0.5"), (1.0, "1")]
    one_clip = str(line_plot({"model": [Cell(1, 1, 0.2), Cell(1, 1, 0.4)]}, ticks, "seconds")["picture"])
    assert "polyline" in one_clip and "polygon" not in one_clip and ">0.40<" in one_clip
    cells = [Cell(2, 2, 0.2, (0.1, 0.3)), Cell(2, 2, 0.4, (0.2, 0.8))]
    several = line_plot({"model": cells}, ticks, truth=[Cell(0, 2), Cell(2, 2, 0.1)])
    picture = str(several["picture"])
    assert "polygon" in picture and ">0.80<" in picture and ">0.10<" in picture
    assert several["key"] == [{"name": "model", "kind": "k0"}, {"name": "truth", "kind": "kt"}]
    assert not line_plot({}, ticks)["picture"]


def test_an_interval_as_wide_as_nothing_else_does_not_flatten_the_curves():
    from revisit.report.plots import line_plot
    from revisit.results import Cell

    cells = [Cell(2, 2, 0.2, (-4.0, 4.4)), Cell(2, 2, 0.4, (0.3, 0.5))]
    picture = str(line_plot({"model": cells}, [(0.0, "0.5"), (1.0, "1")])["picture"])
    assert ">0.20<" in picture and ">0.50<" in picture and "4.4" not in picture


def test_texts_of_a_plot_stay_within_it_and_can_be_written():
    from revisit.report.plots import line_plot
    from revisit.results import Cell

    ticks = [(float(k), f"words that say what is looked for, number {k}") for k in range(5)]
    picture = str(line_plot({"\udcff": [Cell(1, 1, 0.2)] * 5}, ticks)["picture"])
    labels = re.findall(r'text-anchor="(start|middle|end)">(words[^<]*)<', picture)
    assert [anchor for anchor, _ in labels] == ["middle"] * 4 + ["end"]
    assert all(text.endswith("…") and len(text) * 6 * 1.5 <= 372 / 4 for _, text in labels)
    assert picture.encode() and ticks[4][1] in picture  # read out in full
