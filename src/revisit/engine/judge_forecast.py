"""What asking a judge would take: questions, calls, tokens and money, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from revisit.core import Clip, RevisitError, Sampling
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask
from revisit.engine.judging import convert_judge_frames, judge_role_or_empty, start_judge_dialogue
from revisit.engine.plan import Plan
from revisit.evidence.judged import JudgeFrames
from revisit.judges.budget import JudgeLimit, estimate_call_usage
from revisit.judges.canary import append_colour_card, canary_questions
from revisit.judges.protocol import Frames, Usage
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore, shared_answers_path
from revisit.media import Limits, open_clip

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge


@dataclass(frozen=True)
class Forecast:
    """What asking would take, before anything is sent."""

    questions: int
    known: int  # answered already, of clips whose pictures are there
    usage: Usage
    money: float
    currency: str
    guessed: int  # clips whose pictures are not there yet: their questions are counted on a stand-in

    def as_sentence(self) -> str:
        """The forecast in one sentence."""
        calls, tokens_in, tokens_out = self.usage.calls, self.usage.tokens_in, self.usage.tokens_out
        money = f", about {self.money:.2f} {self.currency}" if self.money else ""
        return (
            f"{self.questions} questions, {self.known} already answered; {calls} calls, "
            f"about {tokens_in} tokens in and {tokens_out} out{money}; follow-up questions and retries come on top"
        )

    def exceeds(self, limit: JudgeLimit) -> bool:
        """Whether the budget will be spent before all is asked."""
        tokens = self.usage.tokens_in + self.usage.tokens_out
        pairs = ((self.usage.calls, limit.calls), (tokens, limit.tokens), (self.money, limit.money))
        return any(most is not None and value > most for value, most in pairs)


def forecast_judge_usage(plan: Plan, cache: EvidenceCache, judge: ChosenJudge) -> Forecast:
    """Calls, tokens and money that the questions of a plan will take, as far as they are known beforehand.

    Questions that depend on answers (a second pass) and questions asked again are not counted.
    """
    stores: dict[str, AnswerStore] = {}  # role -> what its judge has answered already
    spent: dict[str, Usage] = {}
    questions = answered = guessed = 0
    counted: set[tuple[str, str, str]] = set()
    with ExitStack() as stack:
        for key, (_, clip, task) in plan.tasks.items():
            if task.shown is None or key in cache:
                continue
            mine, role = judge.judge_of_observer(task.observer), judge_role_or_empty(task, judge)
            if role not in stores:
                path = shared_answers_path(cache.root, mine.judge.facts)
                stores[role] = stack.enter_context(closing(AnswerStore(path if path.is_file() else None)))
                spent[role] = Usage()
            shown = cache.load(JudgeFrames, task.shown.key)
            guessed += shown is None
            frames = convert_judge_frames(shown) if shown is not None else _placeholder_frames(clip, task.shown)
            pending = [(frames, question) for question in _first_questions(task, frames)]
            if pending and mine.asks_canaries:
                pending += [(append_colour_card(frames), question) for question in canary_questions(frames)]
            for pictures, question in pending:
                if (role, pictures.digest, question.digest) in counted:
                    continue
                counted.add((role, pictures.digest, question.digest))
                questions += 1
                if stores[role].find_answer(pictures, question, mine.judge.facts) is not None:
                    answered += 1
                else:
                    spent[role] += estimate_call_usage(pictures, question, mine.settings.tokens_per_image)
    money = sum(judge.judge_of_observer(role).settings.price.cost_of_usage(usage) for role, usage in spent.items())
    usage = sum(spent.values(), Usage())
    return Forecast(questions, answered, usage, money, judge.settings.price.currency, guessed)


def _first_questions(task: ObserverTask, frames: Frames) -> Sequence[Question]:
    with suppress(RevisitError), closing(start_judge_dialogue(task, frames)) as talk:
        return next(talk, ())
    return ()


def _placeholder_frames(clip: Clip, shown: ObserverTask) -> Frames:
    """Frames of the number and size that a clip's pictures will have, without pictures."""
    params = shown.params
    try:
        with open_clip(clip, Limits(), wanted=np.arange(0)) as stream:
            info = stream.info
    except RevisitError:
        return Frames((), (), shown.key)
    picked = Sampling(params.get("rate"), params.get("at_most")).pick(info.count, info.fps)
    longest = max(info.width, info.height)
    scale = min(1.0, (params.get("long_side") or longest) / longest)
    size = round(info.width * scale), round(info.height * scale)
    return Frames((b"",) * len(picked), tuple((picked / info.fps).tolist()), shown.key, size, info.count / info.fps)
