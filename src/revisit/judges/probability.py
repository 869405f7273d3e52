"""The probability of yes, from the log-probabilities that a server gives with its reply (docs/judges.md).

p_yes = e^Y / (e^Y + e^N), where Y and N are log-sum-exp over the spellings of yes and of no ("Yes", " yes",
"YES.", ...) among the alternatives at the token that begins the answer. Where only one of the two words is among them,
the other is taken to be as likely as the least likely alternative that is listed, or as all that are not listed
together, whichever is less; that is said. Entries that hold several tokens are read as they come: the answer is looked
up in their joined text, and where a word is split over entries there is no p_yes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.judges.questions import without_thinking

MASKED = -9000.0  # servers write -9999 for a token that a grammar forbids
ANSWER = re.compile(r"(?<![a-z])(yes|no)(?![a-z])", re.IGNORECASE)


def p_yes(reply: str, logprobs: Mapping[str, Any] | None) -> tuple[float | None, str]:
    """The probability of yes and how it was got; None, and why, where the server does not tell."""
    entries = (logprobs or {}).get("content")
    if not isinstance(entries, list) or not entries:
        return None, "none: the server gave no log-probabilities"
    entry = _at_answer(reply, [entry for entry in entries if isinstance(entry, dict)])
    if entry is None:
        return None, "none: the log-probabilities do not show where the answer begins"
    seen: dict[str, list[float]] = {"yes": [], "no": []}
    listed = []
    alternatives: list[Mapping[str, Any]] = [
        found for found in entry.get("top_logprobs") or () if isinstance(found, dict)
    ]
    if not any(found.get("token") == entry.get("token") for found in alternatives):
        alternatives.append(entry)
    for found in alternatives:
        value = found.get("logprob")
        if not isinstance(value, int | float) or math.isnan(value):
            continue
        masked = value <= MASKED
        if not masked:
            listed.append(float(value))
        word = _plain(str(found.get("token", "")))
        if word in seen:
            seen[word].append(-math.inf if masked else float(value))
    return _weigh(seen["yes"], seen["no"], listed)


def _weigh(yes: Sequence[float], no: Sequence[float], listed: Sequence[float]) -> tuple[float | None, str]:
    """The share of yes, where the log-probabilities of its spellings and of no's are known."""
    if not (yes or no) or not listed:
        return None, "none: neither yes nor no is among the alternatives"
    how = "log-probabilities"
    if not yes or not no:
        how += f"; {'no' if yes else 'yes'} is not among {len(listed)} alternatives, and less likely than these"
    rest = 1 - sum(math.exp(value) for value in listed)
    unlisted = min(min(listed), math.log(rest)) if rest > 0 else min(listed)
    high, low = log_sum_exp(yes or [unlisted]), log_sum_exp(no or [unlisted])
    if max(high, low) == -math.inf:
        return None, "none: yes and no are both masked"
    return round(1 / (1 + math.exp(min(low - high, 700.0))), 6), how


def log_sum_exp(values: Sequence[float]) -> float:
    """log of the sum of exponentials, without overflow."""
    top = max(values)
    return top if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in values))


def _at_answer(reply: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The entry whose text holds the first yes or no of the answer."""
    texts = [str(entry.get("token", "")).replace("Ġ", " ").replace("▁", " ") for entry in entries]
    joined = "".join(texts)
    start = len(joined) - len(without_thinking(joined))
    found = ANSWER.search(joined, start)
    if found is None or ANSWER.search(without_thinking(reply)) is None:
        return None
    position = 0
    for entry, text in zip(entries, texts, strict=True):
        if position + len(text) > found.start():
            return entry if _plain(text) in ("yes", "no") else None
        position += len(text)
    return None


def _plain(token: str) -> str:
    """A token without what may stand around its word; letters within, such as in `não`, are kept."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", token.replace("Ġ", " ").lower())
