"""A judge's answers in this suite: where their files are, and how many questions have no answer.

The rules by which answers are read are in `revisit.evidence.answers`; the importer is
`revisit.suites.memobench.imports`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.core import Record
from revisit.results import Cell, Results
from revisit.results.tables import Table, table
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.memobench.names import parse_clip

SUFFIXES = (".csv", ".json", ".jsonl")


def find_answers(root: Path, model: str, clip: str) -> Path | None:
    """The file of answers about a clip of a model, or None.

    Looked for, first hit: `<root>/<model>/<name>` before `<root>/<name>`, where name is the bank's name of the clip
    (Zen_Garden-3, Real-7) before its folder's (ZenGarden_003, 007), as .csv before .json before .jsonl.
    """
    found = parse_clip(clip)
    for folder in (root / model, root):
        for name in (clip,) if found is None else found.bank_names:
            for suffix in SUFFIXES:
                path = folder / f"{name}{suffix}"
                if path.is_file():
                    return path
    return None


def answered_tables(results: Results) -> list[Table]:
    """A table of pass rates with the questions answered and asked, and what those left open could change; or none.

    The mean is over clips with an answer; the interval over all clips that were asked about, from all open questions
    failing to all of them passing.
    """
    rows = []
    for model, mine in results.groups().items():
        cells = [_cell(mine.about(f"memo_vqa_{short}")) for short in DIMENSIONS]
        if any(cell.of for cell in cells):
            rows.append((model, cells))
    note = (
        "percent passed, mean over clips (questions answered/asked); the interval assumes "
        "that unanswered questions all fail or all pass"
    )
    return [table("Questions answered", note, DIMENSIONS.values(), rows)] if rows else []


def _cell(records: Sequence[Record]) -> Cell:
    asked = [record for record in records if record.facts.get("asked")]
    scores = [record.value for record in asked if record.value is not None]
    answered, of = (sum(int(record.facts[name]) for record in asked) for name in ("answered", "asked"))
    if not scores:
        return Cell(answered, of)
    low, high = (sum(ends) / len(asked) for ends in zip(*(record.facts["interval"] for record in asked), strict=True))
    return Cell(answered, of, sum(scores) / len(scores), (low, high))
