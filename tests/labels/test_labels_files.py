"""labels.jsonl: what is written is read, paths begin at the file, and every fault is told with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.labels.agreement import agreement_report
from revisit.labels.alignment import majority_votes
from revisit.labels.label import Box, Label, label_lines, label_to_json, read_label_files
from revisit.labels.label_files import export_files, import_labels, load_labels, preference_pairs

MARKS = Label(
    "marks", "m1", "ann", "target", "hidden, returned", "cup@wan", model="wan", sample="cup", digest="ab" * 32,
    frames={"gone": 31, "back": 60}, boxes=(Box("cup", (0.1, 0.2, 0.35, 0.5)),), comment='"<b>ü\u202e', seconds=3.5,
    at="2026-01-02T03:04:05Z",
)  # fmt: skip


def test_labels_survive_and_paths_begin_at_the_file(tmp_path):
    clip = tmp_path / "clips/cup.mp4"
    label = replace(MARKS, clip=str(clip))
    file = tmp_path / "study/labels.jsonl"
    file.parent.mkdir()
    file.write_text("\n".join(label_lines([label], file.parent)) + "\n\n")
    assert json.loads(file.read_text().splitlines()[0])["clip"] == "../clips/cup.mp4"
    found = read_label_files([tmp_path / "study"])
    assert Path(found[0].clip).resolve() == clip.resolve()
    assert replace(found[0], clip=str(clip)) == label
    assert "other" not in label_to_json(label) and label_to_json(label)["schema"] == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "reads schema 1"),
        ({"task": "guess"}, "unknown task 'guess'"),
        ({"rater": ""}, "'rater' is missing"),
        ({"who": "me"}, "unknown field 'who'"),
        ({"answer": "perhaps"}, "expected one of never hidden"),
        ({"frames": {"gone": 1.5}}, "whole numbers"),
        ({"frames": {"gone": -1}}, "whole numbers"),
        ({"boxes": [{"box": [0.5, 0, 0.1, 1]}]}, "as fractions of the frame"),
        ({"boxes": [3]}, "docs/labels.md"),
        ({"seconds": "long"}, "docs/labels.md"),
    ],
)
def test_faults_are_named(tmp_path, change, said):
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps(label_to_json(MARKS)) + "\n" + json.dumps({**label_to_json(MARKS), **change}) + "\n")
    with pytest.raises(UsageError, match="line 2") as caught:
        read_label_files([file])
    assert said in str(caught.value)


def test_no_file_and_no_json(tmp_path):
    with pytest.raises(UsageError, match="neither a project nor a file of labels"):
        read_label_files([tmp_path])
    (tmp_path / "labels.jsonl").write_text("{")
    with pytest.raises(UsageError, match="line 1: not JSON"):
        read_label_files([tmp_path])


def wrbench_vote(pair: int, rater: str, shown: str, better: str) -> dict[str, object]:
    """A row of a public file: the models stand in the order in which this rater saw them."""
    one, other = shown[0], shown[1]
    return {
        "pair_id": f"p{pair}", "record": f"s{pair}/yaw", "video_a": f"s{pair}@{one}", "video_b": f"s{pair}@{other}",
        "model_a": one, "model_b": other, "metric": "same_look", "annotator": rater, "y": 1 if better == one else -1,
    }  # fmt: skip


def mbench_vote(pair: int, rater: str, shown: str, better: str) -> dict[str, object]:
    return {
        "subset": "S", "sample_id": f"s{pair}", "condition_id": "c", "annotator": rater, "dimension": "same_look",
        "model_a": shown[0], "model_b": shown[1], "preference": "A" if better == shown[0] else "B",
    }  # fmt: skip


@pytest.mark.parametrize(("shape", "row_of"), [("wrbench", wrbench_vote), ("mbench", mbench_vote)])
def test_raters_who_saw_a_pair_the_other_way_round_agree(tmp_path, shape, row_of):
    """Both prefer x twice and y twice; one saw x on the left and one on the right."""
    rows = [
        row_of(pair, rater, shown, "xxyy"[pair]) for pair in range(4) for rater, shown in (("r1", "xy"), ("r2", "yx"))
    ]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_labels(tmp_path / "votes.jsonl", shape, tmp_path / "labels.jsonl") == 8
    labels = load_labels([tmp_path / "labels.jsonl"])
    report = agreement_report(labels)
    (row,) = report.rows
    assert (row.rated_twice, row.split, row.alike) == (4, 0, 1.0)
    assert row.cohen.value == row.alpha.value == row.ac1.value == 1.0  # two identical columns of ratings
    assert sorted(round(one.left, 2) for one in report.raters) == [0.5, 0.5]
    assert [vote.verdict for vote in majority_votes(labels)] == [1, 1, -1, -1]
    assert len(preference_pairs(labels, {})) == 4


def test_marks_without_frames_have_no_key_frames(tmp_path):
    bare = replace(MARKS, model="reference", frames={}, boxes=())
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(label_lines([bare, replace(bare, rater="b", frames={"gone": 30, "back": 40})], tmp_path)))
    assert any(path.name == "marks.csv" for path in export_files(file, tmp_path / "out"))
    assert (tmp_path / "out/marks.csv").read_text().splitlines()[1:] == ["cup,30,40"]
    file.write_text("\n".join(label_lines([bare], tmp_path)))
    assert not any(path.name == "marks.csv" for path in export_files(file, tmp_path / "none"))


@pytest.mark.parametrize("text", ["{", '{"schema": 1}'])
def test_a_damaged_project_is_named(tmp_path, text):
    (tmp_path / "project.json").write_text(text)
    with pytest.raises(UsageError, match=r"project\.json: this is not a project"):
        load_labels([tmp_path])
