"""Can the judge of a run be trusted? How often it failed its control questions (docs/judges.md)."""

from __future__ import annotations

from dataclasses import dataclass

from revisit.core import Record
from revisit.core.text import count_and_noun
from revisit.results.results import Results

UNTRUSTED = "untrusted"  # the kind of reason of an answer that failed control questions left out


@dataclass(frozen=True)
class JudgeTrust:
    """On how many clips a judge failed its control questions."""

    failed: int  # clips on which it failed
    asked: int  # clips about which it was asked
    not_asked: int = 0  # further clips about which it could not be asked, or was asked no more

    @property
    def is_untrusted(self) -> bool:
        """Whether it failed on most clips, so that none of its answers is to be trusted."""
        return 2 * self.failed > self.asked

    @property
    def sentence(self) -> str:
        """What that means, for people."""
        count = f"the judge failed its control questions on {self.failed} of {count_and_noun(self.asked, 'clip')}"
        if not self.is_untrusted:
            return f"{count}; its answers about them are not used"
        has = "has" if self.not_asked == 1 else "have"
        rest = f"; {count_and_noun(self.not_asked, 'further clip')} {has} no answer" if self.not_asked else ""
        return f"{count}: its answers are not to be trusted{rest}"

    def as_json(self) -> dict[str, object]:
        """As summary.json has it."""
        return {**vars(self), "untrusted": self.is_untrusted, "sentence": self.sentence}


def measure_judge_trust(results: Results) -> JudgeTrust | None:
    """How often the judge of a run failed its control questions; None where it never did."""
    judged = {record.question for record in results.records if _is_untrusted_answer(record)}
    if not judged:
        return None
    answers = [record for record in results.records if record.question in judged]
    failed = {record.case.id for record in answers if _is_untrusted_answer(record)}
    answered = {
        record.case.id
        for record in answers
        if not record.failed and not (record.reason is not None and record.reason.lacking)
    }
    unjudged = {record.case.id for record in answers if record.failed} - answered
    return JudgeTrust(len(failed), len(answered | failed), len(unjudged))


def _is_untrusted_answer(record: Record) -> bool:
    return record.reason is not None and record.reason.kind == UNTRUSTED
