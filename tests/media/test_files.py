"""Files that one process writes at a time."""

from __future__ import annotations

import errno

from revisit.media.files import try_lock_file


def test_a_file_is_locked_once(tmp_path):
    with (tmp_path / "log").open("a") as first, (tmp_path / "log").open("a") as second:
        assert try_lock_file(first)
        assert not try_lock_file(second)
    with (tmp_path / "log").open("a") as third:  # closed files are free
        assert try_lock_file(third)


def test_where_no_file_can_be_locked_work_goes_on(tmp_path, monkeypatch):
    """`generate` was refused on such file systems, as if another run were making the clips."""

    def refuse_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("revisit.media.files.fcntl.flock", refuse_lock)
    with (tmp_path / "log").open("a") as file:
        assert try_lock_file(file)
