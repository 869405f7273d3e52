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
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revisit.core import OBSERVERS, Clip, RevisitError
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask, inputs_of, observer_error_sentence, observer_of
from revisit.engine.plan import Plan
from revisit.evidence.judged import PASSED, JudgeFrames
from revisit.judges.batch import JudgeClient
from revisit.judges.canary import ControlRecord, append_colour_card, canary_questions, passed_or_canary_fault
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore, shared_answers_path
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


@dataclass
class _RoleJudge:
    """The judge of a role: who asks it, and how it did in its control questions so far."""

    client: JudgeClient
    has_controls: bool
    record: ControlRecord
    testing: set[str] = field(default_factory=set)  # pictures whose control questions are under way


MOST_EARLIER = 50  # clips of earlier invocations whose control questions are looked up
AWAKE = 0.5  # seconds after which a waiting run looks up


class JudgeSession(AbstractContextManager["JudgeSession"]):
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
        self._judges: dict[str, _RoleJudge] = {}  # observer with a judge of its own, or "" -> its judge
        self._ready: deque[ObserverTask] = deque()
        self._heard: queue.SimpleQueue[_ClipTalk] = queue.SimpleQueue()
        self._open = 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for judge in self._judges.values():
            judge.client.close(now=kind is not None)

    def begin_ready_clips(self, picture_keys: set[str] | None, failure_sentences: Mapping[str, str]) -> Iterator[str]:
        """Take up the clips whose pictures were made or given up (None: all whose pictures are there already).

        Gives back the keys of evidence that is there, or that cannot be made, by now.
        """
        ready = self.cache if picture_keys is None else picture_keys
        due = [key for key in self.todo if key in ready]
        for shown in due:
            for task in self.todo.pop(shown):
                if shown in self.cache:
                    self._ready.append(task)
                else:
                    sentence = failure_sentences.get(shown, "the frames for the judge could not be prepared")
                    yield self._record_failure(task, sentence)
        yield from self.collect_finished_keys(wait=False)

    def collect_finished_keys(self, *, wait: bool = True) -> Iterator[str]:
        """Keys of evidence that is made, or given up; with `wait`, until nothing is open."""
        while True:
            yield from self._open_more_dialogues(last=wait)
            if not self._open:
                return
            try:
                clip = self._heard.get(block=wait, timeout=AWAKE if wait else None)
            except queue.Empty:
                if wait:
                    continue  # woken to hear Ctrl-C, which another thread may have been given
                return
            key = self._hand_over_answers(clip)
            if key is not None:
                yield key

    def copy_recorded_answers(self, tasks: Iterable[ObserverTask]) -> None:
        """Copy the recorded answers behind evidence that is there already into this run; ask nothing."""
        for task in tasks if self.judge is not None else ():
            shown = self.cache.load(JudgeFrames, task.shown.key) if task.shown is not None else None
            if shown is None or task.key not in self.cache:
                continue
            frames, client = convert_judge_frames(shown), self._get_or_create_judge(task).client
            client.recorded_answers_or_none(append_colour_card(frames), canary_questions(frames))
            talk = start_judge_dialogue(task, frames)
            try:
                questions = next(talk)
                while (answers := client.recorded_answers_or_none(frames, questions)) is not None:
                    questions = talk.send(answers)
            except Exception:  # the evidence is there; what cannot be recalled is only missing from the copy
                continue

    @property
    def usage_text(self) -> str:
        """What was asked so far, for people."""
        if not self._judges:
            return "nothing asked"
        calls, money = 0, defaultdict[str, float](float)  # by currency
        for budget in (judge.client.budget for judge in self._judges.values()):
            calls += budget.spent.calls
            if budget.price.input or budget.price.output:
                money[budget.price.currency] += budget.price.cost_of_usage(budget.spent)
        return f"{calls} calls" + "".join(f", {spent:.2f} {currency}" for currency, spent in money.items())

    def usage_counters(self) -> Details:
        """What was asked and spent in this invocation; goes to run.json. Judges of roles are counted apart, too."""
        by_role = {role: _judge_client_usage(judge.client) for role, judge in self._judges.items()}
        if set(by_role) <= {""}:
            return by_role.get("", {})
        totals = {
            name: sum(facts[name] for facts in by_role.values())
            for name in ("calls", "tokens_in", "tokens_out", "answers_from_store")
        }
        models = sorted({model for facts in by_role.values() for model in facts["models"]})
        return {**totals, "models": models, "roles": {role or "all others": facts for role, facts in by_role.items()}}

    def _open_more_dialogues(self, *, last: bool = False) -> Iterator[str]:
        """Begin talks until enough are open: pictures stay in memory while their clip is talked about.

        `last` says that no further clips will come: the judge is then tested on those that are there.
        """
        while (task := self._next_task(last)) is not None:
            judge = self._get_or_create_judge(task)
            if (
                judge.record.is_judge_refused
                and judge.has_controls
                and _shown_pictures_key(task) not in judge.record.results
            ):
                yield self._record_failure(task, judge.record.refusal_sentence)
                continue
            try:
                frames = convert_judge_frames(self.cache.load(JudgeFrames, _shown_pictures_key(task)))
                talk = start_judge_dialogue(task, frames)
                clip = _ClipTalk(task, frames, talk, next(talk), [])
                controls = canary_questions(frames) if judge.has_controls else []
                if controls:
                    clip.in_controls = True
                    judge.testing.add(_shown_pictures_key(task))
                    self._submit_questions(clip, append_colour_card(frames), controls)
                else:
                    self._submit_questions(clip, frames, clip.questions)
                self._open += 1
            except StopIteration as stop:  # an observer that asks nothing of this clip
                self.cache.save(task.key, stop.value)
                yield self._count_done(task)
            except Exception as error:  # one clip must not cost the others their answers
                yield self._record_failure(task, observer_error_sentence(task, error))

    def _next_task(self, last: bool) -> ObserverTask | None:
        """The next clip to talk about; None while enough are under way, or the judge is being tested on the first."""
        for _ in range(len(self._ready)):
            judge = self._get_or_create_judge(self._ready[0])
            if self._open >= 2 * judge.client.patience.concurrency:
                return None
            record = judge.record
            is_known = record.has_enough_clips or not judge.has_controls or (last and not self._open)
            if is_known or len(record.results) + len(judge.testing) < record.first:
                return self._ready.popleft()
            self._ready.rotate(-1)  # another role's judge may be known already
        return None

    def _hand_over_answers(self, clip: _ClipTalk) -> str | None:
        """Hand a clip its answers; its key, if that was the end of it."""
        answers = [future.result() for future in clip.waiting]
        failed = [answer for answer in answers if answer.status == "failed"]
        task, in_controls, judge = clip.task, clip.in_controls, self._get_or_create_judge(clip.task)
        if in_controls:
            clip.in_controls = False
            judge.testing.discard(_shown_pictures_key(task))
        if failed:
            clip.talk.close()
            self._open -= 1
            count = f"{len(failed)} of {len(answers)} questions could not be asked"
            return self._record_failure(task, f"{count}: {failed[0].reason}")
        try:
            if in_controls:
                clip.canary = passed_or_canary_fault(answers)
                judge.record.results[_shown_pictures_key(task)] = clip.canary == PASSED
                if clip.canary != PASSED:
                    return self._save_evidence(clip, _evidence_without_answers(clip))
            else:
                clip.questions = clip.talk.send(answers)
            self._submit_questions(clip, clip.frames, clip.questions)
            return None
        except StopIteration as stop:
            return self._save_evidence(clip, stop.value)
        except Exception as error:  # as above
            self._open -= 1
            return self._record_failure(task, observer_error_sentence(task, error))

    def _save_evidence(self, clip: _ClipTalk, evidence: object) -> str:
        """Keep the evidence of a clip, marked with what its control questions say."""
        marked: Any = replace(evidence, canary=clip.canary) if clip.canary else evidence  # type: ignore[type-var]
        self.cache.save(clip.task.key, marked)
        self._open -= 1
        return self._count_done(clip.task)

    def _submit_questions(self, clip: _ClipTalk, frames: Frames, questions: Sequence[Question]) -> None:
        waiting = clip.waiting = self._get_or_create_judge(clip.task).client.submit_questions(frames, questions)
        left, lock = [len(waiting) + 1], threading.Lock()
        talks = [clip]  # taken out at the end: futures keep their callbacks, and would keep the pictures of every clip

        def count_down_answer(_: object) -> None:
            with lock:
                left[0] -= 1
                if not left[0]:
                    self._heard.put(talks.pop())

        for future in waiting:
            future.add_done_callback(count_down_answer)
        count_down_answer(None)

    def _get_or_create_judge(self, task: ObserverTask) -> _RoleJudge:
        """The judge of a task's role, which is its observer where that has a judge of its own."""
        if self.judge is None:
            raise RevisitError("this run needs a judge, and none was given; pass --judge (see docs/judges.md)")
        role = judge_role_or_empty(task, self.judge)
        if role not in self._judges:
            mine = self.judge.judge_of_observer(role)
            store = AnswerStore(shared_answers_path(self.cache.root, mine.judge.facts), self.copy, self.cache.problems)
            alike = [
                other for _, _, other in self.plan.tasks.values() if judge_role_or_empty(other, self.judge) == role
            ]
            record = ControlRecord(
                mine.settings.controls_first, self._earlier_control_results(alike) if mine.asks_canaries else {}
            )
            self._judges[role] = _RoleJudge(mine.make_client(store), mine.asks_canaries, record)
        return self._judges[role]

    def _earlier_control_results(self, tasks: Iterable[ObserverTask]) -> dict[str, bool]:
        """Pictures -> whether the judge passed, of clips of this run about which it was asked before."""
        results: dict[str, bool] = {}
        for task in tasks:
            if task.shown is not None and task.key in self.cache and len(results) < MOST_EARLIER:
                evidence = self.cache.load(OBSERVERS[task.observer].makes, task.key)
                if canary := getattr(evidence, "canary", ""):
                    results[_shown_pictures_key(task)] = canary == PASSED
        return results

    def _record_failure(self, task: ObserverTask, sentence: str) -> str:
        self.failures[task.key] = sentence
        return self._count_done(task)

    def _count_done(self, task: ObserverTask) -> str:
        self.done += 1
        return task.key


def judge_role_or_empty(task: ObserverTask, judge: ChosenJudge) -> str:
    """The observer of a task, where it has a judge of its own; else the empty text."""
    return task.observer if task.observer in judge.roles else ""


def _shown_pictures_key(task: ObserverTask) -> str:
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


def _judge_client_usage(client: JudgeClient) -> Details:
    budget = client.budget
    return {
        "calls": budget.spent.calls,
        "tokens_in": budget.spent.tokens_in,
        "tokens_out": budget.spent.tokens_out,
        "money": round(budget.price.cost_of_usage(budget.spent), 6),
        "currency": budget.price.currency,
        "answers_from_store": client.from_store,
        "models": sorted(client.models),
    }


def start_judge_dialogue(task: ObserverTask, frames: Frames) -> JudgeDialogue:
    """The talk of one observer about one clip, before its first question."""
    talk: JudgeDialogue = observer_of(task).fn(frames, *inputs_of(task), **task.params)
    return talk


def convert_judge_frames(shown: JudgeFrames) -> Frames:
    """The pictures of a clip as a judge takes them."""
    pictures = tuple(shown.picture(k) for k in range(len(shown.index)))
    return Frames(pictures, tuple(shown.time.tolist()), shown.digest, (shown.width, shown.height), shown.seconds)


def read_judge_frames_of_clip(path: Path, **params: Any) -> Frames:
    """The pictures of a clip, outside any run."""
    with open_clip(Clip(path), Limits()) as stream:
        return convert_judge_frames(OBSERVERS["judge.frames"](stream, **params))
