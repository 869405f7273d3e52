"""Judge answers: whether the answers of a judge about a clip are whole, and whether they are trusted at all."""

from __future__ import annotations

from revisit.core import Unscored
from revisit.evidence.judged import PASSED


def mistrusted(canary: str) -> Unscored | None:
    """The reason not to use a judge's answers about this clip, if there is one."""
    return None if canary in ("", PASSED) else Unscored("untrusted", f"the judge failed a control question: {canary}")
