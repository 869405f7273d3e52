"""Reviewing: the third filter of the question bank, by people: what most reviewers keep, in the words they give it.

`revisit labels export` writes reviews.json: clip -> number of a question -> decision (keep, edit, drop, undecided) and
its new words. What reviewers are split on stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.texts import parse_json
from revisit.suites.memobench.banks import Bank, find_bank, read_bank, thin_dimensions, write_bank


def read_reviews(path: Path) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The reviews of a file, or of a folder with a reviews.json."""
    path = path / "reviews.json" if path.is_dir() else path
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        sound = all(isinstance(one["decision"], str) for clip in content.values() for one in clip.values())
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        sound = False
    if not sound or not content:
        raise UsageError(f"{path}: no reviews in it; `revisit labels export` writes them as reviews.json")
    found: Mapping[str, Mapping[str, Mapping[str, Any]]] = content
    return found


def reviewed(bank: Bank, said: Mapping[str, Mapping[str, Any]]) -> Bank:
    """The bank with its final questions as most reviewers want them."""
    kept = []
    for question in bank.final:
        mine = said.get(str(question.id), {"decision": "keep"})
        if mine["decision"] == "edit" and mine.get("text"):
            question = replace(question, text=str(mine["text"]))
        if mine["decision"] != "drop":
            kept.append(question)
    return replace(bank, final=tuple(kept))


def reviewed_banks(folder: Path, reviews: Path, out: Path) -> list[str]:
    """Write the reviewed banks of all clips that were reviewed; say what became of each."""
    lines = []
    for clip, mine in sorted(read_reviews(reviews).items()):
        path = find_bank(folder, clip)
        if path is None:
            raise UsageError(f"{folder} has no bank of {clip}")
        bank = read_bank(path)
        made = reviewed(bank, mine)
        out.mkdir(parents=True, exist_ok=True)
        (out / path.name).write_bytes(write_bank(made).encode())
        before = {question.id: question.text for question in bank.final}
        edited = sum(before[question.id] != question.text for question in made.final)
        thin = ", ".join(f"{name} {n}" for name, n in thin_dimensions(made.final).items())
        told = f"{clip}: {len(made.final)} of {len(bank.final)} questions kept, {edited} of them in new words"
        lines.append(told + (f"; too few left: {thin}" if thin else ""))
    return lines
