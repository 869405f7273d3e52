"""What an evaluation costs: what observing took in earlier runs on this machine, and what the next one will take.

Seconds and bytes per frame of each observer are learnt. A run begins with its longest jobs, so that no worker sits over
a long clip when all others are done. Before a run they forecast time for the workers at hand, memory and disk; of the
questions to a judge, calls, tokens and money are forecast before anything is sent.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from revisit.core import OBSERVERS, Clip, RevisitError, Sampling
from revisit.core.text import parse_json
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask, ObservingJob
from revisit.engine.judging import convert_judge_frames, judge_role_or_empty, start_judge_dialogue
from revisit.engine.observe import KEPT_BYTES, OPEN_AHEAD
from revisit.engine.plan import Plan
from revisit.engine.worker_count import observing_worker_count
from revisit.engine.worker_processes import one_network_task_per_observer
from revisit.evidence.judged import JudgeFrames
from revisit.judges.budget import JudgeLimit, estimate_call_usage
from revisit.judges.canary import append_colour_card, canary_questions
from revisit.judges.protocol import Frames, Usage
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore, shared_answers_path
from revisit.media import frame_count_in_mp4_index, frame_size_in_mp4_index, read_clip_info
from revisit.media.files import atomic_write_path, free_disk_bytes

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge

NAME = "costs.json"  # in the cache: observer -> [seconds, frames, megapixels of all frames, bytes of evidence]
UNKNOWN = 0.01  # seconds per frame of an observer that never ran here
UNKNOWN_BYTES = 500.0  # of evidence per frame
REMEMBERED = 100_000  # frames after which earlier runs count for less than the last one
BYTES_PER_FRAME = 10_000  # of a video that does not say how many frames it has
DECODING, SCORING = "decoding", "scoring"  # under which the time beside observers is kept
START = 2.0  # seconds until the first worker has its libraries
WORKER_BYTES = 180e6  # of a worker with its decoder, before it holds a frame
WAITING_BYTES = 50e6  # of a decoder that waits while the reference of its clip is decoded
MAIN_BYTES = 150e6  # of the process that hands out work
FRAMES_HELD = 24  # frames of a clip that a worker and its decoder hold at once
HOST_BYTES = 1.2e9  # of the process that runs networks, before their weights
RUN_BYTES = 250_000  # of a clip in the run directory: answers, pictures of the report
RGB = 3  # bytes of a pixel
# Observer -> seconds, frames, megapixels of all frames together, bytes of evidence.
CostSums = MutableMapping[str, np.ndarray]


@dataclass
class Costs:
    """Seconds and bytes of evidence per frame by observer, and the picture size that they were learnt from."""

    per_frame: Mapping[str, float]
    megapixels: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frames, self.picture = cache(approximate_frame_count), cache(announced_frame_megapixels)

    def estimate_total_seconds(self, tasks: Iterable[tuple[Clip, ObserverTask]]) -> float:
        """About how long one processor needs for these observers, each on its clip."""
        return sum(self.estimate_seconds(clip, task.observer) for clip, task in tasks)

    def estimate_seconds(self, clip: Clip, observer: str) -> float:
        """About how long one processor needs for an observer, or for decoding or scoring, on a clip.

        What looks at whole pictures takes as much longer as they are larger than those it was learnt from; an
        observer that has them scaled to a size of its own does not.
        """
        unknown = 0.0 if observer in (DECODING, SCORING) else UNKNOWN
        seconds = self.frames(clip) * self.per_frame.get(observer, unknown)
        usual = self.megapixels.get(observer)
        takes_any_size = observer == DECODING or (observer in OBSERVERS and OBSERVERS[observer].size is None)
        if not usual or not takes_any_size:
            return seconds
        return seconds * (self.picture(clip) or usual) / usual


def load_costs(cache: EvidenceCache) -> Costs:
    """What earlier runs that used this cache took."""
    sums = {observer: values for observer, values in _read_cost_sums(cache).items() if values[1] > 0}
    return Costs(
        {observer: seconds / frames for observer, (seconds, frames, _, _) in sums.items()},
        {observer: pixels / frames for observer, (_, frames, pixels, _) in sums.items() if pixels},
        {observer: evidence / frames for observer, (_, frames, pixels, evidence) in sums.items() if evidence},
    )


def merge_into_saved_costs(cache: EvidenceCache, record: CostSums) -> None:
    """Keep what a run took, by observer, for those that come."""
    costs = _read_cost_sums(cache)
    for observer, now in record.items():
        before = np.array(costs.get(observer, [0.0] * 4))
        weight = min(1.0, REMEMBERED / before[1]) if before[1] else 0.0
        seconds, frames, pixels, evidence = (before * weight + now).tolist()
        costs[observer] = [round(seconds, 3), round(frames), round(pixels, 3), round(evidence)]
    if record:
        with suppress(OSError), atomic_write_path(cache.root / NAME) as temporary:  # of a cache that others own
            temporary.write_text(json.dumps(dict(sorted(costs.items())), indent=0), encoding="utf-8")


def _read_cost_sums(cache: EvidenceCache) -> dict[str, list[float]]:
    try:
        content = parse_json((cache.root / NAME).read_text(encoding="utf-8"))
        rows = {str(id): [float(value) for value in values] for id, values in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # a guess is enough to begin with
    # Earlier versions kept seconds and frames alone.
    return {id: [*row, 0.0, 0.0][:4] for id, row in rows.items() if len(row) >= 2}


def announced_frame_megapixels(clip: Clip) -> float | None:
    """Megapixels of a picture of a clip, where the file says it; nothing is decoded."""
    if clip.frames is not None:
        return float(np.prod(clip.frames.rgb[0].shape[:2])) / 1e6 if len(clip.frames.rgb) else None
    try:
        size = frame_size_in_mp4_index(clip.path) if clip.path.is_file() else None
    except Exception:  # whatever it holds: the decoder will say what is wrong with it
        return None
    return None if size is None else size[0] * size[1] / 1e6


def approximate_frame_count(clip: Clip) -> int:
    """About how many frames a clip has; nothing is decoded."""
    try:
        if clip.frames is not None:
            count = len(clip.frames.rgb)
        elif clip.path.is_dir():
            count = sum(1 for _ in clip.path.iterdir())
        else:
            count = frame_count_in_mp4_index(clip.path) or clip.path.stat().st_size // BYTES_PER_FRAME
    except Exception:  # whatever it holds: the decoder will say what is wrong with it
        return 0
    count = max(0, count - clip.start)
    return count if clip.count is None else min(count, clip.count)


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
    count = observing_worker_count(workers, sum(job.max_split_parts for job in jobs), bool(hosted))
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
    evidence = sum(costs.frames(clip) * costs.evidence.get(task.observer, UNKNOWN_BYTES) for clip, task in tasks)
    processes = MAIN_BYTES + hands * (WORKER_BYTES + FRAMES_HELD * largest)
    on_disk = (max(0.0, _reference_frame_bytes(job, costs) - KEPT_BYTES) for job in jobs)  # of decoded references
    return WorkForecast(
        clips=len(clips),
        workers=count,
        processor_seconds=sum(own) + networks + scoring,
        wall_seconds=(busy + scoring / hands + START) if clips else scoring,
        memory=processes + _reference_memory_bytes(jobs, costs, hands) + _network_memory_bytes(tasks),
        memory_free=free_memory_bytes(),
        disk=evidence + RUN_BYTES * len(plan.cases),
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


def system_memory_bytes(sysconf_name: str = "SC_PHYS_PAGES") -> float | None:
    """Bytes of memory, of all pages or of those that this name of `os.sysconf` counts; None where it is unknown."""
    try:
        return float(os.sysconf(sysconf_name) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return None


def free_memory_bytes() -> float | None:
    """Bytes of memory that processes may still take; None where the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return system_memory_bytes("SC_AVPHYS_PAGES")


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
        info = read_clip_info(clip)
    except RevisitError:
        return Frames((), (), shown.key)
    picked = Sampling(params.get("rate"), params.get("at_most")).pick(info.count, info.fps)
    longest = max(info.width, info.height)
    scale = min(1.0, (params.get("long_side") or longest) / longest)
    size = round(info.width * scale), round(info.height * scale)
    return Frames((b"",) * len(picked), tuple((picked / info.fps).tolist()), shown.key, size, info.count / info.fps)
