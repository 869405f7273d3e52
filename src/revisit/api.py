"""The Python interface: the evaluation of the command line, and scores of frames in memory.

    results = revisit.evaluate("videos/", set="small")      # as `revisit eval`, resumable
    results = revisit.load("runs/videos")                   # the results of a run
    results = revisit.rescore("runs/videos")                # the same run, scored again after a metric changed
    results = revisit.score(frames, reference=truth)        # arrays or tensors, in this process, no files
    flow = revisit.observe(frames, "lite.flow")             # the evidence that one observer makes
    revisit.generate("mind", my_model, data="MIND-Data", model="mine")   # clips of a benchmark by a function

Frames are (count, height, width, 3) of bytes: a numpy array, a torch tensor on any device, or whatever numpy can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit import weights
from revisit.core import OBSERVERS, SUITES, Case, Clip, Target, UsageError
from revisit.core.cases import FRAME_RATE_OF_FOLDERS, InMemory, target_from_box
from revisit.core.frames import as_pixel_array
from revisit.core.observer import Params
from revisit.media import open_clip
from revisit.results import Results

if TYPE_CHECKING:
    from revisit.control.generation import Generation

Box = tuple[float, float, float, float]  # x0, y0, x1, y1 as fractions of the first frame


def evaluate(
    source: str | Path | Iterable[Mapping[str, Any]],
    *,
    suite: str = "auto",
    set: str = "lite",
    protocol: str | None = None,
    metrics: str | Sequence[str] = (),
    out: str | Path | None = None,
    limit: int | None = None,
    workers: int | None = None,
    executor: str = "local",
    address: str = "",
    fresh: bool = False,
    align: str = "auto",
    layout: str = "",
    reference: str | Path | None = None,
    roots: Iterable[str | Path] = (),
    options: Params | None = None,
    judge: str = "",
    only: str = "",
    params: Mapping[str, Params] | None = None,
    truth: bool = True,
    device: str = "",
    precision: str = "",
    batch: int | None = None,
    limits: str = "",
    report: bool = False,
    progress: bool = False,
) -> Results:
    """Score a dataset or a folder of videos, as `revisit eval` does; the same call resumes.

    It works in notebooks and in scripts without a `__main__` guard. Where a metric fails, the answer about that clip is
    a failed one, and a warning tells of it once.

    Parameters
    ----------
    source
        A folder of videos, a manifest.jsonl, the folder of a benchmark's dataset, a dataset of LeRobot, WebDataset or
        Hugging Face; or an iterator of samples, mappings with `name`, `frames` and the like, which are written as
        lossless frames to the folder `clips` of the run.
    suite
        Suite of the source; "auto" recognises it by its layout.
    set
        Observer set: a name of `revisit list sets`, or a YAML file.
    protocol
        Protocol of the suite; its first one by default.
    metrics
        Ids of metrics, or names of groups; all of the suite by default.
    out
        Run directory; by default `runs/` and the name of the source.
    limit
        At most so many cases, spread evenly over models.
    workers
        Number of processes; one per core by default, 0 for this process only. What a notebook or script defines
        needs 0, and gets it.
    executor
        Who observes the clips: "local" (processes of this machine) or "ray" (a cluster).
    address
        Of the Ray cluster, such as "ray://host:10001"; a new one by default.
    fresh
        Discard earlier answers of this run.
    align
        How references are aligned: "auto", "index", "time" or "stretch".
    layout
        Which part of a path is what, such as "{scene}/{model}.mp4"; found by what repeats by default.
    reference
        Folder with the true videos, where they lie elsewhere, by the names of the scenes.
    roots
        Further folders that paths in a manifest may point to.
    options
        Options of the suite by name.
    judge
        A judge file, the url of a server, or recorded answers.
    only
        "judge" asks only what a judge is asked, and keeps the other answers.
    params
        Parameters by the id of a metric, gate, evidence or observer, instead of the protocol's.
    truth
        Score each reference, too; its answers stand apart in `Results.truth`.
    device
        For networks: "cpu", "cuda:1", or several GPUs as "cuda:0,cuda:1"; the first GPU by default.
    precision
        On a GPU: "float32" for everything, or "float16" also for LPIPS.
    batch
        Frames per batch on a GPU; as many as fit by default.
    limits
        For decoding, such as "frames=5000,seconds=60,memory=2G".
    report
        Write the HTML report at the end.
    progress
        Show how far the work is.

    Returns
    -------
    Results
        All answers, and operations on them.

    Raises
    ------
    UsageError
        If the call asks for something that does not exist; it is a ValueError, too.
    MissingPrerequisite
        If nothing of the set can run here; the message says what to install.

    Examples
    --------
    >>> results = revisit.evaluate(videos, metrics=["flicker"], out=run, workers=0)
    >>> results.models
    ['mine']
    """
    from dataclasses import replace

    from revisit.cli.console import make_progress_display
    from revisit.engine.parameters import check_parameters
    from revisit.engine.request import Request, find_executor, temporary_network_settings
    from revisit.media import Limits

    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise UsageError(f"workers is a number of processes, or None for one per core, not {workers!r}")
    if not isinstance(source, str | Path):
        from revisit.datasets.entries import write_samples_and_manifest

        if not isinstance(source, Iterable):
            raise UsageError(f"source is a path, or an iterator of samples, not {source!r}")
        out = Path("runs/samples") if out is None else Path(out)
        source = write_samples_and_manifest(source, out / "clips")
    named_options = [f"{name}={value}" for name, value in (options or {}).items()]
    folders = [Path(root) for root in roots]
    request = Request.from_options(
        Path(source), suite, set, protocol, _as_name_list(metrics), limit, align, folders, named_options, judge,
        truth=truth, only=only, layout=layout, reference=None if reference is None else Path(reference),
    )  # fmt: skip
    request = replace(request, parameters=check_parameters(params or {}))
    with temporary_network_settings(device, precision, batch):
        run = request.run(
            request.default_run_folder if out is None else Path(out),
            progress=make_progress_display(quiet=not progress),
            command="revisit.evaluate",
            fresh=fresh,
            workers=workers,
            executor=find_executor(executor, address, workers),
            limits=Limits.parse(limits),
        )
    if report:
        from revisit.report.write_html import write_report

        write_report(run)
    results = run.results
    results.warn_of_failures()
    return results


def load(run: str | Path) -> Results:
    """Read the results of a run directory.

    Parameters
    ----------
    run
        The folder that `evaluate` or `revisit eval` wrote.

    Returns
    -------
    Results
        All answers, and operations on them.

    Examples
    --------
    >>> run = revisit.evaluate(videos, metrics=["flicker"], out=run, workers=0).folder
    >>> revisit.load(run)
    Results(2 clips of 1 model, 2 answers)
    """
    from revisit.results.run import Run

    return Run(Path(run)).results


def rescore(run: str | Path) -> Results:
    """Score a run again from cached evidence, after a metric or protocol changed; nothing is decoded.

    Parameters
    ----------
    run
        The folder that `evaluate` or `revisit eval` wrote. Its records and summary are written anew.

    Returns
    -------
    Results
        The new answers.

    Examples
    --------
    >>> run = revisit.evaluate(videos, metrics=["flicker"], out=run, workers=0).folder
    >>> revisit.rescore(run)
    Results(2 clips of 1 model, 2 answers)
    """
    from revisit.engine.request import rescore_run_folder

    results = rescore_run_folder(Path(run)).results
    results.warn_of_failures()
    return results


def score(
    frames: Any,
    *,
    reference: Any = None,
    target: Target | Box | None = None,
    prompt: str = "",
    camera: str = "",
    phases: tuple[int, int] | None = None,
    annotations: Params | None = None,
    fps: float = FRAME_RATE_OF_FOLDERS,
    model: str = "model",
    suite: str = "folder",
    set: str = "lite",
    protocol: str | None = None,
    metrics: str | Sequence[str] = (),
    params: Mapping[str, Params] | None = None,
) -> Results:
    """Score frames in memory, in this process; nothing is written.

    The scores are those that `revisit eval` gives the same frames, to the last bit.

    Parameters
    ----------
    frames
        One clip, (count, height, width, 3) of bytes; or several: a list, or a mapping from names.
    reference
        The true video; for several clips several, too, or one for all.
    target
        What to remember: a `Target`, or its box in the first frame as fractions x0, y0, x1, y1.
    prompt
        The text that the generator was given.
    camera
        The camera script that it was given, such as "yaw:right:60@40,yaw:left:60@41".
    phases
        The first hidden and the first returned frame.
    annotations
        What else is known of all clips, by name.
    fps
        Frames a second; 24 by default.
    model
        Name of the model in the results.
    suite
        Whose metrics are asked.
    set
        Observer set, as `evaluate` takes it.
    protocol
        Protocol of the suite; its first one by default.
    metrics
        Ids of metrics, or names of groups; all of the suite by default.
    params
        Parameters by the id of a metric, gate, evidence or observer, instead of the protocol's.

    Returns
    -------
    Results
        All answers, and operations on them.

    Raises
    ------
    UsageError
        If these are no frames, or clips and references do not go together; it is a ValueError, too.

    Examples
    --------
    >>> truth = np.random.default_rng(0).integers(0, 256, (8, 32, 48, 3), dtype=np.uint8)
    >>> results = revisit.score(truth // 2, reference=truth, metrics=["psnr", "ssim"])
    >>> {name: round(value, 2) for name, value in results.scalars().items()}
    {'fidelity/psnr': 10.79, 'fidelity/ssim': 0.64}
    """
    from revisit.engine.in_memory import observe_and_score_cases, plan_for_given_cases
    from revisit.engine.request import load_observer_set

    clips = _clips_by_name(frames)
    truths: Mapping[str, Any] = dict.fromkeys(clips)
    if reference is not None:
        several = _holds_several_clips(reference)
        truths = _clips_by_name(reference) if several else dict.fromkeys(clips, reference)
        if unmatched := sorted(clips.keys() ^ truths.keys()):
            raise UsageError(f"clips and references do not go together: {unmatched[0]!r} has only one of them")
    references = {id(truth): _as_clip("reference", truth, fps) for truth in truths.values() if truth is not None}
    cases = [
        Case(
            f"{name}@{model}",
            suite,
            model,
            name,
            _as_clip(name, rgb, fps),
            reference=None if truths[name] is None else references[id(truths[name])],
            target=target_from_box(target),
            prompt=prompt,
            camera=camera,
            phases=phases,
            annotations=dict(annotations or {}),
        )
        for name, rgb in clips.items()
    ]
    plan = plan_for_given_cases(
        SUITES[suite],
        cases,
        load_observer_set(set),
        protocol=protocol,
        metrics=_as_name_list(metrics),
        parameters=params or {},
    )
    results = observe_and_score_cases(plan)
    results.warn_of_failures()
    return results


def observe(
    frames: Any,
    observer: str,
    *,
    reference: Any = None,
    target: Target | Box | None = None,
    prompt: str = "",
    fps: float = FRAME_RATE_OF_FOLDERS,
    **arguments: Any,
) -> Any:
    """Make the evidence of one observer from frames, or from a video.

    Parameters
    ----------
    frames
        One clip, (count, height, width, 3) of bytes, or the path of a video; for an importer the path of its file.
    observer
        Id of the observer; `revisit list observers` names all.
    reference
        The true video, for observers that compare.
    target
        What to remember, as `score` takes it.
    prompt
        The text that the generator was given.
    fps
        Frames a second, of what carries no clock; 24 by default.
    **arguments
        Its other inputs, such as `phases`, and its parameters.

    Returns
    -------
    evidence
        A record of the kind that the observer makes, such as `revisit.evidence.LabStats`.

    Raises
    ------
    UsageError
        If there is no such observer, or it lacks an input or its weights; it is a ValueError, too.

    Examples
    --------
    >>> lab = revisit.observe(np.full((4, 32, 48, 3), 128, np.uint8), "lite.lab")
    >>> lab.mean[:, 0].round(1)
    array([53.6, 53.6, 53.6, 53.6], dtype=float32)
    """
    chosen = OBSERVERS[observer]
    if why := weights.why_missing(chosen.weights):
        raise UsageError(f"{observer}: {why}")
    arguments |= {"target": target_from_box(target)} if target is not None else {}
    arguments |= {"prompt": prompt} if prompt else {}
    inputs, params = chosen.split_inputs_and_parameters(arguments)
    if chosen.kind == "file":
        return chosen(frames, **arguments)
    frame_numbers = partial(chosen.wanted_frame_numbers, inputs=inputs, params=params)
    with ExitStack() as stack:
        clip, truth = (
            None
            if source is None
            else stack.enter_context(open_clip(_as_clip(name, source, fps), wanted=frame_numbers))
            for name, source in (("clip", frames), ("reference", reference))
        )
        return chosen(clip, reference=truth, **arguments)


def failure_clips(
    kinds: str | Sequence[str], strengths: Sequence[float] = (0.0, 0.5, 1.0), *, frames: int = 17, seed: int = 0
) -> dict[str, np.ndarray]:
    """Render clips of models whose failures are known, to see whether a metric notices them.

    All show one room, from which the camera turns away and back.

    Parameters
    ----------
    kinds
        Failures, such as "lighting" or "vanish"; docs/failures.md lists them.
    strengths
        From 0, the truth, to 1, the whole failure.
    frames
        Length of each clip.
    seed
        Of the room and of the failures.

    Returns
    -------
    dict
        Frames (count, height, width, 3) by `kind@strength`.

    Examples
    --------
    >>> clips = revisit.failure_clips("vanish", strengths=[1], frames=9)
    >>> {name: clip.shape for name, clip in clips.items()}
    {'vanish@1': (9, 60, 104, 3)}
    """
    from revisit.worlds import make_world, play
    from revisit.worlds.failures import generate as frames_of_failure

    film = play(make_world(seed, "room", "ball"), "yaw", "none", size=(60, 104), frames=frames)
    return {
        f"{kind}@{strength:g}": np.stack(list(frames_of_failure(kind, film, strength=strength, seed=seed)))
        for kind in ([kinds] if isinstance(kinds, str) else kinds)
        for strength in strengths
    }


def generate(
    suite: str,
    by: Callable[[dict[str, Any]], Any] | str,
    *,
    data: str | Path | None = None,
    model: str = "",
    out: str | Path | None = None,
    serve: bool = False,
    generator: str = "",
    frames: int | None = None,
    size: tuple[int, int] | None = None,
    fps: float | None = None,
    seed: int = 0,
    first_frame: bool = True,
    only: Sequence[str] = (),
    limit: int | None = None,
    options: Mapping[str, str] | None = None,
    workers: int = 0,
    gpus: Sequence[int | str] = (),
    timeout: float = 3600,
    retries: int = 0,
    replace: bool = False,
    price: float | None = None,
) -> Generation:
    """Make the clips of a benchmark's dataset, as `revisit generate` does; the same call resumes.

    Parameters
    ----------
    suite
        The benchmark.
    by
        A function of a job (see docs/generate.md) that writes job["out"] or returns frames; a command; or the name of
        a baseline: "pan", "hold", "repeat" or "world".
    data
        Folder of the dataset.
    out
        Folder of the clips.
    model
        What your model is called in tables and folders.
    serve
        Whether the command is started once per worker and answers job after job.
    generator
        The card of a known generator, whose sizes, lengths and camera formats apply.
    frames
        Length of a clip, where the benchmark leaves it open.
    size
        Width and height, where the benchmark leaves them open.
    fps
        Frames a second, where the benchmark leaves them open.
    seed
        Of the generator.
    first_frame
        Whether the generator is given the first frame.
    only
        Ids of the jobs to carry out; all by default.
    limit
        At most so many jobs.
    options
        Options of the suite by name.
    workers
        Processes that carry out jobs; 0 for this one.
    gpus
        GPUs of the processes, in turn.
    timeout
        Seconds for a clip.
    retries
        Further tries of a job that failed.
    replace
        Whether clips that are there are made again.
    price
        What a clip costs, for models.yaml beside the clips and for tables.

    Returns
    -------
    Generation
        Whether every clip is there (`good`), what became of each, and what `evaluate` is given (`source`).

    Raises
    ------
    UsageError
        If there is no such benchmark or baseline, or the model has no name.

    Examples
    --------
    >>> made = revisit.generate("mind", my_model, data="MIND-Data", model="mine")  # doctest: +SKIP
    >>> results = revisit.evaluate(made.source)  # doctest: +SKIP
    """
    from revisit.control import generation
    from revisit.control.generator_backends import BASELINE_GENERATORS
    from revisit.control.generators import find_generator as card
    from revisit.worlds.on_demand import rendered_world_frames

    further = {"world": rendered_world_frames}
    is_baseline = isinstance(by, str) and by in {**BASELINE_GENERATORS, **further}
    kind = "baseline" if is_baseline else "function" if not isinstance(by, str) else "serve" if serve else "command"
    maker: dict[str, Any] = {kind: by}
    who = generation.GeneratorChoice(**maker, workers=workers, gpus=[str(gpu) for gpu in gpus], further=further)
    name = model or who.baseline
    if not name:
        raise UsageError("model= says what your model is called in tables and folders")
    to = card(generator) if generator else None
    how = generation.generation_settings_for(
        who, timeout=timeout, retries=retries, replace="any" if replace else "", to=to, price=price
    )
    (condition,) = generation.batch_request_per_size(
        name, [f"{size[0]}x{size[1]}"] if size else [], first_frame, to=to, frames=frames, fps=fps, seed=seed,
        only=tuple(only), limit=limit, options=dict(options or {}),
    )  # fmt: skip
    folder, clips = (None if path is None else Path(path) for path in (data, out))
    batch = generation.load_batch(suite, folder, clips, condition)
    running = generation.generate_batches([batch], who, how)
    jobs = [job for _, results in running for job in results]
    return generation.Generation(tuple(jobs), batch)


def _as_name_list(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _as_clip(name: str, source: Any, fps: float) -> Clip:
    if isinstance(source, Clip):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        return Clip(path, fps=fps if path.is_dir() or path.suffix == ".npy" else None)  # which carry no clock
    if not 0 < fps < float("inf"):
        raise UsageError(f"{fps:g} frames a second is not a rate; give a number above zero")
    return Clip(Path(name), fps=float(fps), frames=InMemory(as_pixel_array(source, name)))


def _holds_several_clips(clips: Any) -> bool:
    return (
        isinstance(clips, Mapping)
        or (isinstance(clips, list | tuple) and len(clips) > 0 and getattr(clips[0], "ndim", 0) == 4)
        or getattr(clips, "ndim", 0) == 5
    )


def _clips_by_name(clips: Any) -> dict[str, Any]:
    if isinstance(clips, Mapping):
        return {str(name): clip for name, clip in clips.items()}
    if _holds_several_clips(clips):
        digits = len(str(len(clips) - 1))
        return {f"{number:0{digits}d}": clip for number, clip in enumerate(clips)}
    return {"clip": clips}
