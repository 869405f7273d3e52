"""The probability of yes, from the log-probabilities that a server gives with its reply (docs/judges.md).

p_yes = e^Y / (e^Y + e^N), where Y and N are log-sum-exp over the spellings of yes and of no ("Yes", " yes",
"YES.", ...) among the alternatives at the token that begins the answer. Where only one of the two words is among them,
the other is taken to be as likely as the least likely alternative that is listed, or as all that are not listed
together, whichever is less; that is said. Entries that hold several tokens are read as they come: the answer is looked
up in their joined text, and where a word is split over entries there is no p_yes. A reply that is no answer has no
p_yes: the first token of "No way to tell" says nothing about yes and no.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from revisit.judges.questions import Malformed, YesNo, parse_answer_and_passage
from revisit.judges.replies import AROUND_TOKEN, Passage, fold_wide_and_invisible, strip_thinking

MASKED = -9000.0  # servers write -9999 for a token that a grammar forbids
ANSWER = re.compile(r"(?<![a-z])(yes|no)(?![a-z])", re.IGNORECASE)


def p_yes_and_source(reply: str, logprobs: Mapping[str, object] | None) -> tuple[float | None, str]:
    """The probability of yes and how it was got; None, and why, where the server does not tell."""
    entries = (logprobs or {}).get("content")
    if not isinstance(entries, list) or not entries:
        return None, "none: the server gave no log-probabilities"
    entry = _token_entry_of_answer(reply, [entry for entry in entries if isinstance(entry, dict)])
    if entry is None:
        return None, "none: the reply is no plain answer, or the log-probabilities do not show where the answer begins"
    values_by_word: dict[str, list[float]] = {"yes": [], "no": []}
    listed = []
    top = entry.get("top_logprobs")
    alternatives: list[Any] = [one for one in top if isinstance(one, dict)] if isinstance(top, list) else []
    if not any(alternative.get("token") == entry.get("token") for alternative in alternatives):
        alternatives.append(entry)
    for alternative in alternatives:
        value = alternative.get("logprob")
        if not isinstance(value, int | float) or math.isnan(value):
            continue
        masked = value <= MASKED
        if not masked:
            listed.append(float(value))
        word = _strip_token_to_word(str(alternative.get("token", "")))
        if word in values_by_word:
            values_by_word[word].append(-math.inf if masked else float(value))
    return _p_yes_from_log_probs(values_by_word["yes"], values_by_word["no"], listed)


def _p_yes_from_log_probs(
    yes: Sequence[float], no: Sequence[float], listed: Sequence[float]
) -> tuple[float | None, str]:
    """The share of yes, where the log-probabilities of its spellings and of no's are known."""
    if not (yes or no) or not listed:
        return None, "none: neither yes nor no is among the alternatives"
    source = "log-probabilities"
    if not yes or not no:
        source += f"; {'no' if yes else 'yes'} is not among {len(listed)} alternatives, and less likely than these"
    unlisted_mass = 1 - sum(math.exp(value) for value in listed)
    unlisted = min(min(listed), math.log(unlisted_mass)) if unlisted_mass > 0 else min(listed)
    high, low = log_sum_exp(yes or [unlisted]), log_sum_exp(no or [unlisted])
    if max(high, low) == -math.inf:
        return None, "none: yes and no are both masked"
    return round(1 / (1 + math.exp(min(low - high, 700.0))), 6), source


def log_sum_exp(values: Sequence[float]) -> float:
    """log of the sum of exponentials, without overflow."""
    top = max(values)
    return top if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in values))


def is_first_yes_or_no(reply: str, passage: Passage) -> bool:
    """Whether the answer's word is the first yes or no behind the thoughts of a reply."""
    match = ANSWER.search(reply, len(reply) - len(strip_thinking(reply)))
    return match is not None and match.start() == _yes_no_start_in_reply(passage)


def _token_entry_of_answer(reply: str, entries: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """The entry that holds the word of the answer; None where the reply is no answer or its word is split."""
    texts = [str(entry.get("token", "")).replace("Ġ", " ").replace("▁", " ") for entry in entries]
    joined = "".join(texts)
    try:
        _, passage = parse_answer_and_passage(YesNo(), reply)
    except Malformed:
        return None
    start, core = _yes_no_start_in_reply(passage), reply.strip()
    begin = joined.rfind(core)  # thoughts, or the token that ends the turn, may stand around it
    if start is None or begin < 0:
        return None
    start += begin - reply.index(core)
    position = 0
    for entry, text in zip(entries, texts, strict=True):
        if position + len(text) > start:
            return entry if _strip_token_to_word(text) in ("yes", "no") else None
        position += len(text)
    return None


def _yes_no_start_in_reply(passage: Passage) -> int | None:
    """Where the yes or no of a passage begins in the reply; None where it is written otherwise, or stands twice."""
    marker = re.search(r'"(?:final[ _])?answer"\s*:\s*"?', passage.text, re.IGNORECASE)
    match = ANSWER.match(passage.text, marker.end()) if marker else ANSWER.search(passage.text)
    return passage.start + match.start() if match is not None else None


def _strip_token_to_word(token: str) -> str:
    """A token without what may stand around the word of an answer; other characters, as in `no?` or `não`, are kept."""
    return fold_wide_and_invisible(token.replace("Ġ", " ").replace("▁", " ")).strip(AROUND_TOKEN).lower()
