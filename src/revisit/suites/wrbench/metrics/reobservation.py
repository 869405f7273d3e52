"""Re-observation: was the subject hidden, did it return, and can the return be judged?

The rule on the ordered seconds is WRBench's (arXiv 2606.20545): the subject must have been judgeable; the first second
without it after that hides it; any judgeable second after that is its return. A clip that does not get there is looked
at again with more evidence; then its seconds and the judge's own word both have to agree, for place and state alike.
"""

from __future__ import annotations

import numpy as np

from revisit.core import GateResult, Series, Unscored, gate
from revisit.evidence.judged import failed_canary
from revisit.suites.wrbench.evidence import Judgeability, regime

LABELS = {
    "returned": "hidden, returned",
    "no return": "hidden, not returned",
    "never hidden": "never hidden",
    "late": "not seen at first",
    "never judgeable": "never seen",
}
REASONS = {
    "no return": "the subject left the view and did not return",
    "never hidden": "the subject never left the view",
    "late": "the subject was not judgeable at first, and never left the view after that",
    "never judgeable": "the subject was never judgeable",
}
UPSTREAM = {  # what WRBench's own gate calls it
    "no return": "no_return",
    "never hidden": "no_oov",
    "late": "no_initial_judgeable",
    "never judgeable": "no_initial_judgeable",
}


@gate(id="wr_reobservation", version=2, title="Return that can be judged", needs=(Judgeability,))
def reobservation(judged: Judgeability) -> GateResult | Unscored:
    """Open if the subject was seen, then hidden, then seen again, as a judge says second by second."""
    label, seconds = regime(judged.seconds), judged.seconds
    facts: dict[str, object] = {"judge": judged.judge, "subject": judged.subject, "problems": list(judged.problems)}
    # The second look adds support only where the judge also says that place and state can be judged.
    agreed = judged.second_spatial == 1 and judged.second_state == 1
    if label != "returned" and regime(judged.second_seconds) == "returned" and agreed:
        label, seconds = "returned", judged.second_seconds
        facts["by"] = "second look"
    if label == "unknown":
        return Unscored("unanswered", "the judge gave no valid answer about the seconds of the clip", facts)
    facts |= {"upstream_reason": UPSTREAM[label]} if label in UPSTREAM else {}
    units = Series(second=np.arange(len(seconds)), value=seconds)
    if doubt := failed_canary(judged.canary):
        return GateResult("unsure", "cannot tell", doubt.sentence, facts, units)
    if label == "returned":
        return GateResult("open", LABELS[label], facts=facts, units=units)
    return GateResult("closed", LABELS[label], REASONS[label], facts, units)
