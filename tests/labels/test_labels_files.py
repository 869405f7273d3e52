"""labels.jsonl: what is written is read, paths begin at the file, and every fault is told with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.labels.label import Box, Label, label_lines, label_to_json, read_label_files

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
    with pytest.raises(UsageError, match="no such file"):
        read_label_files([tmp_path])
    (tmp_path / "labels.jsonl").write_text("{")
    with pytest.raises(UsageError, match="line 1: not JSON"):
        read_label_files([tmp_path])
