"""Re-observation: was the subject hidden, did it return, and can the return be judged?

The rule on the ordered seconds is WRBench's (arXiv 2606.20545): the subject must have been judgeable; the first second
without it after that hides it; any judgeable second after that is its return. A clip that does not get there is looked
at again with more evidence; then its seconds and the judge's own word both have to agree, for place and state alike.
"""

from __future__ import annotations

import numpy as np

from revisit.core import GateResult, NoScore, Series, Unscored, gate
from revisit.evidence.judged import require_passed_canary
from revisit.suites.wrbench.evidence import Judgeability, classify_judgeable_seconds
from revisit.suites.wrbench.metrics import FACTS


@gate(id="wr_reobservation", version=2, title="Return that can be judged", needs=(Judgeability,))
def reobservation_gate(judged: Judgeability) -> GateResult | Unscored:
    """Open if the subject was seen, then hidden, then seen again, as a judge says second by second."""
    ending, seconds = classify_judgeable_seconds(judged.seconds), judged.seconds
    facts: dict[str, object] = {"judge": judged.judge, "subject": judged.subject, "problems": list(judged.problems)}
    # The second look adds support only where the judge also says that place and state can be judged.
    agreed = judged.second_spatial == 1 and judged.second_state == 1
    if ending != "returned" and classify_judgeable_seconds(judged.second_seconds) == "returned" and agreed:
        ending, seconds = "returned", judged.second_seconds
        facts["by"] = "second look"
    if ending == "unknown":
        return Unscored("unanswered", "the judge gave no valid answer about the seconds of the clip", facts)
    label, reason, upstream_reason = FACTS["endings"][ending]
    facts |= {"upstream_reason": upstream_reason} if upstream_reason else {}
    units = Series(second=np.arange(len(seconds)), value=seconds)
    try:
        require_passed_canary(judged.canary)
    except NoScore as doubt:
        return GateResult("unsure", "cannot tell", doubt.unscored.sentence, facts, units)
    return GateResult("closed" if reason else "open", label, reason, facts, units)
