"""Errors of readers are sentences for who has the file, and name nothing of our code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.core.text import convert_read_errors, read_yaml_file


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{\n", "f: this is not a card (line 2: "),
        (b"\xff", "f: this is not a card (it is not UTF-8 text)"),
        (b"{}", "f: this is not a card (it has no models)"),
        (b'{"models": 5}', "f: this is not a card"),
        (b'{"models": {"a": "x"}}', "f: this is not a card (could not convert string to float: 'x')"),
    ],
)
def test_a_damaged_file_is_named_in_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused, convert_read_errors(path, "a card"):
        {name: float(size) for name, size in json.loads(path.read_text("utf-8"))["models"].items()}
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/{sentence}") and "Error" not in said and "\n" not in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"a: [\n  b: {", "f: this is not YAML (line 2)"), (b"\0\xff", "f: this is not YAML")],
)
def test_a_damaged_yaml_file_is_named_with_its_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_yaml_file(tmp_path / "f")
    assert str(refused.value) == f"{tmp_path}/{sentence}"
    with pytest.raises(UsageError, match=r"absent: it cannot be read \(No such file"):
        read_yaml_file(tmp_path / "absent")
