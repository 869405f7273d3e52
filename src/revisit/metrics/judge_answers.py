"""Judge answers: are a judge's answers about a clip complete, and can they be trusted?"""

from __future__ import annotations

from revisit.core import Unscored
from revisit.evidence.judged import PASSED


def mistrusted(canary: str) -> Unscored | None:
    """The reason not to use a judge's answers about this clip, if there is one."""
    return None if canary in ("", PASSED) else Unscored("untrusted", f"the judge failed a control question: {canary}")
