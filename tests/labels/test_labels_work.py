"""Raters at work: examples, gold, agreement that stops, interleaved forms; and the commands on what they said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")

from revisit.core import Case, Clip, UsageError
from revisit.judges.calibration import load_judge_labels as read_judge_labels
from revisit.labels.app import RaterPages
from revisit.labels.label import Label, read_label_files
from revisit.labels.label_files import labels_of_project, project_export_files, write_files
from revisit.labels.project import ProjectSettings, make_project, open_project
from revisit.labels.queue import ItemQueue
from revisit.labels.start_project import ProjectRequest, open_and_serve_project, open_or_make_project
from revisit.labels.store import RaterAnswer, Store
from revisit.results.run import Run
from revisit.web.server import ListenAddress
from tests.browsing import serving
from tests.conftest import moving_frames
from tests.labelling import Person, clip, tiny_run, write_run

ADMIN = "0123456789abcdef0123"


def answer_all(queue: ItemQueue, store: Store, rater, answers, task: str = "") -> list[str]:
    """A rater who answers everything in the same way; the items in their order."""
    seen = []
    while (item := queue.hold_next_item(rater, task)) is not None:
        seen.append(item.id)
        store.submit(RaterAnswer(item.id, rater.id, {q.id: answers(item, q) for q in item.questions}))
    return seen


def test_examples_first_gold_in_between_and_who_agrees_is_done(tmp_path):
    run = tiny_run(tmp_path, ("x", "y"), [f"s{k}" for k in range(6)])
    gold = [
        Label(
            "trigger",
            "",
            "expert",
            "trigger",
            "yes",
            f"s{k}@x#0",
            example=k == 0,
            comment="It comes back." if k == 0 else "",
        )
        for k in (0, 3)
    ]
    made = make_project(
        tmp_path / "p", [run], ProjectSettings(("trigger",), raters=3, agree=2, gold_every=4), gold=gold
    )
    store = Store(made.default_store)
    queue = ItemQueue(made, store)
    ann, ben, cleo = (store.add_rater(name)[0] for name in ("ann", "ben", "cleo"))
    first = answer_all(queue, store, ann, lambda item, q: "yes")
    kinds = [
        "example" if made.item_by_id[id].example else "gold" if made.item_by_id[id].gold else "item" for id in first
    ]
    assert kinds == ["example", "item", "item", "item", "gold", *["item"] * 7]
    assert queue.rater_progress(ann) == {"done": 12, "of": 12}
    agree = answer_all(queue, store, ben, lambda item, q: "yes" if item.scene != "s5" else "no")
    assert len(agree) == 12
    rest = answer_all(queue, store, cleo, lambda item, q: "no")
    assert {made.item_by_id[id].scene for id in rest if not made.item_by_id[id].gold} == {
        "s5"
    }  # the others are agreed on already
    assert sum(bool(made.item_by_id[id].gold) for id in rest) == 2  # everybody gets these
    labels = labels_of_project(made, store)
    assert {label.right for label in labels if label.case == "s3@x#0"} == {"yes"}
    assert all(label.example == (label.case == "s0@x#0") for label in labels)


def test_a_clip_that_cannot_be_read_is_left_out_and_named(tmp_path):
    run = tiny_run(tmp_path, ("x", "y"), ("cup", "vase"))
    broken = Path(next(case for case in Run(run).plan["cases"] if case["id"] == "cup@x#0")["clip"]["path"])
    broken.write_bytes(broken.read_bytes()[:600])
    told: list[str] = []
    gold = [Label("marks", "", "expert", "target", "returned", "cup@x#0")]
    settings = ProjectSettings(("marks",), raters=1, count=3)
    made = make_project(tmp_path / "p", [run], settings, gold=gold, warned=told.append)
    assert sorted(made.cases) == ["cup@y#0", "vase@x#0", "vase@y#0"] == sorted(made.shots) and len(made.items) == 3
    assert len(told) == 1 and told[0].startswith(f"left out: x, cup: {broken.name}: ")
    for case in Run(run).plan["cases"]:
        Path(case["clip"]["path"]).write_bytes(b"")
    with pytest.raises(UsageError, match="no clip of these runs can be read"):
        make_project(tmp_path / "q", [run], settings, warned=told.append)


def test_an_example_shows_what_is_right_and_why(tmp_path):
    run = tiny_run(tmp_path, ("x", "y"), ("cup",))
    gold = [
        Label(
            "pairwise", "", "expert", "camera", "a", "cup@x#0", other="cup@y#0", example=True, comment="x <i>turns</i>."
        )
    ]
    settings = ProjectSettings(("pairwise",), dimensions=("camera",))
    made = make_project(tmp_path / "p", [run], settings, gold=gold, guide="Look at\nboth.\n\n<script>x</script>")
    store = Store(made.default_store)
    token = store.add_rater("ann")[1]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        ann = Person(address, f"/r/{token}")
        assert "&lt;script&gt;x" in ann.page("/guide").text
        item, fields, page = ann.next() or ("", {}, "")
        assert "example" in page
        answer = ann.post(f"/item/{item}", {**fields, "q.camera": "left"})
        assert answer.headers["location"] == f"/right/{item}"
        shown = ann.page(f"/right/{item}").text
        assert "x &lt;i&gt;turns&lt;/i&gt;." in shown and "left is better" in shown
        assert ('class="same"' in shown) == (not store.all_answers()[0].swapped)
        assert ann.next() is None
    with pytest.raises(UsageError, match="fits no clip of these runs"):
        make_project(tmp_path / "q", [run], settings, gold=[replace(gold[0], case="nothing@x")])


def bank_run(tmp_path: Path) -> Path:
    bank = [
        {
            "id": n,
            "dimension": "Continuity of Memory" if n % 2 else "Physics Adherence",
            "positive": n < 4,
            "text": f"Is it {n}?",
        }
        for n in range(8)
    ]
    cases = [
        Case(f"{s}@m#0", "folder", "m", s, Clip(clip(tmp_path / "m" / f"{s}.mp4", k)), annotations={"questions": bank},
             reference=Clip(clip(tmp_path / "truth" / f"{s}.mp4", k + 9)))
        for k, s in enumerate(("Barn", "Lake"))
    ]  # fmt: skip
    return write_run(tmp_path / "run", cases, "folder", {}, {})


def test_forms_of_a_survey_on_the_truth_and_labels_for_judges(tmp_path):
    run = bank_run(tmp_path)
    settings = ProjectSettings(("answer",), of="reference", raters=2, forms=2, per_scene=4)
    made = make_project(tmp_path / "p", [run], settings)
    store = Store(made.default_store)
    queue = ItemQueue(made, store)
    raters = [store.add_rater(f"r{k}")[0] for k in range(4)]
    for rater in raters:
        answer_all(queue, store, rater, lambda item, q: "yes" if q.polarity == "positive" else "no")
    labels = labels_of_project(made, store)
    assert {label.model for label in labels} == {"reference"} and len(labels) == 16
    assert {label.rater: label.form for label in labels} == {"r0": 0, "r1": 1, "r2": 0, "r3": 1}
    by_form = {form: {(one.sample, one.question) for one in labels if one.form == form} for form in (0, 1)}
    assert not by_form[0] & by_form[1] and len(by_form[0]) == len(by_form[1]) == 4
    write_files(project_export_files(made, store, tmp_path / "out"), tmp_path / "out")
    judged = read_judge_labels(tmp_path / "out/judge_labels.jsonl")
    assert len(judged.rows) == 8 and judged.disputed == 0 and all(len(said) == 2 for said in judged.raters.values())
    assert {row.clip.resolve() for row in judged.rows} == {
        (tmp_path / "truth" / f"{s}.mp4").resolve() for s in ("Barn", "Lake")
    }
    assert {row.polarity for row in judged.rows} == {"positive", "negative"}


def test_a_review_needs_words_and_a_reason(tmp_path):
    made = make_project(tmp_path / "p", [bank_run(tmp_path)], ProjectSettings(("review",), raters=1, count=3))
    store = Store(made.default_store)
    token = store.add_rater("ann")[1]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        ann = Person(address, f"/r/{token}")
        item, fields, page = ann.next() or ("", {}, "")
        question = made.item_by_id[item].questions[0]
        name = question.id
        assert question.text in page and question.polarity in page
        bad = [
            {f"q.{name}": "drop"},
            {f"q.{name}": "edit", f"text.{name}": question.text, "comment": "x"},
            {f"q.{name}": "edit"},
        ]
        for form in bad:
            assert ann.post(f"/item/{item}", {**fields, **form}).status_code == 422
        good = {f"q.{name}": "edit", f"text.{name}": "Is the cup there?", "comment": "two questions in one"}
        assert ann.post(f"/item/{item}", {**fields, **good}).status_code == 303
    label = labels_of_project(made, store)[0]
    assert (label.answer, label.text, label.comment) == ("edit", "Is the cup there?", "two questions in one")


def test_a_project_goes_on_and_other_settings_are_refused(tmp_path):
    run = tiny_run(tmp_path, ("x", "y"), ("cup",))
    wish = ProjectRequest((run,), ProjectSettings(("trigger",), raters=2))
    made = open_or_make_project(wish, lambda *told: None)
    assert made.folder == run / "labels" and open_or_make_project(wish, lambda *told: None) == made
    assert open_or_make_project(ProjectRequest((run / "labels",)), lambda *told: None) == made
    with pytest.raises(UsageError, match="other settings"):
        open_or_make_project(ProjectRequest((run,), ProjectSettings(("marks",))), lambda *told: None)
    refused = [
        (ProjectRequest((tmp_path,)), "not a run"),
        (ProjectRequest((run,), ProjectSettings(("guess",)), tmp_path / "a"), "unknown task"),
        (ProjectRequest((run,), ProjectSettings(("answer",)), tmp_path / "b"), "questions of a bank"),
        (ProjectRequest((run,), ProjectSettings(of="both"), tmp_path / "c"), "--of"),
        (ProjectRequest((run,), ProjectSettings(sampling="uncertain"), tmp_path / "d"), "--metric"),
        (ProjectRequest((run,), ProjectSettings(of="reference"), tmp_path / "e"), "reference"),
        (ProjectRequest((run,), ProjectSettings(dimensions=("beauty",)), tmp_path / "f"), "unknown dimension"),
    ]
    for wrong, said in refused:
        with pytest.raises(UsageError, match=said):
            open_or_make_project(wrong, lambda *told: None)
        assert not (wrong.out or tmp_path / "none").exists() or wrong.out is None


@pytest.mark.slow
@pytest.mark.long
def test_the_commands_from_clips_to_the_report(tmp_path, revisit):
    """eval, annotate --prepare, answers, export, import, agree, align: what a user does, in order."""
    from revisit.media import encode_mp4

    for model, speed in (("one", 2.0), ("two", 3.0), ("three", 1.0)):
        for k in range(3):
            (tmp_path / "videos" / model).mkdir(parents=True, exist_ok=True)
            frames = moving_frames(14, seed=k, speed=speed)
            encode_mp4(tmp_path / "videos" / model / f"s{k}.mp4", frames, 12)
    revisit("eval", "videos", "--workers", "0", "--metric", "visual_integrity_lite", "--metric", "motion_smoothness")
    said = revisit("annotate", "runs/videos", "--prepare", "--rater", "Ann", "--rater", "Ben", "-d", "integrity")
    assert "link for Ann: http://127.0.0.1:8123/r/" in said.stdout and "9 items" in said.stdout
    assert "nobody has answered yet" in revisit("labels", "export", "runs/videos/labels", "--out", "none").stderr
    made = open_project(tmp_path / "runs/videos/labels")
    store = Store(made.default_store)
    for rater in store.raters():
        answer_all(
            ItemQueue(made, store),
            store,
            rater,
            lambda item, q: "a" if made.cases[item.cases[0]].model == "one" else "tie",
        )
    written = revisit("labels", "export", "runs/videos/labels", "--out", "out").stdout
    assert "out/labels.jsonl" in written and "out/labels.parquet" in written and "out/preferences.jsonl" in written
    assert len(read_label_files([tmp_path / "out"])) == 18
    again = revisit("labels", "import", "out/label_studio.json", "--from", "label-studio", "--out", "back/labels.jsonl")
    assert "18 labels" in again.stdout
    told = json.loads(revisit("agree", "out", "--json").stdout)
    assert told["rows"][0]["ac1"]["value"] == 1
    assert json.loads(revisit("agree", "back/labels.jsonl", "--json").stdout)["rows"][0]["ac1"]["value"] == 1
    refused = revisit("align", "runs/videos", "out", "--metric", "integrity=motion_smothness", check=2).stderr
    assert "did not ask 'motion_smothness'" in refused
    shown = revisit("align", "runs/videos", "out", "--metric", "integrity=motion_smoothness").stdout
    assert "Metric and people" in shown and "Smoothness of motion" in shown
    page = (tmp_path / "runs/videos/report/index.html").read_text()
    assert "scored again since" not in page
    assert "What people say" in page and "Smoothness of motion" in page and '<svg class="figure"' in page


def test_items_go_to_the_raters_that_are_named(tmp_path):
    run = tiny_run(tmp_path, ("x", "y"), ("cup",))
    said: list[str] = []

    def prepare(*names: str, raters: int | None = None) -> int:
        said.clear()
        settings = ProjectSettings(("trigger",)) if raters is None else ProjectSettings(("trigger",), raters=raters)
        request = ProjectRequest((run,), settings, names=names, raters=raters)
        open_and_serve_project(request, ListenAddress(), "t" * 20, True, said.append, lambda *told: None)
        return open_project(run / "labels").settings.raters

    assert prepare("Ann", "Ben") == 2 and "each for 2 raters" in said[0]
    assert prepare() == 2
    assert prepare("Cleo") == 3  # she would have got nothing
    assert prepare(raters=4) == 4 and "fewer raters are there" in said[-1]
    assert prepare("Dora", "Emil") == 4  # somebody said how many
