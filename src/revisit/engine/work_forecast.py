"""What an evaluation will take, before it begins: time, memory and disk of this machine, and questions to a judge.

Time is that of the workers at hand. Of the judge it is calls, tokens and money, before anything is sent.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from revisit.core import OBSERVERS, Clip, RevisitError, Sampling
from revisit.engine.cache import EvidenceCache
from revisit.engine.costs import DECODING, SCORING, Costs, load_costs
from revisit.engine.jobs import ObserverTask, ObservingJob
from revisit.engine.judging import convert_judge_frames, judge_role_or_empty, start_judge_dialogue
from revisit.engine.observe import KEPT_BYTES, OPEN_AHEAD
from revisit.engine.plan import Plan
from revisit.engine.worker_count import observing_workers
from revisit.engine.worker_processes import one_network_task_per_observer
from revisit.evidence.judged import JudgeFrames
from revisit.judges.budget import JudgeLimit, estimate_call_usage
from revisit.judges.canary import append_colour_card, canary_questions
from revisit.judges.protocol import Frames, Usage
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore, shared_answers_path
from revisit.media import Limits, open_clip
from revisit.media.files import free_disk_bytes

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge

START = 2.0  # seconds until the first worker has its libraries
WORKER_BYTES = 180e6  # of a worker with its decoder, before it holds a frame
WAITING_BYTES = 50e6  # of a decoder that waits while the reference of its clip is decoded
MAIN_BYTES = 150e6  # of the process that hands out work
FRAMES_HELD = 24  # frames of a clip that a worker and its decoder hold at once
HOST_BYTES = 1.2e9  # of the process that runs networks, before their weights
RUN_BYTES = 250_000  # of a clip in the run directory: answers, pictures of the report
RGB = 3  # bytes of a pixel


@dataclass(frozen=True)
class WorkForecast:
    """What is left to do, and what it takes here.

    Attributes
    ----------
    clips
        Clips to decode.
    workers
        Processes that observe them.
    processor_seconds, wall_seconds
        Time of one processor for everything, and time until it is done.
    memory, memory_free
        Bytes that all processes hold together at most, and what is free now; None where the system does not say.
    disk, disk_free
        Bytes that evidence and run directory grow by, and what is free where the evidence lies.
    temporary
        Bytes of decoded references in the folder for temporary files, gone at the end.
    guessed
        Observers that never ran here.
    megapixels
        Mean size of a picture, of the clips that say it.
    """

    clips: int
    workers: int
    processor_seconds: float
    wall_seconds: float
    memory: float
    memory_free: float | None
    disk: float
    disk_free: float
    temporary: float
    guessed: tuple[str, ...]
    megapixels: float | None


def forecast_work(plan: Plan, missing: Sequence[str], cache: EvidenceCache, workers: int | None = None) -> WorkForecast:
    """What making these pieces of evidence and scoring all cases takes; nothing is decoded."""
    costs, jobs = load_costs(cache), plan.observing_jobs_for(missing)
    hosted = {task.key for task in one_network_task_per_observer(jobs)}
    count = observing_workers(workers, sum(job.max_split_parts for job in jobs), bool(hosted))
    hands = max(count, 1)
    clips = [clip for job in jobs for clip in job.clips]
    tasks = [(clip.clip, task) for clip in clips for task in clip.observers if task.shown is None]
    scoring = sum(costs.estimate_seconds(case.clip, SCORING) for case in plan.cases)
    own = []  # seconds that a worker spends on each clip
    for clip in clips:
        mine = [(clip.clip, task) for task in clip.observers if task.key not in hosted and task.shown is None]
        own.append(costs.estimate_total_seconds(mine) + costs.estimate_seconds(clip.clip, DECODING))
    networks = costs.estimate_total_seconds((clip, task) for clip, task in tasks if task.key in hosted)
    busy = max(_seconds_until_last_worker_ends(own, hands), networks)  # one host runs all networks
    sizes = [size for clip in clips if (size := costs.picture(clip.clip)) is not None]
    largest = max(sizes, default=0.5) * 1e6 * RGB
    disk = sum(costs.estimate_evidence_bytes(clip, task.observer) for clip, task in tasks) + RUN_BYTES * len(plan.cases)
    processes = MAIN_BYTES + hands * (WORKER_BYTES + FRAMES_HELD * largest)
    on_disk = (max(0.0, _reference_frame_bytes(job, costs) - KEPT_BYTES) for job in jobs)  # of decoded references
    return WorkForecast(
        clips=len(clips),
        workers=count,
        processor_seconds=sum(own) + networks + scoring,
        wall_seconds=(busy + scoring / hands + START) if clips else scoring,
        memory=processes + _reference_memory_bytes(jobs, costs, hands) + _network_memory_bytes(tasks),
        memory_free=free_memory_bytes(),
        disk=disk,
        disk_free=float(free_disk_bytes(cache.root)),
        temporary=sum(heapq.nlargest(hands, on_disk)),
        guessed=tuple(sorted({task.observer for _, task in tasks} - costs.per_frame.keys())),
        megapixels=sum(sizes) / len(sizes) if sizes else None,
    )


def _seconds_until_last_worker_ends(seconds: Iterable[float], workers: int) -> float:
    """When the last of so many workers is done, each taking the longest piece that is left."""
    busy = [0.0] * workers
    for piece in sorted(seconds, reverse=True):
        heapq.heapreplace(busy, busy[0] + piece)
    return max(busy)


def _network_memory_bytes(tasks: Iterable[tuple[Clip, ObserverTask]]) -> float:
    """What the networks of these tasks hold: their weights, and the library that runs them."""
    from revisit.weights.lock import read_lock_entries

    locked = read_lock_entries()
    weights = {id for _, task in tasks if task.observer in OBSERVERS for id in OBSERVERS[task.observer].weights}
    size = sum(file.size or 0 for id in weights if id in locked for file in locked[id].files)
    return HOST_BYTES + size if weights else 0.0


def _reference_memory_bytes(jobs: Sequence[ObservingJob], costs: Costs, workers: int) -> float:
    """What workers keep in memory for references at most: their first frames, and decoders of clips that wait."""

    def job_bytes(job: ObservingJob) -> float:
        waiting = len(job.clips) - len(job.references) if job.references else 0
        decoders = WAITING_BYTES * waiting if waiting <= OPEN_AHEAD else 0.0
        return min(_reference_frame_bytes(job, costs), KEPT_BYTES) + decoders

    return sum(heapq.nlargest(workers, map(job_bytes, jobs)))


def _reference_frame_bytes(job: ObservingJob, costs: Costs) -> float:
    """Bytes of all decoded frames of the references of a job."""
    references = [clip.clip for clip in job.clips if clip.digest in job.references]
    return sum(costs.frames(clip) * (costs.picture(clip) or 0.5) * 1e6 * RGB for clip in references)


def memory_bytes(pages: str = "SC_PHYS_PAGES") -> float | None:
    """Bytes of memory, of all pages or of those that this name of `os.sysconf` counts; None where it is unknown."""
    try:
        return float(os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return None


def free_memory_bytes() -> float | None:
    """Bytes of memory that processes may still take; None where the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return memory_bytes("SC_AVPHYS_PAGES")


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
