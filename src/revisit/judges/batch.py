"""Asking: many calls at a time, each answer checked, asked again where it is not valid, and recorded at once.

What may go wrong has one of three ends. A server that is busy, silent or broken is tried again with growing,
random pauses (or the pause it asks for); after `tries` calls the question has *failed*, and the next run asks it
again. A question whose reply is not valid is asked again, with the mistake named; after `again` more replies the
question is recorded as *unanswered*. A wrong key or a spent budget stops all that has not been sent. None of
these is ever a no, or a zero.

Recorded replies are read anew: what an earlier version took for an answer and is none is asked again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from revisit.core.concurrency import start_thread
from revisit.judges.budget import Budget, estimate_call_usage
from revisit.judges.probability import is_first_yes_or_no
from revisit.judges.protocol import Frames, Judge, JudgeAnswer, NoReply, Refused, Reply, Stopped, Usage
from revisit.judges.questions import Malformed, Question, YesNo, parse_answer_and_passage
from revisit.judges.store import AnswerStore, answer_key
from revisit.servers.retries import RetryingCaller

Batch = Sequence[tuple[Question, "Future[JudgeAnswer]"]]  # questions of one call, and who waits for their answers


class RetryPolicy(BaseModel):
    """How many calls at a time, and how long to go on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concurrency: int = Field(default=8, ge=1, le=256)
    tries: int = Field(default=6, ge=1)  # calls for one reply
    again: int = Field(default=2, ge=0)  # further replies, where the first is no valid answer
    pause: float = Field(default=1.0, ge=0)  # seconds before the second call; doubled each time, and made random
    ask_unanswered: bool = False  # ask again what was recorded as unanswered


class JudgeClient:
    """Asks a judge. Close it, or use it in a `with` block."""

    def __init__(
        self,
        judge: Judge,
        store: AnswerStore | None = None,
        patience: RetryPolicy | None = None,
        budget: Budget | None = None,
        tokens_per_image: int | None = None,
    ) -> None:
        self.judge, self.store = judge, store or AnswerStore(None)
        self.patience, self.budget = patience or RetryPolicy(), budget or Budget()
        self.tokens_per_image = tokens_per_image
        self.from_store = 0  # answers that cost nothing
        self.models: set[str] = set()  # as the servers called themselves: more than one tells of a drift
        # Daemons, and no executor: an interrupted run must not wait for a server that is silent.
        self._jobs: queue.SimpleQueue[tuple[Frames, Batch] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._caller = RetryingCaller(judge.check, self.patience.tries, self.patience.pause)
        self._under_way: dict[str, Future[JudgeAnswer]] = {}  # by the address of the answer

    def __enter__(self) -> JudgeClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(now=kind is not None)

    def close(self, *, now: bool = False) -> None:
        """End. With `now`, calls under way are given up; else they are finished and recorded."""
        if now:
            self._caller.quit.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if not now else ():
            thread.join()
        for future in self._under_way.values():
            if not future.done():
                future.set_result(JudgeAnswer("failed", reason="asking was interrupted"))
        self.judge.close()
        self.store.close()

    def ask(self, frames: Frames, questions: Sequence[Question]) -> list[JudgeAnswer]:
        """The answers to some questions about the same frames, in their order."""
        return [future.result() for future in self.submit_questions(frames, questions)]

    def submit_questions(self, frames: Frames, questions: Sequence[Question]) -> list[Future[JudgeAnswer]]:
        """Begin to ask. What is recorded, or under way already, costs no further call."""
        futures: list[Future[JudgeAnswer]] = []
        new: list[tuple[Question, Future[JudgeAnswer]]] = []
        for question in questions:
            key = answer_key(frames.digest, question.digest, self.judge.facts)
            with self._lock:
                if key in self._under_way:
                    futures.append(self._under_way[key])
                    continue
                future: Future[JudgeAnswer] = Future()
                futures.append(future)
                answer = self._find_stored_answer(frames, question)
                if answer is None or (answer.status == "unanswered" and self.patience.ask_unanswered):
                    self._under_way[key] = future
                    new.append((question, future))
                else:
                    self.from_store += 1
                    self.models.add(answer.model)
                    future.set_result(answer)
        for start in range(0, len(new), self.judge.batch):
            if len(self._threads) < self.patience.concurrency:
                self._threads.append(start_thread(self._process_jobs_until_closed, name="ask"))
            self._jobs.put((frames, new[start : start + self.judge.batch]))
        return futures

    def _process_jobs_until_closed(self) -> None:
        while (job := self._jobs.get()) is not None and not self._caller.quit.is_set():
            self._resolve_batch(*job)

    def recorded_answers_or_none(self, frames: Frames, questions: Sequence[Question]) -> list[JudgeAnswer] | None:
        """The recorded answers, or None where one is missing; nothing is asked."""
        answers = (self._find_stored_answer(frames, question) for question in questions)
        recorded = [answer for answer in answers if answer is not None]
        return recorded if len(recorded) == len(questions) else None

    def _find_stored_answer(self, frames: Frames, question: Question) -> JudgeAnswer | None:
        """The recorded answer, its reply read anew; None where there is none, or where the reply is no answer."""
        answer = self.store.find_answer(frames, question, self.judge.facts)
        return answer if answer is None or answer.status != "answered" else _reparse_stored_answer(question, answer)

    def _resolve_batch(self, frames: Frames, batch: Batch) -> None:
        try:
            answers = self._ask_until_valid(frames, [question for question, _ in batch])
        except Exception as error:  # a fault in a judge must not leave anybody waiting
            answers = [JudgeAnswer("failed", reason=f"the judge failed: {type(error).__name__}: {error}")] * len(batch)
        for (question, future), answer in zip(batch, answers, strict=True):
            with suppress(InvalidStateError):  # given up by `close`
                future.set_result(answer)
            if answer.status == "answered":  # the store has it now
                with self._lock:
                    self._under_way.pop(answer_key(frames.digest, question.digest, self.judge.facts), None)

    def _ask_until_valid(self, frames: Frames, questions: Sequence[Question]) -> list[JudgeAnswer]:
        """Answers of one batch: every question answered, unanswered or failed."""
        open_, notes = dict(enumerate(questions)), dict.fromkeys(range(len(questions)), "")
        answers: dict[int, JudgeAnswer] = {}
        spent = dict.fromkeys(open_, Usage())
        try:
            for attempt in range(1 + self.patience.again):
                order = list(open_)
                batch, remarks = [open_[i] for i in order], [notes[i] for i in order]
                call = partial(self._request_replies_within_budget, frames, batch, remarks)
                replies = self._caller.call_with_retries(call, "reply", "asking")
                for i, reply in zip(order, replies, strict=True):
                    spent[i] += reply.usage
                    answer = replace(_answer_from_reply(open_[i], reply), usage=spent[i], tries=attempt + 1)
                    notes[i] = answer.reason
                    self.models.add(answer.model)
                    if answer.status == "answered" or attempt == self.patience.again:
                        answers[i] = answer
                        self.store.record_answer(frames, open_.pop(i), self.judge.facts, answer)
                if not open_:
                    break
        except (NoReply, Refused, Stopped) as error:
            if isinstance(error, Stopped):
                self._caller.stop_all_calls(error)
            answers |= {i: JudgeAnswer("failed", reason=str(error), usage=spent[i]) for i in open_}
        return [answers[i] for i in range(len(questions))]

    def _request_replies_within_budget(
        self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]
    ) -> list[Reply]:
        """Replies of one call, within the budget."""
        each = (estimate_call_usage(frames, question, self.tokens_per_image) for question in questions)
        reserved = replace(sum(each, Usage()), calls=1)
        self.budget.reserve_or_stop(reserved)
        used = Usage()
        try:
            replies = self.judge.reply(frames, questions, notes)
            used = sum((reply.usage for reply in replies), Usage())
            if used.calls and not used.tokens_in:  # the server does not count: the estimate stands
                used = replace(reserved, calls=used.calls)
            return replies
        finally:
            self.budget.replace_reserved_with_used(reserved, used)


def _answer_from_reply(question: Question, reply: Reply) -> JudgeAnswer:
    """A valid answer, or unanswered with the reason."""
    answer = JudgeAnswer("answered", None, reply.p_yes, reply.p_from, reply.text, model=reply.model)
    try:
        if reply.fault:
            raise Malformed(reply.fault)
        return replace(answer, value=question.read(reply.text))
    except Malformed as error:
        return replace(answer, status="unanswered", p_yes=None, reason=str(error))


def _reparse_stored_answer(question: Question, answer: JudgeAnswer) -> JudgeAnswer | None:
    """A recorded answer as its reply is read today; None where the reply is no answer."""
    try:
        value, passage = parse_answer_and_passage(question.schema, answer.reply)
    except Malformed:
        return None
    if (
        isinstance(question.schema, YesNo)
        and answer.p_yes is not None
        and not is_first_yes_or_no(answer.reply, passage)
    ):
        # Earlier versions took the probability at the first yes or no of the reply, wherever it stood.
        return replace(answer, value=value, p_yes=None, p_from="none: it was recorded for another word of the reply")
    return replace(answer, value=value)
