"""Asks a judge about the clips of a run while other clips are decoded.

As soon as the pictures of a clip are there, its control questions go out, and its other questions once it passed them;
many at a time over all clips. Of the first few clips only the controls are asked: a judge that fails on most of them is
asked nothing else. An observer of kind `judge` yields questions and receives answers until it returns its evidence. A
question that could not be asked (a server that is down, a spent budget) leaves its evidence unmade: the record says
failed and why, and the same command asks only what is still open.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from revisit.core import OBSERVERS, Clip, RevisitError
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask, error_sentence, inputs_of, observer_of
from revisit.engine.plan import Plan
from revisit.evidence.judged import PASSED, JudgeFrames
from revisit.judges.batch import JudgeClient
from revisit.judges.canary import ControlRecord, canary_questions, canary_result, mark_answers, with_card
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore, shared_store
from revisit.media import Limits, open_clip
from revisit.results.file_types import Details

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge


@dataclass
class _ClipTalk:
    """One observer's talk with the judge about one clip."""

    task: ObserverTask
    frames: Frames
    talk: JudgeDialogue
    questions: Sequence[Question]  # what the observer wants to know next
    waiting: list[Future[JudgeAnswer]]  # answers under way
    in_controls: bool = False  # whether they are those of the control questions
    canary: str = ""  # what came of these


MOST_EARLIER = 50  # clips of earlier invocations whose control questions are looked up
AWAKE = 0.5  # seconds after which a waiting run looks up


class JudgeSession:
    """The questions of a run. Give it keys as their evidence is made; it gives back keys as answers come in."""

    def __init__(
        self, plan: Plan, missing: Iterable[str], cache: EvidenceCache, judge: ChosenJudge | None, copy: Path
    ) -> None:
        self.plan, self.cache, self.judge, self.copy = plan, cache, judge, copy
        self.failures: dict[str, str] = {}  # evidence key -> sentence
        self.todo: dict[str, list[ObserverTask]] = {}  # key of the pictures -> what is asked about them
        for task in (plan.tasks[key][2] for key in missing):
            if task.shown is not None:
                self.todo.setdefault(task.shown.key, []).append(task)
        self.total, self.done = sum(map(len, self.todo.values())), 0
        self._askers: dict[str, JudgeClient] = {}  # observer with a judge of its own, or "" -> who asks
        self._controls: dict[str, ControlRecord] = {}  # of the same judges
        self._testing: dict[str, set[str]] = {}  # pictures whose control questions are under way
        self._ready: deque[ObserverTask] = deque()
        self._heard: queue.SimpleQueue[_ClipTalk] = queue.SimpleQueue()
        self._open = 0

    def __enter__(self) -> JudgeSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for asker in self._askers.values():
            asker.close(now=kind is not None)

    def begin(self, keys: set[str] | None, sentences: Mapping[str, str]) -> Iterator[str]:
        """Take up the clips whose pictures were made or given up (None: all whose pictures are there already).

        Gives back the keys of evidence that is there, or that cannot be made, by now.
        """
        due = [key for key in self.todo if key in self.cache] if keys is None else [k for k in keys if k in self.todo]
        for shown in due:
            for task in self.todo.pop(shown):
                if shown in self.cache:
                    self._ready.append(task)
                else:
                    sentence = sentences.get(shown, "the frames for the judge could not be prepared")
                    yield self._failed(task, sentence)
        yield from self.heard(wait=False)

    def heard(self, *, wait: bool = True) -> Iterator[str]:
        """Keys of evidence that is made, or given up; with `wait`, until nothing is open."""
        while True:
            yield from self._start_more(last=wait)
            if not self._open:
                return
            try:
                clip = self._heard.get(block=wait, timeout=AWAKE if wait else None)
            except queue.Empty:
                if wait:
                    continue  # woken to hear Ctrl-C, which another thread may have been given
                return
            key = self._go_on(clip)
            if key is not None:
                yield key

    def recall(self, tasks: Iterable[ObserverTask]) -> None:
        """Copy the recorded answers behind evidence that is there already into this run; ask nothing."""
        for task in tasks if self.judge is not None else ():
            shown = self.cache.load(JudgeFrames, task.shown.key) if task.shown is not None else None
            if shown is None or task.key not in self.cache:
                continue
            frames, asker = frames_of(shown), self._ask(task)
            asker.recorded(with_card(frames), canary_questions(frames))
            talk = open_talk(task, frames)
            try:
                questions = next(talk)
                while (answers := asker.recorded(frames, questions)) is not None:
                    questions = talk.send(answers)
            except Exception:  # the evidence is there; what cannot be recalled is only missing from the copy
                continue

    @property
    def said(self) -> str:
        """What was asked so far, for people."""
        if not self._askers:
            return "nothing asked"
        calls = sum(asker.budget.spent.calls for asker in self._askers.values())
        return f"{calls} calls" + "".join(f", {money}" for money in self._money().values())

    def _money(self) -> dict[str, str]:
        """Currency -> what was spent in it, in words."""
        spent: dict[str, float] = {}
        for asker in self._askers.values():
            price = asker.budget.price
            if price.input or price.output:
                spent[price.currency] = spent.get(price.currency, 0.0) + price.of(asker.budget.spent)
        return {currency: f"{money:.2f} {currency}" for currency, money in spent.items()}

    def counters(self) -> Details:
        """What was asked and spent in this invocation; goes to run.json. Judges of roles are counted apart, too."""
        by_role = {role: _spent(asker) for role, asker in self._askers.items()}
        if set(by_role) <= {""}:
            return by_role.get("", {})
        totals = {
            name: sum(facts[name] for facts in by_role.values())
            for name in ("calls", "tokens_in", "tokens_out", "answers_from_store")
        }
        models = sorted({model for facts in by_role.values() for model in facts["models"]})
        return {**totals, "models": models, "roles": {role or "all others": facts for role, facts in by_role.items()}}

    def _start_more(self, *, last: bool = False) -> Iterator[str]:
        """Begin talks until enough are open: pictures stay in memory while their clip is talked about.

        `last` says that no further clips will come: the judge is then tested on those that are there.
        """
        while (task := self._next_task(last)) is not None:
            record = self._control_record(task)
            if record.is_refused and self._has_controls(task) and _shown_key(task) not in record.results:
                yield self._failed(task, record.refusal)
                continue
            try:
                frames = frames_of(self.cache.load(JudgeFrames, _shown_key(task)))
                talk = open_talk(task, frames)
                clip = _ClipTalk(task, frames, talk, next(talk), [])
                controls = canary_questions(frames) if self._has_controls(task) else []
                if controls:
                    clip.in_controls = True
                    self._testing.setdefault(self._role(task), set()).add(_shown_key(task))
                    self._send(clip, with_card(frames), controls)
                else:
                    self._send(clip, frames, clip.questions)
                self._open += 1
            except StopIteration as stop:  # an observer that asks nothing of this clip
                self.cache.save(task.key, stop.value)
                yield self._ended(task)
            except Exception as error:  # one clip must not cost the others their answers
                yield self._failed(task, _sentence(task, error))

    def _next_task(self, last: bool) -> ObserverTask | None:
        """The next clip to talk about; None while enough are under way, or the judge is being tested on the first."""
        for _ in range(len(self._ready)):
            task = self._ready[0]
            if self._open >= 2 * self._ask(task).patience.concurrency:
                return None
            record, testing = self._control_record(task), self._testing.get(self._role(task), ())
            is_known = record.is_complete or not self._has_controls(task) or (last and not self._open)
            if is_known or len(record.results) + len(testing) < record.first:
                return self._ready.popleft()
            self._ready.rotate(-1)  # another role's judge may be known already
        return None

    def _go_on(self, clip: _ClipTalk) -> str | None:
        """Hand a clip its answers; its key, if that was the end of it."""
        answers = [future.result() for future in clip.waiting]
        failed = [answer for answer in answers if answer.status == "failed"]
        task, in_controls = clip.task, clip.in_controls
        if in_controls:
            clip.in_controls = False
            self._testing[self._role(task)].discard(_shown_key(task))
        if failed:
            clip.talk.close()
            self._open -= 1
            count = f"{len(failed)} of {len(answers)} questions could not be asked"
            return self._failed(task, f"{count}: {failed[0].reason}")
        try:
            if in_controls:
                clip.canary = canary_result(answers)
                self._control_record(task).results[_shown_key(task)] = clip.canary == PASSED
                if clip.canary != PASSED:
                    return self._made(clip, _evidence_without_answers(clip))
            else:
                clip.questions = clip.talk.send(answers)
            self._send(clip, clip.frames, clip.questions)
            return None
        except StopIteration as stop:
            return self._made(clip, stop.value)
        except Exception as error:  # as above
            self._open -= 1
            return self._failed(task, _sentence(task, error))

    def _made(self, clip: _ClipTalk, evidence: object) -> str:
        """Keep the evidence of a clip, marked with what its control questions say."""
        self.cache.save(clip.task.key, mark_answers(evidence, clip.canary) if clip.canary else evidence)
        self._open -= 1
        return self._ended(clip.task)

    def _send(self, clip: _ClipTalk, frames: Frames, questions: Sequence[Question]) -> None:
        waiting = clip.waiting = self._ask(clip.task).submit(frames, questions)
        left, lock = [len(waiting) + 1], threading.Lock()
        talks = [clip]  # taken out at the end: futures keep their callbacks, and would keep the pictures of every clip

        def one_done(_: object) -> None:
            with lock:
                left[0] -= 1
                if not left[0]:
                    self._heard.put(talks.pop())

        for future in waiting:
            future.add_done_callback(one_done)
        one_done(None)

    def _ask(self, task: ObserverTask) -> JudgeClient:
        """Who asks the judge of a task's role."""
        if self.judge is None:
            raise RevisitError("this run needs a judge, and none was given; pass --judge (see docs/judges.md)")
        role = self._role(task)
        if role not in self._askers:
            judge = self.judge.of_role(task.observer)
            store = AnswerStore(shared_store(self.cache.root, judge.judge.facts), self.copy)
            self._askers[role] = judge.client(store)
        return self._askers[role]

    def _role(self, task: ObserverTask) -> str:
        """The observer, where it has a judge of its own; else the empty text."""
        return task.observer if self.judge is not None and task.observer in self.judge.roles else ""

    def _has_controls(self, task: ObserverTask) -> bool:
        """Whether the judge of a task is asked control questions."""
        return self.judge is not None and self.judge.of_role(task.observer).canaries

    def _control_record(self, task: ObserverTask) -> ControlRecord:
        """How the judge of a task did in its control questions so far."""
        role = self._role(task)
        if role not in self._controls:
            first = self.judge.of_role(task.observer).controls_first if self.judge is not None else 0
            self._controls[role] = ControlRecord(first, self._earlier_results(role) if self._has_controls(task) else {})
        return self._controls[role]

    def _earlier_results(self, role: str) -> dict[str, bool]:
        """Pictures -> whether the judge passed, of clips of this run about which it was asked before."""
        results: dict[str, bool] = {}
        for key, (_, _, task) in self.plan.tasks.items():
            if (
                task.shown is not None
                and self._role(task) == role
                and key in self.cache
                and len(results) < MOST_EARLIER
            ):
                evidence = self.cache.load(OBSERVERS[task.observer].makes, key)
                if canary := getattr(evidence, "canary", ""):
                    results[_shown_key(task)] = canary == PASSED
        return results

    def _failed(self, task: ObserverTask, sentence: str) -> str:
        self.failures[task.key] = sentence
        return self._ended(task)

    def _ended(self, task: ObserverTask) -> str:
        self.done += 1
        return task.key


def _shown_key(task: ObserverTask) -> str:
    """The key of the pictures that a task shows the judge."""
    return task.shown.key if task.shown is not None else ""


def _evidence_without_answers(clip: _ClipTalk) -> object:
    """The evidence of a clip about which nothing is asked, because the judge failed its control questions."""
    reason = "not asked, because the judge failed a control question about this clip"
    questions = clip.questions
    while True:
        try:
            questions = clip.talk.send([JudgeAnswer("unanswered", reason=reason) for _ in questions])
        except StopIteration as stop:
            return stop.value


def _spent(asker: JudgeClient) -> Details:
    budget = asker.budget
    return {
        "calls": budget.spent.calls,
        "tokens_in": budget.spent.tokens_in,
        "tokens_out": budget.spent.tokens_out,
        "money": round(budget.price.of(budget.spent), 6),
        "currency": budget.price.currency,
        "answers_from_store": asker.from_store,
        "models": sorted(asker.models),
    }


def open_talk(task: ObserverTask, frames: Frames) -> JudgeDialogue:
    """The talk of one observer about one clip, before its first question."""
    talk: JudgeDialogue = observer_of(task).fn(frames, *inputs_of(task), **task.params)
    return talk


def frames_of(shown: JudgeFrames) -> Frames:
    """The pictures of a clip as a judge takes them."""
    pictures = tuple(shown.picture(k) for k in range(len(shown.index)))
    return Frames(pictures, tuple(shown.time.tolist()), shown.digest, (shown.width, shown.height), shown.seconds)


def judge_frames(path: Path, **params: Any) -> Frames:
    """The pictures of a clip, outside any run."""
    with open_clip(Clip(path), Limits()) as stream:
        return frames_of(OBSERVERS["judge.frames"](stream, **params))


def _sentence(task: ObserverTask, error: Exception) -> str:
    text = error_sentence(error)
    return text if isinstance(error, RevisitError) else f"{task.observer} failed: {text}"
