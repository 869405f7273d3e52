"""Observing: one pass over the frames of a clip feeds every observer that wants them.

Memory is bounded by a batch, not by the clip. The frames of a reference are kept until the last clip that is compared
with them is done: the first of them in memory, up to a limit, and the rest on disk, in a temporary file. Only those
are kept that some observer compares, where numbers or shares of the length say which: the few clips of a reference
are opened before it is decoded, so that they can tell. A clip that is compared with itself backwards keeps its
first half. Importers read a file beside the clip, which is not decoded for them.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from revisit.core import ClipInfo, Frame, MediaError, RevisitError
from revisit.core.observer import RunningObserver, single_threaded_libraries, start_observer
from revisit.core.phase_pairs import RULE, frame_pairs_by_phase, parse_phase_rule
from revisit.core.text import count_and_noun
from revisit.engine.cache import EvidenceCache, MemoryCache
from revisit.engine.inference_client import HostClip, HostConnection, HostError, runs_at_host
from revisit.engine.jobs import (
    ClipTask,
    ObserverTask,
    ObservingJob,
    error_sentence,
    inputs_of,
    observer_error_sentence,
    observer_of,
    wanted_frame_numbers,
)
from revisit.media import Limits, clip_digest, file_digest, open_clip, read_clip_info
from revisit.media.decode import ClipStream, FramesInMemory

PartnersOf = Callable[[Frame], Sequence[Frame | None]]  # frames of the reference that a frame is compared with
CHANGED = "it was changed while it was evaluated; leave it alone, and run the same command again"
WHOLE = ("auto", "time")  # rules that may need any frame of a reference
SHAPE = 0.05  # share by which the ratio of width to height may differ; sizes rounded to 16 pixels differ by less
OPEN_AHEAD = 4  # clips of a job whose decoders may wait, with some 50 MB each, while their reference is decoded
KEPT_BYTES = 256 << 20  # of frames of references that a process keeps in memory


class ReferenceUse(NamedTuple):
    """How a clip is compared with a reference."""

    rule: str  # of alignment
    length: int  # frames of the clip
    compared: tuple[int, ...] | None = None  # their numbers that observers compare; None where nobody knows yet


@dataclass
class Outcome:
    """What became of a clip: evidence made, evidence that could not be made, and what it cost."""

    made: dict[str, float] = field(default_factory=dict)  # evidence key -> seconds
    failed: dict[str, str] = field(default_factory=dict)  # evidence key -> sentence
    broken: dict[str, str] = field(default_factory=dict)  # clip digest -> sentence
    decoded: Counter[str] = field(default_factory=Counter)  # clip digest -> how often
    frames: int = 0  # decoded in all
    megapixels: float = 0.0  # of these frames together
    decoding: float = 0.0  # seconds beside the observers
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)  # clip digest and evidence key -> observer runs
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # clip digest -> remarks on the file
    device: str = ""  # that networks ran on, if one process ran them all
    cache_problems: dict[str, str] = field(default_factory=dict)  # of the process, as `EvidenceCache.problems`


def observe_job(
    job: ObservingJob, cache: EvidenceCache | MemoryCache, limits: Limits, host: HostConnection | None = None
) -> Iterator[tuple[ClipTask, Outcome]]:
    """Make all evidence of a job, decoding each of its clips once; tell what became of each clip when it is done.

    With a host, observers with networks run there.
    """
    broken: dict[str, str] = {}
    with single_threaded_libraries(), ExitStack() as stack:
        shelves: dict[str, ReferenceFrames] = {}
        # Beside a GPU, workers are many.
        streams = _open_compared_clips_if_few(job, limits, stack) if host is None else {}
        uses = _uses_by_reference(job, limits, streams)
        room = KEPT_BYTES // max(len(job.references), 1)
        for clip in job.clips:
            outcome = Outcome(broken=dict(broken), device=host.device if host is not None else "")
            stored = None
            if clip.digest in job.references:
                stored = ReferenceFrames(room if clip.clip.frames is None else None)
            try:
                observed = _ObservedClip(clip, stored, uses.get(clip.digest, ()), shelves, outcome)
                observed.make_all_evidence(cache, limits, host, streams.pop(clip.digest, None))
            except MediaError as error:
                broken[clip.digest] = outcome.broken[clip.digest] = str(error)
            except Exception as error:  # a full disk, no memory, no further process, or what nobody expected
                reason = f"{clip.clip.path.name}: {_resource_error_sentence(error)}; run the same command again"
                broken[clip.digest] = outcome.broken[clip.digest] = reason
            else:
                if stored is not None:
                    shelves[clip.digest] = stored
            outcome.cache_problems = dict(cache.problems)
            yield clip, outcome


def _open_compared_clips_if_few(
    job: ObservingJob, limits: Limits, stack: ExitStack
) -> dict[str, ClipStream | FramesInMemory]:
    """Streams by digest of the clips that are compared with a reference, if these are few."""
    compared = [_ObservedClip(clip, None, (), {}, Outcome()) for clip in job.clips if clip.digest not in job.references]
    compared = [clip for clip in compared if clip.watching]
    streams: dict[str, ClipStream | FramesInMemory] = {}
    if not job.references or len(compared) > OPEN_AHEAD:
        return streams
    for clip in compared:
        with suppress(Exception):  # told when its turn comes
            streams[clip.task.digest] = stream = open_clip(clip.task.clip, limits, wanted=clip.all_wanted_frame_numbers)
            stack.callback(stream.__exit__)
    return streams


def _resource_error_sentence(error: Exception) -> str:
    """What the machine did not have for a clip, in words."""
    if isinstance(error, MemoryError):
        return "there was too little memory for it; use fewer --workers"
    if isinstance(error, OSError):
        return f"it could not be observed ({error.strerror or type(error).__name__}); look at the space on the disks"
    return f"it could not be observed ({error_sentence(error)})"


@dataclass
class _ObservedClip:
    """The observers of a clip while its frames go by; one that fails does not cost the others their evidence."""

    task: ClipTask
    stored: ReferenceFrames | None  # where its frames are kept that others are compared with
    uses: Collection[ReferenceUse]
    shelves: Mapping[str, ReferenceFrames]
    out: Outcome
    watchers: dict[str, RunningObserver] = field(default_factory=dict)  # by evidence key, as are the next three
    chosen: dict[str, set[int]] = field(default_factory=dict)  # frame numbers
    partners: dict[str, PartnersOf] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    hosted: HostClip | None = None

    def __post_init__(self) -> None:
        self.watching = [todo for todo in self.task.observers if todo.file is None]  # the others read files

    def make_all_evidence(
        self,
        cache: EvidenceCache | MemoryCache,
        limits: Limits,
        host: HostConnection | None,
        stream: ClipStream | FramesInMemory | None,
    ) -> None:
        """Make all evidence of the clip; its frames are decoded once."""
        task, out = self.task, self.out
        for todo in task.observers:
            if todo.file is not None:
                self._import_from_file(todo, cache)
        if not self.watching and self.stored is None:
            return
        opened = time.perf_counter()
        with open_clip(task.clip, limits, wanted=self.all_wanted_frame_numbers) if stream is None else stream as stream:
            info: ClipInfo = stream.info
            self.start_observers(info, host)
            self.feed_frames(stream, set(self.frame_numbers_to_keep(info.count).tolist()))
            out.decoded[task.digest] += 1
            out.frames += stream.passed
            out.megapixels += stream.passed * info.width * info.height / 1e6
            out.decoding += max(0.0, time.perf_counter() - opened - sum(self.seconds.values()))
            out.notes[task.digest] = (*stream.notes, *dict.fromkeys(self.remarks))
        if task.clip.frames is None and clip_digest(task.clip) != task.digest:
            raise MediaError(f"{task.clip.path.name}: {CHANGED}")
        if self.stored is not None:
            self.stored.info = info
        self.save_evidence(cache)

    @property
    def is_compared_with_own_reverse(self) -> bool:
        """Whether the clip is compared with itself backwards."""
        return any(todo.inputs.get("align") == "mirror" for todo in self.watching)

    def frame_numbers_to_keep(self, count: int) -> np.ndarray:
        """Numbers of the frames that are compared with later."""
        if self.stored is None:
            return np.zeros(0, np.int64)
        first_half = np.arange(count // 2 if self.is_compared_with_own_reverse else 0)
        return np.unique(np.concatenate([first_half, *(reference_frame_numbers_for(use, count) for use in self.uses)]))

    def all_wanted_frame_numbers(self, count: int, fps: float) -> np.ndarray:
        """Frame numbers that somebody wants; the rest is decoded but never converted to RGB."""
        picks = []
        for todo in self.watching:
            with suppress(Exception):  # told by `start_observers`, where it costs this observer only
                picks.append(wanted_frame_numbers(todo, count, fps))
        return np.unique(np.concatenate([self.frame_numbers_to_keep(count), *picks])).astype(np.int64)

    def start_observers(self, info: ClipInfo, host: HostConnection | None) -> None:
        """Start the observers, those with networks at the host where there is one."""
        if host is not None:
            self.hosted = HostClip(host, info, [todo for todo in self.watching if runs_at_host(todo)])
        for todo in self.watching:
            try:
                self.partners[todo.key] = self._make_partners_function(todo, info)
                self.chosen[todo.key] = set(wanted_frame_numbers(todo, info.count, info.fps).tolist())
                self.watchers[todo.key] = (
                    self.hosted.create_watcher(todo)
                    if self.hosted is not None and todo.key in self.hosted.tasks
                    else start_observer(observer_of(todo), info, inputs_of(todo), todo.params)
                )
            except Exception as error:
                self._record_failure(todo.key, error_sentence(error))
                continue
            self.seconds[todo.key] = 0.0
            self.out.runs[self.task.digest, todo.key] += 1

    def feed_frames(self, frames: Iterable[Frame], numbers_to_keep: Collection[int]) -> None:
        """Show each frame to the observers that want it, and keep those that others are compared with."""
        for frame in frames:
            if self.stored is not None and frame.index in numbers_to_keep:
                self.stored.put(frame)
            for todo in self.watching:
                if todo.key not in self.watchers or frame.index not in self.chosen[todo.key]:
                    continue
                started = time.perf_counter()
                try:
                    for partner in self.partners[todo.key](frame):
                        self.watchers[todo.key].see(frame, partner)
                except Exception as error:
                    self._record_failure(
                        todo.key, f"{todo.observer} failed on frame {frame.index}: {error_sentence(error)}"
                    )
                self.seconds[todo.key] += time.perf_counter() - started

    def _make_partners_function(self, todo: ObserverTask, info: ClipInfo) -> PartnersOf:
        """A function from a frame to those that it is compared with, one after the other; None without a reference."""
        if todo.reference is None:
            return lambda frame: [None]
        if todo.reference != self.task.digest:
            return self._make_reference_partners_function(todo, info)
        if not self.is_compared_with_own_reverse:
            return lambda frame: [frame]
        stored, second_half = self.stored, info.count - info.count // 2  # a frame in the middle has no mirror image
        assert stored is not None
        return lambda frame: [stored.get(info.count - 1 - frame.index)] if frame.index >= second_half else []

    def _make_reference_partners_function(self, task: ObserverTask, info: ClipInfo) -> PartnersOf:
        """A function from a frame of the clip to the frames of the reference it is compared with."""
        assert task.reference is not None
        if task.reference in self.out.broken:
            raise MediaError(f"the reference cannot be read: {self.out.broken[task.reference]}")
        if task.reference not in self.shelves:
            raise MediaError(
                "the reference was not decoded before this clip: clips must not be references of each other in a circle"
            )
        stored = self.shelves[task.reference]
        assert stored.info is not None
        if task.inputs["align"] == "index" and abs(stored.info.fps - info.fps) > 0.01:
            self.remarks.append(
                f"the clip has {info.fps:g} frames per second and its reference {stored.info.fps:g}; frames are "
                "compared by number"
            )
        ratio, true_ratio = (one.width / one.height for one in (info, stored.info))
        if abs(ratio / true_ratio - 1) > SHAPE and task.params.get("resize") != "mind":  # which crops
            self.remarks.append(
                f"the clip is {info.width}x{info.height} and its reference {stored.info.width}x{stored.info.height}: "
                "they are compared stretched to one shape"
            )
        partners_of = make_partners_function(task.inputs["align"], info, stored.info.count, stored.info.times)
        return lambda frame: [stored.get(number) for number in partners_of(frame)]

    def save_evidence(self, cache: EvidenceCache | MemoryCache) -> None:
        """Save what the observers made."""
        for todo in self.watching:
            if todo.key not in self.watchers:
                continue
            started = time.perf_counter()
            try:
                record = self.watchers[todo.key].finish()
                _require_unchanged_files(todo)
                cache.save(todo.key, record)
            except Exception as error:
                reason = error_sentence(error)
                self._record_failure(
                    todo.key, reason if isinstance(error, HostError) else f"{todo.observer} failed: {reason}"
                )
                continue
            spent = self.seconds[todo.key] + time.perf_counter() - started
            self.out.made[todo.key] = spent if self.hosted is None else self.hosted.seconds.get(todo.key, spent)

    def _import_from_file(self, todo: ObserverTask, cache: EvidenceCache | MemoryCache) -> None:
        """Make evidence from a file that came with the clip."""
        started = time.perf_counter()
        self.out.runs[self.task.digest, todo.key] += 1
        try:
            record = observer_of(todo).fn(todo.file, *inputs_of(todo), **todo.params)
            _require_unchanged_files(todo)
            cache.save(todo.key, record)
        except Exception as error:  # one file that cannot be read must not cost the clip its other evidence
            self._record_failure(todo.key, observer_error_sentence(todo, error))
        else:
            self.out.made[todo.key] = time.perf_counter() - started

    def _record_failure(self, key: str, sentence: str) -> None:
        self.out.failed[key] = sentence
        self.watchers.pop(key, None)


def _require_unchanged_files(todo: ObserverTask) -> None:
    """Raise MediaError where a file beside the clip is not what it was when the plan was made.

    The address of evidence names the content that it was made from, and the cache keeps it for all runs.
    """
    for path, digest in todo.files.items():
        if file_digest(path) != digest:
            raise MediaError(f"{path.name}: {CHANGED}")


def _uses_by_reference(
    job: ObservingJob, limits: Limits, streams: Mapping[str, ClipStream | FramesInMemory]
) -> dict[str, set[ReferenceUse]]:
    """Who is compared with each reference."""
    ends = {clip.digest for clip in job.clips if clip.clip.count is not None}  # no longer than somebody wanted it
    uses: dict[str, set[ReferenceUse]] = {
        reference: {ReferenceUse("time", 0)} if reference in ends else set() for reference in job.references
    }
    for clip in job.clips:
        pairs: dict[tuple[str, str], list[ObserverTask]] = defaultdict(list)
        for todo in clip.observers:
            if todo.reference and todo.reference != clip.digest and todo.reference not in ends:
                pairs[todo.reference, str(todo.inputs["align"])].append(todo)
        for (reference, rule), todos in pairs.items():
            if clip.digest in streams:
                info, numbers = streams[clip.digest].info, set[int]()
                for todo in todos:
                    with suppress(Exception):  # told when the observer starts
                        numbers.update(wanted_frame_numbers(todo, info.count, info.fps).tolist())
                uses[reference].add(ReferenceUse(rule, info.count, tuple(sorted(numbers))))
            else:
                uses[reference].add(
                    ReferenceUse(rule, 0 if rule in WHOLE else _announced_frame_count_or_zero(clip, limits))
                )
    return uses


def reference_frame_numbers_for(use: ReferenceUse, count: int) -> np.ndarray:
    """Numbers of the frames, of `count` in a reference, that a clip is compared with; all where only clocks tell."""
    if use.rule == "time" or (use.rule == "auto" and use.compared is None):
        return np.arange(count)
    info = ClipInfo(1, 1, use.length, 1.0, np.zeros(use.length))
    try:
        partners_of = make_partners_function(use.rule, info, count, np.zeros(count))
    except RevisitError:  # which is told of the clip
        return np.arange(0)
    compared = range(use.length) if use.compared is None else use.compared
    nothing = np.zeros((1, 1, 3), np.uint8)
    partners = [number for index in compared for number in partners_of(Frame(index, 0.0, nothing))]
    return np.unique(np.array(partners, dtype=np.int64))


def _announced_frame_count_or_zero(task: ClipTask, limits: Limits) -> int:
    """Frames that a clip announces; 0 for one that cannot be read, which is told when its turn comes."""
    try:
        return read_clip_info(task.clip, limits).count
    except Exception:
        return 0


class ReferenceFrames:
    """Decoded frames of a reference, to be read again in any order: in memory, and the rest on disk.

    Parameters
    ----------
    memory
        Bytes of frames that may stay in memory; None for all, where they were there anyway.
    """

    def __init__(self, memory: int | None) -> None:
        self.memory = np.inf if memory is None else memory
        self.file: Any = None  # of those that found no room
        self.kept: dict[int, np.ndarray] = {}
        self.seconds: dict[int, float] = {}
        self.rows: dict[int, int] = {}  # number of a frame -> its place in the file
        self.shape: tuple[int, ...] = ()
        self.info: ClipInfo | None = None
        self.last: Frame | None = None  # the one asked for last: several observers compare with it, one after the other

    def put(self, frame: Frame) -> None:
        self.shape = frame.rgb.shape
        self.seconds[frame.index] = frame.time
        if frame.rgb.nbytes <= self.memory:
            self.kept[frame.index] = frame.rgb
            self.memory -= frame.rgb.nbytes
            return
        if self.file is None:
            # A file without a name: it is gone with this process, however that ends.
            self.file = tempfile.TemporaryFile(prefix="revisit-")  # noqa: SIM115
        self.rows[frame.index] = len(self.rows)
        self.file.write(np.ascontiguousarray(frame.rgb).data)

    def get(self, index: int) -> Frame:
        """The frame of this number."""
        if self.last is None or self.last.index != index:
            self.last = Frame(index, self.seconds[index], self._read_pixels(index))
        return self.last

    def _read_pixels(self, index: int) -> np.ndarray:
        if index in self.kept:
            return self.kept[index]
        size = int(np.prod(self.shape))
        self.file.seek(self.rows[index] * size)
        return np.frombuffer(self.file.read(size), dtype=np.uint8).reshape(self.shape)


def make_partners_function(
    rule: str, info: ClipInfo, reference_count: int, reference_times: np.ndarray
) -> Callable[[Frame], list[int]]:
    """A function from a frame to the numbers of its partners: one at most, or by phases one for each map it is in.

    `index`: same number, the longer clip's rest is left out; `time`: nearest in seconds;
    `stretch`: same share of the length; `auto`: by number, if both have equally many frames. The rule `mirror`
    of a clip that is its own reference, its second half against the first backwards, is that of `_ObservedClip`.
    """
    if rule.startswith(RULE):
        partners_by_frame: dict[int, dict[int, None]] = defaultdict(dict)
        for members, partners in frame_pairs_by_phase(info.count, reference_count, *parse_phase_rule(rule)).values():
            for member, partner in zip(members.tolist(), partners.tolist(), strict=True):
                partners_by_frame[member][partner] = None
        return lambda frame: list(partners_by_frame.get(frame.index, ()))
    if rule == "auto":
        if reference_count != info.count:
            raise MediaError(
                f"the reference has {count_and_noun(reference_count, 'frame')} and the video {info.count}; "
                "pass --align (in Python align=) index, time or stretch, or remove the reference"
            )
        rule = "index"
    if rule == "index":
        return lambda frame: [frame.index] if frame.index < reference_count else []
    if rule == "time":
        return lambda frame: [int(np.abs(reference_times - frame.time).argmin())]
    span = max(info.count - 1, 1)
    return lambda frame: [min(round(frame.index * (reference_count - 1) / span), reference_count - 1)]
