"""The way in from Python: the same evaluation as the command's, and scores of frames that are in memory.

    results = revisit.evaluate("videos/", set="small")      # as `revisit eval`, resumable
    results = revisit.load("runs/videos")                   # what a run found
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

from revisit import weights
from revisit.core import OBSERVERS, SUITES, Case, Clip, Target, UsageError, load_all
from revisit.core.cases import FRAME_RATE_OF_FOLDERS, InMemory
from revisit.core.frames import pixels
from revisit.media import open_clip
from revisit.results import Results

if TYPE_CHECKING:
    from revisit.control.generation import Generation

Box = tuple[float, float, float, float]  # x0, y0, x1, y1 as fractions of the first frame


def evaluate(
    source: str | Path,
    *,
    suite: str = "auto",
    set: str = "lite",
    protocol: str | None = None,
    metrics: Sequence[str] = (),
    out: str | Path | None = None,
    limit: int | None = None,
    align: str = "auto",
    roots: Iterable[str | Path] = (),
    options: Mapping[str, Any] | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    judge: str = "",
    truth: bool = True,
    workers: int | None = None,
    fresh: bool = False,
    report: bool = False,
    progress: bool = False,
) -> Results:
    """Score a dataset or a folder of videos, as `revisit eval` does; the same call resumes.

    >>> results = revisit.evaluate("videos/", set="small", metrics=["psnr"])
    >>> results.mean("psnr")["my-model"].mean

    `out` is the run directory, runs/<name of the source> by default. `params` are parameters by metric, gate, evidence
    or observer. With `truth`, references are scored, too, and stand apart in `results.truth`. `report` writes the page;
    `progress` shows how far the work is. Where a metric fails, the answer about that clip is a failed one, and a
    warning tells of it once. With `workers=0` everything runs in this process; an observer that is defined in a
    notebook or script needs that, and gets it.
    """
    from dataclasses import replace

    from revisit.engine.request import Request, merged

    named = [f"{name}={value}" for name, value in (options or {}).items()]
    request = Request.of(
        Path(source), suite, set, protocol, metrics, limit, align, [Path(root) for root in roots], named, judge
    )
    request = replace(request, parameters=merged(params or {}), truth=truth)
    told = None
    if progress:
        from revisit.cli.console import progress as bar

        told = bar(quiet=False)
    place = request.usual_place if out is None else Path(out)
    run = request.run(place, progress=told, command="revisit.evaluate", fresh=fresh, workers=workers)
    if report:
        from revisit.report.write_html import write_report

        write_report(run)
    results = run.results
    results.warn_of_failures()
    return results


def load(run: str | Path) -> Results:
    """What a run directory holds.

    >>> results = revisit.load("runs/videos")
    """
    from revisit.results.run import Run

    return Run(Path(run)).results


def score(
    frames: Any,
    *,
    reference: Any = None,
    target: Target | Box | None = None,
    prompt: str = "",
    camera: str = "",
    phases: tuple[int, int] | None = None,
    annotations: Mapping[str, Any] | None = None,
    fps: float = FRAME_RATE_OF_FOLDERS,
    model: str = "model",
    suite: str = "folder",
    set: str = "lite",
    protocol: str | None = None,
    metrics: Sequence[str] = (),
    params: Mapping[str, Mapping[str, Any]] | None = None,
) -> Results:
    """Scores of frames in memory, in this process; nothing is written.

    >>> results = revisit.score(frames, reference=truth, target=(0.4, 0.5, 0.5, 0.7))
    >>> results.scalars()
    {"memory/target_reappearance": 0.81, ...}

    `frames` is one clip, or several: a list, or a mapping from names. `reference` is then several, too, or one for
    all. Everything else is said of all clips. The scores are those that `revisit eval` gives the same frames.
    """
    from revisit.engine.in_memory import plan_of, score_cases
    from revisit.engine.request import observer_set

    clips = _several(frames)
    truths: Mapping[str, Any] = dict.fromkeys(clips)
    if reference is not None:
        truths = _several(reference)
        if not _is_several(reference):
            truths = dict.fromkeys(clips, reference)
        if missing := sorted(clips.keys() ^ truths.keys()):
            raise UsageError(f"clips and references do not go together: {missing[0]!r} has only one of them")
    facts = {"prompt": prompt, "camera": camera, "phases": phases, "annotations": dict(annotations or {})}
    shared = {id(truth): _clip("reference", truth, fps) for truth in truths.values() if truth is not None}
    cases = [
        Case(
            f"{name}@{model}",
            suite,
            model,
            name,
            _clip(name, rgb, fps),
            reference=None if truths[name] is None else shared[id(truths[name])],
            target=_target(target),
            **facts,  # type: ignore[arg-type]
        )
        for name, rgb in clips.items()
    ]
    plan = plan_of(SUITES[suite], cases, observer_set(set), protocol=protocol, metrics=metrics, overrides=params)
    results = score_cases(plan)
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
    **given: Any,
) -> Any:
    """The evidence that one observer makes of frames, or of a video; `revisit list observers` names them.

    Further names are its other inputs, such as `phases`, and its parameters.

    >>> flow = revisit.observe(frames, "lite.flow")
    >>> flow = revisit.observe("clip.mp4", "lite.flow")
    """
    load_all()
    chosen = OBSERVERS[observer]
    if why := weights.why_missing(chosen.weights):
        raise UsageError(f"{observer}: {why}")
    given |= {"target": _target(target)} if target is not None else {}
    given |= {"prompt": prompt} if prompt else {}
    inputs, params = chosen.arguments(given)
    if chosen.kind == "file":
        return chosen(frames, **given)
    wanted = partial(chosen.wanted, inputs=inputs, params=params)
    with ExitStack() as opened:
        shown, truth = (
            None if one is None else opened.enter_context(open_clip(_clip(name, one, fps), wanted=wanted))
            for name, one in (("clip", frames), ("reference", reference))
        )
        return chosen(shown, reference=truth, **given)


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

    >>> made = revisit.generate("mind", my_model, data="MIND-Data", model="mine")
    >>> made.good, made.source          # whether every clip is there; what `revisit.evaluate` is given

    `by` is a function of a job (see docs/generate.md) that writes job["out"] or returns frames; or a command, which
    with `serve` is started once per worker; or the name of a baseline: pan, hold, repeat or world. What a clip takes,
    and its `price` where one is given, stand in models.yaml beside the clips.
    """
    from revisit.control import generation
    from revisit.control.baseline_generators import STANDINS
    from revisit.control.generators import generator as card
    from revisit.worlds.on_demand import world

    is_baseline = isinstance(by, str) and by in {**STANDINS, "world": world}
    kind = "baseline" if is_baseline else "function" if not isinstance(by, str) else "serve" if serve else "command"
    maker: dict[str, Any] = {kind: by}
    who = generation.By(**maker, workers=workers, gpus=[str(gpu) for gpu in gpus])
    name = model or who.baseline
    if not name:
        raise UsageError("model= says what your model is called in tables and folders")
    to = card(generator) if generator else None
    again = "any" if replace else ""
    how = generation.how_of(who, timeout=timeout, retries=retries, replace=again, to=to, price=price)
    (wanted,) = generation.conditions(
        name, [f"{size[0]}x{size[1]}"] if size else [], first_frame, to=to, frames=frames, fps=fps, seed=seed,
        only=tuple(only), limit=limit, options=dict(options or {}),
    )  # fmt: skip
    batch = generation.batch_of(suite, None if data is None else Path(data), None if out is None else Path(out), wanted)
    work = generation.with_ceilings([batch], who, how)
    ended = [made for part in work for made in generation.carry_out(*part, {"world": world})]
    return generation.Generation(tuple(ended), batch)


def _clip(name: str, given: Any, fps: float) -> Clip:
    if isinstance(given, Clip):
        return given
    if isinstance(given, str | Path):
        return Clip(Path(given))
    if not 0 < fps < float("inf"):
        raise UsageError(f"{fps:g} frames a second is not a rate; give a number above zero")
    return Clip(Path(name), fps=float(fps), frames=InMemory(pixels(given, name)))


def _is_several(given: Any) -> bool:
    return (
        isinstance(given, Mapping)
        or (isinstance(given, list | tuple) and len(given) > 0 and getattr(given[0], "ndim", 0) == 4)
        or getattr(given, "ndim", 0) == 5
    )


def _several(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): clip for name, clip in given.items()}
    if _is_several(given):
        digits = len(str(len(given) - 1))
        return {f"{number:0{digits}d}": clip for number, clip in enumerate(given)}
    return {"clip": given}


def _target(given: Target | Box | None) -> Target | None:
    if given is None or isinstance(given, Target):
        return given
    box = tuple(float(edge) for edge in given)
    if len(box) != 4 or not (0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
        raise UsageError(f"a target is x0, y0, x1, y1 as fractions of the first frame, not {tuple(given)}")
    return Target("target", (box[0], box[1], box[2], box[3]))
