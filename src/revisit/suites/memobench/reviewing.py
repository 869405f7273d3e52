"""Reviewing: the third filter of the question bank, by people: what most reviewers keep, in the words they give it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from revisit.core import UsageError
from revisit.stats.agreement import majority
from revisit.suites.memobench.questions import Bank, find_bank, read_bank, thin_dimensions, write_bank

Said = tuple[str, str, str, str]  # clip, number of the question, keep, edit or drop, its words


def reviewed(bank: Bank, said: Sequence[Said]) -> Bank:
    """The bank with its final questions as most reviewers want them; what they are split on stays as it is."""
    votes: dict[int, list[Said]] = defaultdict(list)
    for one in said:
        votes[int(one[1])].append(one)
    kept = []
    for question in bank.final:
        mine = votes.get(question.id, [])
        wanted = majority(["drop" if answer == "drop" else "stay" for _, _, answer, _ in mine])
        if wanted == "drop":
            continue
        edits = Counter(text for _, _, answer, text in mine if answer == "edit")
        if sum(edits.values()) * 2 > len(mine):
            question = replace(question, text=edits.most_common(1)[0][0])
        kept.append(question)
    return replace(bank, final=tuple(kept))


def reviewed_banks(folder: Path, said: Iterable[Said], out: Path) -> list[str]:
    """Write the reviewed banks of all clips that were reviewed; say what became of each."""
    clips: dict[str, list[Said]] = defaultdict(list)
    for one in said:
        clips[one[0]].append(one)
    if not clips:
        raise UsageError("there are no reviews among these labels")
    lines = []
    out.mkdir(parents=True, exist_ok=True)
    for clip, mine in sorted(clips.items()):
        path = find_bank(folder, clip)
        if path is None:
            raise UsageError(f"{folder} has no bank of {clip}")
        bank = read_bank(path)
        made = reviewed(bank, mine)
        (out / path.name).write_bytes(write_bank(made).encode())
        before = {question.id: question.text for question in bank.final}
        edited = sum(before[question.id] != question.text for question in made.final)
        thin = ", ".join(f"{name} {n}" for name, n in thin_dimensions(made.final).items())
        told = f"{clip}: {len(made.final)} of {len(bank.final)} questions kept, {edited} of them in new words"
        lines.append(told + (f"; too few left: {thin}" if thin else ""))
    return lines
