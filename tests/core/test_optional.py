"""Libraries that are imported where they are used."""

from __future__ import annotations

import pytest

from revisit.core import MissingPrerequisite
from revisit.core.optional import import_optional


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "a_library is not installed; `pip install"),
        (
            "import something_that_nobody_has",
            "a_library is installed, but cannot be imported .*something_that_nobody_has",
        ),
        ("raise ImportError('libGL.so.1: no such file')", "a_library is installed, but cannot be imported .*libGL"),
    ],
)
def test_a_library_that_is_there_and_fails_is_not_called_missing(content, sentence, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    if content is not None:
        (tmp_path / "a_library.py").write_text(content)
    with pytest.raises(MissingPrerequisite, match=sentence):
        import_optional("a_library", "tables")
