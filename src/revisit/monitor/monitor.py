"""Monitor: scores what a sampler makes while a model trains, with the habits of torchmetrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from revisit.core import METRICS, SUITES, Case, Clip, Rejected, Target, UsageError, digest, import_registering_modules
from revisit.core.cases import FRAME_RATE_OF_FOLDERS, IN_MEMORY, InMemory, target_from_box
from revisit.core.observer import Params
from revisit.core.text import count_and_noun
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.leases import lock_run
from revisit.engine.plan import Plan
from revisit.engine.provenance import InvocationLog
from revisit.engine.request import warn_or_raise_if_unavailable
from revisit.engine.resume import resume_run
from revisit.engine.run_summary import write_result_files
from revisit.engine.score import record_with_saved_units
from revisit.monitor.checkpoint import Checkpoint, memory_mean_cell
from revisit.monitor.layouts import NotFinite, ValueRange, frames_to_uint8, require_valid_layout
from revisit.monitor.ranks import gather_from_ranks, rank_and_count
from revisit.monitor.scoring import ClipScorer, ScoredClip, Spent
from revisit.report.write_html import write_report
from revisit.results import Results
from revisit.results.ceilings import held_to_truth
from revisit.results.record_files import RecordWriter
from revisit.results.run import Run

LOOK_AWAY, MOTION = "look_away", "motion_amount"


class MonitorState(TypedDict):
    """What a training keeps with its weights: the clips, and the metric that the number of memory rests on."""

    names: list[str]
    metric: str


@dataclass
class _Part:
    """What one rank holds of a checkpoint."""

    clips: dict[str, ScoredClip] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # name -> why
    names: list[str] = field(default_factory=list)  # of the subset
    spent: Spent = field(default_factory=Spent)


class Monitor:
    """Score generated clips in memory while a model trains: `update`, `compute`, `reset`.

    Frames stay where they are until they are bytes; nothing is written unless `out` is given. Of each clip only its
    answers and a few small pictures are kept. Under `torch.distributed` every rank updates with its own clips, and
    `compute` gathers them.

    Parameters
    ----------
    layout
        Axes of the frames: T, H, W and C in your order, with B before them for a batch, such as "BCTHW".
    value_range
        Values of black and white, for floats: (0, 1) or (-1, 1). Bytes need none.
    clips, seconds
        Budget of a checkpoint; all clips by default. The same clips are scored at each.
    names
        All names that may come, of which `clips` are picked; by default the first that come are taken.
    metrics
        Ids of metrics, or names of groups; by default those of memory, and how much moves.
    memory
        The metric that the number of memory rests on; by default the suite's best that all clips can be asked.
    set, suite, protocol, params
        As `revisit.score` takes them.
    fps, model
        Frames a second, and the name of the model in the results.
    out
        Folder for a run directory with its page for each checkpoint: `revisit trend OUT/*` compares them.

    Examples
    --------
    >>> monitor = revisit.Monitor(layout="TCHW", value_range=(-1, 1), metrics=["return_consistency", "motion_amount"])
    >>> for name in ("kitchen", "garden"):
    ...     monitor.update(np.zeros((8, 3, 32, 48), np.float32), name=name)
    >>> checkpoint = monitor.compute()
    >>> checkpoint.memory.mean, checkpoint.coverage
    (0.0, 0.0)
    >>> monitor.reset()
    """

    def __init__(
        self,
        *,
        layout: str = "THWC",
        value_range: ValueRange | None = None,
        clips: int | None = None,
        seconds: float | None = None,
        names: Collection[str] = (),
        metrics: Sequence[str] = (),
        memory: str = "",
        set: str = "lite",
        suite: str = "folder",
        protocol: str | None = None,
        params: Mapping[str, Params] | None = None,
        fps: float = FRAME_RATE_OF_FOLDERS,
        model: str = "model",
        out: str | Path | None = None,
    ) -> None:
        require_valid_layout(layout, value_range)
        import_registering_modules()
        self.layout, self.value_range, self.fps, self.model = layout, value_range, float(fps), model
        self.out = None if out is None else Path(out)
        self.subset = Subset(names, clips, seconds)
        self._scorer = ClipScorer(suite, set, protocol, metrics, params or {})
        if not metrics:
            moves = [MOTION] if MOTION in SUITES[suite].metrics() else []
            self._scorer.metrics = [*self._scorer.memory_metrics(), *moves, LOOK_AWAY]
        if memory and (memory not in METRICS or None in METRICS[memory].range):
            raise UsageError(f"memory={memory!r} is no metric with a range; leave it out or see `revisit list metrics`")
        self.metric = memory
        warn_or_raise_if_unavailable(self._scorer.plan_for_cases())
        self._truth_of_scene: dict[str, str] = {}
        self._warned = False
        self._names: dict[str, None] = {}  # of the clips of all ranks
        self._part = _Part()

    def wants(self, name: str) -> bool:
        """Ask whether a clip of this name is scored, before it is generated.

        Parameters
        ----------
        name
            Of the clip.

        Returns
        -------
        bool
            False for what the budget leaves out.

        Examples
        --------
        >>> names = [f"scene-{number}" for number in range(100)]
        >>> monitor = revisit.Monitor(names=names, clips=8)
        >>> sum(monitor.wants(name) for name in names)
        8
        """
        return self.subset.wants(name, self._part.spent.total, rank_and_count())

    def update(
        self,
        frames: Any,
        *,
        name: str | Sequence[str],
        reference: Any = None,
        scene: str = "",
        target: Target | Sequence[float] | None = None,
        prompt: str = "",
        camera: str = "",
        phases: tuple[int, int] | None = None,
        annotations: Params | None = None,
    ) -> None:
        """Score a clip, or a batch of clips, unless the budget leaves it out.

        A clip whose values are not finite is refused and counts 0; the training goes on.

        Parameters
        ----------
        frames
            Array or tensor on any device, in the layout and range of the monitor; a sequence of clips for a batch.
        name
            Of the clip, the same at every checkpoint; names for a batch.
        reference
            The true video in the same layout and range, or in bytes (T, H, W, C).
        scene
            What clips of one scene share; the name by default. They share the reference, too.
        target
            What to remember: a `Target`, or its box in the first frame as fractions x0, y0, x1, y1.
        prompt, camera, phases, annotations
            What is known of the clip, as `revisit.score` takes it.

        Examples
        --------
        >>> monitor = revisit.Monitor(layout="BTCHW", value_range=(0, 1), metrics=["flicker"])
        >>> monitor.update(np.zeros((2, 8, 3, 32, 48), np.float32), name=["kitchen", "garden"])
        """
        if not isinstance(name, str):
            truths = [None] * len(name) if reference is None else reference
            if not len(name) == len(frames) == len(truths):
                raise UsageError(
                    f"{count_and_noun(len(name), 'name')}, {count_and_noun(len(frames), 'clip')} and "
                    f"{count_and_noun(len(truths), 'reference')} do not go together"
                )
            for one, clip, truth in zip(name, frames, truths, strict=True):
                self.update(
                    clip, name=one, reference=truth, scene=scene, target=target, prompt=prompt, camera=camera,
                    phases=phases, annotations=annotations,
                )  # fmt: skip
            return
        shape = tuple(getattr(frames, "shape", ()))
        if self.layout.startswith("B") and len(shape) == len(self.layout):
            raise UsageError(f"{name!r} is one name, and this a batch of {shape[0]} clips: give a list of names")
        if not self.wants(name):
            return
        if name in self._part.clips or name in self._part.refused:
            raise UsageError(f"{name!r} came twice at this checkpoint; names are unique, and reset() begins the next")
        started = time.perf_counter()
        case = Case(
            f"{name}@{self.model}", self._scorer.suite, self.model, scene or name, Clip(Path(IN_MEMORY) / name),
            target=target_from_box(target), prompt=prompt, camera=camera, phases=phases,
            annotations=dict(annotations or {}),
        )  # fmt: skip
        self._score_and_keep_clip(case, frames, reference, started)

    def compute(self, step: int | None = None) -> Checkpoint:
        """Gather the clips of all ranks, and sum them up.

        Every rank must call it, and gets the same. Where `out` is given, rank 0 writes the run and its page.

        Parameters
        ----------
        step
            Of the training: the name of the run directory in `out`; a count by default.

        Returns
        -------
        Checkpoint
            The number of memory with its interval and coverage, pictures, and what it took.

        Examples
        --------
        >>> monitor = revisit.Monitor(metrics=["return_consistency", "motion_amount"])
        >>> monitor.update(np.full((8, 32, 48, 3), 128, np.uint8), name="still")
        >>> print(monitor.compute().sentence.partition(":")[0])
        memory 0.00 by return_consistency
        """
        self.subset.allow_no_more_clips()
        self._part.names = list(self.subset.chosen)
        parts = gather_from_ranks(self._part)
        self._names = dict.fromkeys(name for part in parts for name in part.names)
        clips = {name: clip for part in reversed(parts) for name, clip in part.clips.items()}
        clips = {name: clips[name] for name in sorted(clips)}
        refused = {name: why for part in parts for name, why in part.refused.items() if name not in clips}
        if not clips and not refused:
            raise UsageError("there is nothing to compute: no clip came since the last reset()")
        missing = sorted(self._names.keys() - clips.keys() - refused.keys())
        reasons = {**refused, **dict.fromkeys(missing, "it did not come at this checkpoint")}
        rejected = [
            Rejected(f"{name}@{self.model}", why, self.model, missing=name not in refused)
            for name, why in reasons.items()
        ]
        scored = list(clips.values())
        plan = self._scorer.plan_for_all_clips(scored, rejected)
        records = {(one.case.id, one.question): one for clip in scored for one in clip.records}.values()
        series = {key: values for clip in scored for key, values in clip.series.items()}
        results = Results(plan.cases, records, rejected, asks=plan.suite.asks, series=series, name=self.model)
        if not self._warned:
            results.warn_of_failures()
            self._warned = True
        spent = sum((part.spent for part in parts), Spent())
        memory_metric = self.metric or self._choose_memory_metric(plan, scored)
        if clips:  # refused clips do not tell what can be asked of the next ones
            self.metric = memory_metric
        report = None
        if self.out is not None and rank_and_count()[0] == 0:
            number = sum(1 for _ in self.out.glob("step-*")) if step is None else step
            report = write_checkpoint_run(self.out / f"step-{number:08d}", plan, scored)
        tested = held_to_truth(results).cell(memory_metric)
        pictures: dict[str, Any] = {}
        for clip in scored:
            for case in clip.cases:
                key = clip.planned["wanted"][case.id].keys.get("thumbnails", "")
                if key in clip.pictures:
                    pictures[case.id] = clip.pictures[key]
        return Checkpoint(
            results, memory_metric, memory_mean_cell(results, memory_metric), tested, tested.n / len(results.entries),
            spent, report, tuple(missing), pictures,
        )  # fmt: skip

    def reset(self) -> None:
        """Begin the next checkpoint: answers go, the choice of clips and what was seen of references stay."""
        self._part = _Part()

    def state_dict(self) -> MonitorState:
        """Give what a training keeps, so that a later process scores the same clips.

        Returns
        -------
        dict
            Names of the clips, those of all ranks since the last `compute`, and the metric of memory.

        Examples
        --------
        >>> revisit.Monitor(metrics=["flicker"], memory="return_consistency").state_dict()
        {'names': [], 'metric': 'return_consistency'}
        """
        return {"names": list(dict.fromkeys([*self._names, *self.subset.chosen])), "metric": self.metric}

    def load_state_dict(self, state: MonitorState) -> None:
        """Go on with the clips of an earlier process.

        Parameters
        ----------
        state
            What `state_dict` gave.

        Examples
        --------
        >>> monitor = revisit.Monitor(metrics=["flicker"])
        >>> monitor.load_state_dict({"names": ["kitchen"], "metric": "return_consistency"})
        >>> monitor.wants("garden")
        False
        """
        self.subset.chosen, self.subset.settled = list(state["names"]), bool(state["names"])
        self.metric = state["metric"]

    def _score_and_keep_clip(self, case: Case, frames: Any, reference: Any, started: float) -> None:
        from revisit.networks.runtime import exact_sums_restoring_torch_switches

        name, part = case.clip.path.name if case.clip_name is None else case.clip_name, self._part
        with exact_sums_restoring_torch_switches():
            try:
                rgb = frames_to_uint8(frames, self.layout.removeprefix("B"), self.value_range, name)
            except NotFinite as error:
                part.refused[name] = str(error)
            else:
                clip = replace(case.clip, fps=self.fps, frames=InMemory(rgb))
                truth = None if reference is None else self._reference_clip(case, reference)
                scored = self._scorer.score_clip(replace(case, clip=clip, reference=truth))
                self._require_same_reference(case.sample, scored)
                part.clips[name] = scored
                part.spent += scored.spent
        if name not in self.subset.chosen:
            self.subset.chosen.append(name)
        part.spent += Spent(time.perf_counter() - started)

    def _reference_clip(self, case: Case, reference: Any) -> Clip:
        """The reference as a clip; bytes may come as they are, whatever the layout of what is generated."""
        name = f"the reference of {case.clip_name}"
        is_bytes = str(getattr(reference, "dtype", "")).removeprefix("torch.") == "uint8"
        plain = is_bytes and np.shape(reference)[-1] == 3
        layout, value_range = ("THWC", None) if plain else (self.layout.removeprefix("B"), self.value_range)
        try:
            rgb = frames_to_uint8(reference, layout, value_range, name)
        except NotFinite as error:
            raise UsageError(str(error)) from None
        return Clip(Path(IN_MEMORY) / "reference" / case.sample, fps=self.fps, frames=InMemory(rgb))

    def _require_same_reference(self, scene: str, scored: ScoredClip) -> None:
        for reference in scored.planned["references"].values():
            if self._truth_of_scene.setdefault(scene, reference) != reference:
                raise UsageError(
                    f"the reference of {scene!r} is another one than before; clips of a scene, and of a name at each "
                    "checkpoint, share it"
                )

    def _choose_memory_metric(self, plan: Plan, clips: Sequence[ScoredClip]) -> str:
        """The best metric of memory that was asked and that the most clips can be asked."""
        asked = {record.question for clip in clips for record in clip.records}
        questions = asked or {metric.id for metric in plan.metrics}
        able = [id for id in self._scorer.memory_metrics() if id in questions and None not in METRICS[id].range]
        if not able:
            raise UsageError("no metric of memory was asked; name one in metrics= or memory=, or leave metrics= out")
        lacking = Counter(id for clip in clips for id in clip.lacking)
        return min(able, key=lambda id: lacking[id])


class Subset:
    """Names of the clips that are scored.

    Of `names`, all that may come, `clips` are picked by a hash of each name: the choice depends on no order and on no
    rank. Where the names are not known, or the budget is in `seconds`, those that come first are taken until it is
    used up; from the first `allow_no_more_clips` on they stay. Ranks share a budget out.
    """

    def __init__(self, names: Collection[str], clips: int | None, seconds: float | None) -> None:
        if clips is not None and clips < 1:
            raise UsageError(f"clips={clips}: a budget is at least one clip")
        if seconds is not None and not seconds > 0:
            raise UsageError(f"seconds={seconds}: a budget is more than no time")
        self.clips, self.seconds = clips, seconds
        in_random_order = sorted(set(names), key=lambda name: (digest(name), name))  # always the same one
        self.allowed: frozenset[str] | None = frozenset(in_random_order[:clips]) if names else None
        self.chosen: list[str] = []  # as they came
        self.settled = False

    def wants(self, name: str, spent_seconds: float, rank_and_count: tuple[int, int] = (0, 1)) -> bool:
        """Whether a clip is scored, after so many seconds spent at this checkpoint by this rank."""
        if name in self.chosen:
            return True
        if self.settled or (self.allowed is not None and name not in self.allowed):
            return False
        if self.seconds is not None and self.chosen and spent_seconds >= self.seconds:
            return False
        rank, count = rank_and_count
        share = None if self.clips is None else self.clips // count + (rank < self.clips % count)
        return self.allowed is not None or share is None or len(self.chosen) < share

    def allow_no_more_clips(self) -> None:
        """From now on these clips, and no others; without a budget any may come."""
        self.settled = bool(self.chosen) and (self.clips is not None or self.seconds is not None)


def write_checkpoint_run(out: Path, plan: Plan, clips: Sequence[ScoredClip]) -> Path:
    """Write the run anew, with its page; return the page's path."""
    cache = EvidenceCache(cache_root())
    out.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        for key, record in clip.pictures.items():
            if key in cache:
                continue
            try:
                cache.save(key, record)
            except Exception as error:  # no training ends for a picture
                why = getattr(error, "strerror", None) or type(error).__name__
                cache.problems["write"] = (
                    f"the cache folder {cache.root} cannot be written ({why}): pages lack pictures"
                )
    with lock_run(out, alone=True):
        resumed = resume_run(out, plan, fresh=True, request=None, dataset_case_ids=None)
        account = InvocationLog(resumed, cache, "revisit.Monitor", None, cached=0, adds=False)
        with RecordWriter(out / "records.jsonl") as writer:
            on_disk: set[tuple[str, str]] = set()  # a truth comes with each of its clips
            for clip in clips:
                for record in clip.records:
                    asked = record.case.id, record.question
                    if asked not in on_disk:
                        writer.append(record_with_saved_units(record, clip.series.get(asked), out / "units"))
                        on_disk.add(asked)
        results = write_result_files(resumed)
        account.write_run_json(finished=time.time())
    return write_report(Run(out, resumed.lines, results))
