"""The prompt for the detector that looks for the target of a clip.

ORS moves by a factor of ten with them, so they belong to the protocol:

- `upstream`: of a synthetic clip what its prompt says after the first "sees" up to the mark "(subject)", whatever
  stands between (a comma too), and on to the next full stop or comma; of a real clip its `subject`;
- `paper`: the `subject`, "the target object's text description";
- `corrected`: a short noun phrase, which is what text-prompted detectors are made for: of a synthetic clip what stands
  before the mark in its clause, which a comma ends ("a pig"); of a real clip its `subject` without a participle left
  hanging at its end ("a test tube filled" is "a test tube").
"""

from __future__ import annotations

import re

from revisit.core import UsageError

RULES = ("corrected", "upstream", "paper")
SEES = re.compile(r"sees ([^.,]*\(subject\)[^.,]*)", re.IGNORECASE)
UPSTREAM_SEES = re.compile(r"sees (.*?\(subject\)[^.,]*)", re.IGNORECASE)
MARK = re.compile(r"\s*\(subject\).*", re.IGNORECASE | re.DOTALL)
HANGING = re.compile(r"\s+(filled|resting|standing)$", re.IGNORECASE)  # as they occur in the dataset


def ors_prompt(prompt: str, subject: str, split: str, rule: str = "upstream") -> str:
    """The words to ask with, from a clip's prompt and subject; `split` is Synthetic or Real."""
    if rule not in RULES:
        raise UsageError(f"unknown rule {rule!r} for the prompt of ORS; choose one of {', '.join(RULES)}")
    pattern = UPSTREAM_SEES if rule == "upstream" else SEES
    clause = pattern.search(prompt) if split.lower() == "synthetic" else None
    if rule == "paper" or clause is None:
        return HANGING.sub("", subject.strip()) if rule == "corrected" else subject.strip()
    found = clause.group(1).strip()
    return MARK.sub("", found) if rule == "corrected" else found


def ors_prompts(prompt: str, subject: str, split: str) -> dict[str, str]:
    """The words to ask with under every rule."""
    return {rule: ors_prompt(prompt, subject, split, rule) for rule in RULES}
