"""Labelled real clips: both formats, and verdicts against what people saw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from revisit.audit.labelled import Labelled, read_labelled_clips
from revisit.audit.real import compare_with_labels, confidence_calibration, count_outcomes
from revisit.audit.text import real_table
from revisit.core import Case, Clip, Record, UsageError
from revisit.results import Results
from revisit.stats.intervals import wilson_interval

BOX = [0.1, 0.2, 0.3, 0.4]


def by_hand(folder: Path, **rows: dict[str, object]) -> Path:
    folder.mkdir()
    for name in rows:
        (folder / f"{name}.mp4").touch()
    (folder / "targets.json").write_text(json.dumps({"_": "a note", **rows}))
    return folder


def test_a_file_by_hand(tmp_path):
    folder = by_hand(
        tmp_path / "a",
        Real_007_gt={"box": BOX, "gate": "hidden, returned", "state": "changed (full)", "first_hidden_frame": 12},
        Real_007_svc={"box": BOX, "gate": "hidden, returned", "state": "reset (empty)"},
        dog={"box": BOX, "gate": "borderline", "class": "i"},
        dog_gone={"box": BOX, "gate": "hidden, not returned", "class": "ii"},
    )
    (folder / "manifest.json").write_text(json.dumps({name: {"path": "dog.mp4"} for name in ("dog", "dog_gone")}))
    truth, svc, dog, gone = read_labelled_clips([folder])
    assert (truth.scene, svc.scene) == ("Real_007", "Real_007") and dog.scene == gone.scene == "dog.mp4"
    assert truth.reference is None and svc.reference == truth.clip and truth.gone == 12
    assert truth.failures == {"state_reset": False} and svc.failures == {"state_reset": True}
    assert dog.verdict == "" and gone.kind == "ii"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"gate": "never hidden"}, "needs a `box`"),
        ({"box": BOX, "gate": "gone"}, "has the verdict 'gone'"),
        ({"box": [0.1, 0.2], "gate": "never hidden"}, "cup: the box"),
        ({"box": "x", "gate": "never hidden"}, "is not .x0"),
    ],
)
def test_a_broken_row_is_told(tmp_path, row, says):
    with pytest.raises(UsageError, match=says):
        read_labelled_clips([by_hand(tmp_path / "a", cup=row)])


def test_a_folder_without_labels_is_told(tmp_path):
    with pytest.raises(UsageError, match=r"no labels.jsonl, no targets.json and no eye.json"):
        read_labelled_clips([tmp_path])


def by_eye(folder: Path, **rows: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    named = {name.replace("__", "/"): row for name, row in rows.items()}
    (folder / "eye.json").write_text(json.dumps({"_": "a note", **named}))
    return folder


def test_notes_by_eye_find_their_clips_in_all_folders(tmp_path):
    films = by_hand(tmp_path / "films", Real_007_gt={"box": BOX, "gate": "hidden, returned"})
    (films / "Real_007_wan.mp4").touch()
    more = by_eye(
        tmp_path / "more",
        Real_007__gt={"target": "hidden, returned", "view": "left, returned", "box": BOX},
        Real_007__wan={"target": "?", "view": "never left"},
        Park_001__svc={"target": "never hidden", "box": BOX, "name": "dog", "clip": "dog.mp4"},
    )
    (more / "dog.mp4").touch()
    truth, wan, dog = read_labelled_clips([films, more])
    assert truth.verdict == "hidden, returned" and truth.view == "left, returned" and truth.source == "films"
    assert (wan.verdict, wan.view, wan.box, wan.scene) == ("", "never left", None, "Real_007")
    assert wan.reference == truth.clip
    assert (dog.name, dog.source, dog.target, dog.view) == ("Park_001_svc", "more", "dog", "")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"target": "gone", "box": BOX}, "has the verdict 'gone'"),
        ({"target": "never hidden"}, "needs a `box`"),
        ({"box": BOX}, "needs `target`"),
        ({"target": "never hidden", "box": BOX}, "name the folder of a_b"),
    ],
)
def test_a_broken_note_is_told(tmp_path, row, says):
    with pytest.raises(UsageError, match=says):
        read_labelled_clips([by_eye(tmp_path / "a", a__b=row)])


def test_files_that_contradict_each_other_are_told(tmp_path):
    films = by_hand(tmp_path / "films", a_b={"box": BOX, "gate": "hidden, returned"})
    by_eye(films, a__b={"target": "never hidden", "box": BOX})
    with pytest.raises(UsageError, match=r"labelled 'hidden, returned' and 'never hidden'"):
        read_labelled_clips([films])


def test_numbered_sources_are_one_scene(tmp_path):
    folder = by_hand(tmp_path / "a", small={"box": BOX, "gate": "never hidden"})
    (folder / "manifest.json").write_text(json.dumps({"small": {"path": "videos/Barnyard_001_svc.mp4"}}))
    assert read_labelled_clips([folder])[0].scene == "Barnyard_001"


def test_lines_of_raters(tmp_path):
    (tmp_path / "cup.mp4").touch()

    def line(rater: str, answer: str, **more: object) -> str:
        known = {
            "task": "marks",
            "rater": rater,
            "question": "target",
            "case": "cup@m",
            "sample": "cup",
            "clip": "cup.mp4",
        }
        boxes = [{"name": "cup", "frame": 0, "box": BOX}]
        return json.dumps({"schema": 1, **known, "answer": answer, "boxes": boxes, **more})

    lines = [
        line("a", "hidden, returned", frames={"gone": 10, "back": 40}),
        line("b", "hidden, returned", frames={"gone": 14, "back": 44}),
        line("c", "never hidden"),
        line("a", "yes", task="failure", question="state_reset", boxes=[]),
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    (found,) = read_labelled_clips([tmp_path])
    assert found.verdict == "hidden, returned" and found.gone == 14 and found.scene == "cup"
    assert found.failures == {"state_reset": True} and found.box == tuple(BOX)


def labelled(name: str, verdict: str, kind: str = "i", scene: str = "") -> Labelled:
    return Labelled(name, Path(f"{name}.mp4"), scene or name, (0.1, 0.2, 0.3, 0.4), verdict=verdict, kind=kind)


def test_right_wrong_and_undecided_by_clips_and_scenes():
    clips = [labelled(name, "never hidden", scene=name[0]) for name in ("a1", "a2", "b1", "c1")]
    said = {"a1": "never hidden", "a2": "hidden, returned", "b1": "cannot tell", "c1": "never hidden"}
    made = count_outcomes(clips, lambda clip: said[clip.name])
    assert [made["clips"][name] for name in ("n", "right", "wrong", "undecided")] == [4, 2, 1, 1]
    assert [made["scenes"][name] for name in ("n", "right", "wrong", "undecided")] == [3, 1, 1, 1]
    assert made["clips"]["wrong_interval"] == wilson_interval(1, 4)


def test_calibration_counts_decided_verdicts_only():
    rows = [
        {"outcome": "right", "confidence": 1.0},
        {"outcome": "wrong", "confidence": 0.25},
        {"outcome": "undecided", "confidence": None},
    ]
    assert [(row["confidence"], row["right"], row["n"]) for row in confidence_calibration(rows)] == [
        (0.25, 0, 1),
        (1.0, 1, 1),
    ]


def test_the_whole_table():
    clips = [labelled("a", "hidden, returned"), labelled("b", "never hidden", "iii"), labelled("c", "")]
    records = []
    for clip, label in zip(clips, ("hidden, returned", "hidden, returned", "cannot tell"), strict=True):
        case = Case(clip.name, "folder", "labelled", clip.scene, Clip(clip.clip))
        state = "unsure" if label == "cannot tell" else "open"
        facts = {"confidence": 1.0, "sentence": "so it is"}
        records.append(Record(case, "target_return", True, state, label=label, facts=facts))
        if clip.name == "a":
            records.append(Record(case, "target_reappearance", False, "scored", 1.0))
    found = {
        "set": "lite",
        "unread": {},
        "failed": {},
        **compare_with_labels(clips, Results([record.case for record in records if record.is_gate], records)),
    }
    assert found["target"]["all"]["clips"]["wrong"] == 1 and found["target"]["kinds"]["i"]["clips"]["right"] == 1
    assert found["target"]["always never hidden"]["clips"]["wrong"] == 1
    assert found["target"]["hides"]["clips"]["right"] == 1 and found["target"]["sources"][""]["clips"]["n"] == 2
    assert found["target_reappearance"] == {"right": 1, "unscored": 1}
    text = real_table(found)
    assert "wrong: b is 'never hidden', said 'hidden, returned'" in text and "always 'never hidden'" in text


def test_what_failed_or_was_not_read_is_neither_right_nor_undecided():
    """Such clips were counted as undecided, and nobody was told."""
    clips = [labelled(name, "never hidden") for name in ("answered", "failed", "unread")]
    cases = {clip.name: Case(clip.name, "folder", "labelled", clip.scene, Clip(clip.clip)) for clip in clips}
    records = [
        Record(cases["answered"], "target_return", True, "closed", label="never hidden"),
        Record(cases["failed"], "target_return", True, "failed"),
    ]
    found = compare_with_labels(clips, Results([cases["answered"], cases["failed"]], records))
    counts = found["target"]["all"]["clips"]
    assert (counts["n"], counts["right"], counts["undecided"]) == (1, 1, 0)
    assert [row["outcome"] for row in found["clips"]] == ["right", "", ""]
    table = real_table(
        {"set": "lite", **found, "unread": {"unread": "no such file"}, "failed": {"failed": "no memory"}}
    )
    assert "not read: unread: no such file" in table and "failed, and not counted: failed: no memory" in table


@pytest.mark.long
def test_situations_are_labelled_by_their_masks(tmp_path, monkeypatch):
    from revisit.audit import situations

    chosen = {name: situations.SITUATIONS[name] for name in ("grows_in_view", "walks_out", "walks_out_and_back")}
    monkeypatch.setattr(situations, "SITUATIONS", chosen)
    monkeypatch.setattr(situations, "SIZE", (96, 160))
    monkeypatch.setattr(situations, "FRAMES", 13)
    found = {clip.kind: clip for clip in read_labelled_clips([situations.render_situations(tmp_path / "s")])}
    assert {kind: clip.verdict for kind, clip in found.items()} == {
        "grows_in_view": "never hidden", "walks_out": "hidden, not returned", "walks_out_and_back": "hidden, returned",
    }  # fmt: skip
    back = found["walks_out_and_back"]
    assert back.gone is not None and back.back is not None and 2 <= back.gone < back.back <= 11
    assert len({clip.scene for clip in found.values()}) == 3


def test_a_damaged_manifest_is_named(tmp_path):
    folder = by_hand(tmp_path / "a", cup={"box": BOX, "gate": "never hidden"})
    (folder / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json: this is not JSON"):
        read_labelled_clips([folder])
