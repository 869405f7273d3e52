"""Through how many files the source of `revisit eval` passes, and how often it comes back to one of them.

python benchmarks/call_path.py                # renders a small folder, evaluates it, prints the numbers
python benchmarks/call_path.py --show         # and every step: the file, the function, and the name of the argument

A step is a call of a function of this package with an argument that is the source, or an object with the source in one
of its fields; a second line of numbers counts paths of clips within the source, too. Steps within one file, one after
the other, count once, and so does a hand-over from one file to another that is repeated for every clip. A return is a
hand-over to a file that was left before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import revisit

PACKAGE = Path(revisit.__file__).parent
ITEMS = 20  # of a list or an object that are looked at


class Step(NamedTuple):
    """A function that was given the source, or a path within it, and the name of the argument."""

    file: str
    function: str
    argument: str
    whole: bool  # the source itself

    def __str__(self) -> str:
        return f"{self.file}: {self.function}({self.argument}){'' if self.whole else ' within'}"


def is_given(value: Any, match: Callable[[str], bool], depth: int = 2) -> bool:
    """Whether a value is such a path, or has one in its fields or among its first items, or those of these."""
    if isinstance(value, str | Path):
        return match(str(value))
    if not depth or value is None or isinstance(value, bool | int | float | bytes | type):
        return False
    if isinstance(value, dict):
        items: Sequence[Any] = list(value.values())
    elif isinstance(value, list | tuple):
        items = value
    else:
        items = list(getattr(value, "__dict__", {}).values())
    return any(is_given(item, match, depth - 1) for item in items[:ITEMS])


def steps_of(call: Callable[[], None], source: Path) -> list[Step]:
    """The steps while `call` runs in this process."""
    steps: list[Step] = []
    text = str(source)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)) or code.co_name.startswith("<"):
            return
        file, function = str(Path(code.co_filename).relative_to(PACKAGE)), getattr(code, "co_qualname", code.co_name)
        values = frame.f_locals
        names = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name in values]
        for whole, match in ((True, text.__eq__), (False, lambda path: path.startswith(text))):
            for name in names:
                if is_given(values[name], match):
                    steps.append(Step(file, function, name, whole))
                    return

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return steps


def counts(steps: Sequence[Step]) -> str:
    """Files that the source comes to, and distinct hand-overs back to one that it left."""
    files = [step.file for step in steps]
    left: set[str] = set()
    returns = set()
    for before, after in pairwise(files):
        if after != before:
            left.add(before)
            if after in left:
                returns.add((before, after))
    return f"{len(set(files))} files, {len(returns)} returns"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print every step")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        os.environ["REVISIT_CACHE"] = str(work / "cache")
        render = ["world", "render", "--suite", "folder", "--seeds", "1", "--size", "64x96", "--frames", "13"]
        command = [sys.executable, "-m", "revisit", *render, "--failures", "perfect,vanish", "--out", str(work)]
        subprocess.run(command, check=True, capture_output=True)
        source = work / "folder"

        def evaluate() -> None:
            from revisit.cli.main import run

            sys.argv = ["revisit", "eval", str(source), "--out", str(work / "run"), "--workers", "0", "--quiet"]
            with suppress(SystemExit):
                run()

        steps = steps_of(evaluate, source)
    if asked.show:
        for step in dict.fromkeys(steps):
            print(step)
    print(f"the source: {counts([step for step in steps if step.whole])}")
    print(f"with paths within it: {counts(steps)}")


if __name__ == "__main__":
    main()
