"""Wording: fixed sentences of WRBench's prompts, read from the user's own copy of WRBench.

The published data hold scenes, subjects, anchors and events; the words that join them to a prompt stand in WRBench's
code. They are read from there as text, and nothing is run. Without a copy the same fields are joined by words of ours.

A copy is found around the data (`<copy>/src/wrbench/data/natural25`), where the user names one, or among the installed
packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from revisit.core import UsageError

FIELDS = ("scene", "subject", "interactor", "open_surface", "anchor_text", "tail")  # of a prompt for text alone
OWN_LAYOUT = "In {scene}, {subject}; {interactor}. There is {open_surface}. {anchor_text}. {tail}"
LAYOUT_FILE, CAMERA_FILE = Path("datasets.py"), Path("prompts/camera_text.py")
KEEP, BACK = "_HAILUO_FIRST_FRAME_PRESERVATION", "_HAILUO_RETURN_CLAUSES"


@dataclass(frozen=True)
class Wording:
    """The words that join the fields of the data to a prompt."""

    layout: str = OWN_LAYOUT  # with a hole for each of FIELDS
    keep: str = ""  # asks Hailuo to keep the first frame
    back: Mapping[str, str] = field(default_factory=dict)  # camera -> asks Hailuo to come back
    source: Path | None = None  # the copy of WRBench that they were read from

    def format_layout_prompt(self, layout: Mapping[str, Any], tail: str) -> str:
        """The prompt of a scene for a generator that gets no first frame, from its fields and the event's tail."""
        plain = {name: str(layout[name]).strip().rstrip(".").strip() for name in FIELDS[:4]}
        anchors = " and ".join([name.strip() for name in layout["anchors"] if name.strip()][:2])
        return self.layout.format(**plain, anchor_text=anchors[:1].upper() + anchors[1:], tail=tail)


def read_wording_of_copy(data: Path, copy: Path | None = None) -> Wording:
    """The wording of the user's copy of WRBench; ours where there is none.

    Parameters
    ----------
    data
        Folder of the published data, which may lie in a copy.
    copy
        A copy that the user names: its root, or the package in it.

    Raises
    ------
    UsageError
        Where the copy that the user names has no such files.
    """
    if copy is not None:
        places = [copy, copy / "src/wrbench", copy / "wrbench"]
    else:
        spec = find_spec("wrbench")
        installed = spec.submodule_search_locations if spec is not None else None
        places = [data.resolve().parent.parent, *map(Path, installed or ())]
    package = next((place for place in places if (place / LAYOUT_FILE).is_file()), None)
    if package is None and copy is not None:
        raise UsageError(f"{copy}: no copy of WRBench; expected src/wrbench/{LAYOUT_FILE} in it")
    if package is None:
        return Wording()
    layout = next(_layout_templates(package / LAYOUT_FILE), OWN_LAYOUT)
    constants = dict(_literal_constants(package / CAMERA_FILE))
    keep, back = constants.get(KEEP), constants.get(BACK)
    return Wording(
        layout,
        keep if isinstance(keep, str) else "",
        back if isinstance(back, dict) else {},
        package if layout != OWN_LAYOUT or keep else None,
    )


def _layout_templates(path: Path) -> Iterator[str]:
    """Texts with a hole for each of FIELDS."""
    for node in ast.walk(_parse_python_file(path)):
        if isinstance(node, ast.JoinedStr):
            parts = [_template_piece(part) for part in node.values]
            holes = [part[1:-1] for part in parts if part.startswith("{") and part[1:-1] in FIELDS]
            if sorted(holes) == sorted(FIELDS) and "" not in parts:
                yield "".join(parts)


def _template_piece(part: ast.expr) -> str:
    """A piece of a formatted text: words, or a hole in braces; empty for anything else."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return part.value.replace("{", "{{").replace("}", "}}")
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        return f"{{{part.value.id}}}"
    return ""


def _literal_constants(path: Path) -> Iterator[tuple[str, Any]]:
    """Names and values that a file of Python sets to plain texts, lists or tables."""
    for node in _parse_python_file(path).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr):
            with suppress(ValueError, TypeError, MemoryError, RecursionError):
                yield target.id, ast.literal_eval(value)


def _parse_python_file(path: Path) -> ast.Module:
    """The syntax of a file; of nothing where it is not there or no Python."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ast.parse("")
