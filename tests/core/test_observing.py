"""Observers called on frames, one function as several observers, and evidence that checks itself."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from revisit.core import (
    EVIDENCE,
    OBSERVERS,
    Array,
    Batch,
    Case,
    Clip,
    InvalidEvidence,
    Target,
    UsageError,
    evidence,
    register_observer_per_network,
    to_arrays,
)
from revisit.core.cases import InMemory
from revisit.engine.cache import EvidenceCache, MemoryCache
from revisit.engine.in_memory import plan_for_given_cases
from revisit.engine.observe import observe_job
from revisit.engine.request import load_observer_set
from revisit.evidence.appearance import LabStats
from revisit.evidence.frames import Thumbnails
from revisit.evidence.views import ViewLinks
from revisit.media import Limits, save_npz
from revisit.suites.wrbench.evidence import Judgeability
from tests.looking import as_frames, wall, window

COUNT, FPS = 7, 10.0


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.stack([window(wall(400, 61), 9 * k, 101) for k in range(COUNT)])


def same(a: Any, b: Any) -> bool:
    """Whether two records are equal to the last bit."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
    return type(a) is type(b) and all(
        np.array_equal(x, y, equal_nan=x.dtype.kind == "f") and x.dtype == y.dtype
        if isinstance(x, np.ndarray)
        else x == y
        for x, y in pairs
    )


def test_a_call_gives_what_a_run_gives(frames: np.ndarray) -> None:
    """All classical observers: the engine feeds them in one pass, a call feeds each alone."""
    from revisit.core import SUITES

    truth = frames[:, ::-1].copy()
    target = Target("thing", (0.3, 0.3, 0.6, 0.7))
    clip, reference = (Clip(Path(name), fps=FPS, frames=InMemory(rgb)) for name, rgb in (("a", frames), ("b", truth)))
    case = Case("a@m", "folder", "m", "a", clip, reference=reference, target=target, phases=(3, 5))
    plan = plan_for_given_cases(SUITES["folder"], [case], load_observer_set("lite"))
    cache, compared = MemoryCache(), set()
    for job in plan.observing_jobs_for(plan.tasks):
        for _, outcome in observe_job(job, cache, Limits()):
            assert not outcome.failed and not outcome.broken
    for id, key in plan.wanted[case.id].keys.items():
        made = plan.tasks[key][2]
        observer = OBSERVERS[made.observer]
        said = {"target": target, "phases": (3, 5), "prompt": ""}
        given = {name: said[name] for name in observer.inputs}
        if observer.kind in ("frame", "sequence", "clip"):
            alone = observer(frames, reference=truth, fps=FPS, **given, **made.params)
            assert same(alone, cache.load(EVIDENCE[id], key)), observer.id
            compared.add(observer.kind)
    assert compared >= {"frame", "sequence"}


def test_frames_tensors_and_streams_are_the_same_clip(frames: np.ndarray) -> None:
    lab = OBSERVERS["lite.lab"]
    assert same(lab(frames), lab(as_frames(frames))) and same(lab(frames), lab(list(frames)))
    some = lab([frame for frame in as_frames(frames) if frame.index in (1, 4)])
    assert some.index.tolist() == [1, 4]


def test_what_a_call_lacks_is_said(frames: np.ndarray) -> None:
    with pytest.raises(UsageError, match=r"lite\.flow has no input or parameter 'speed'; it takes only frames"):
        OBSERVERS["lite.flow"](frames, speed=3)
    with pytest.raises(UsageError, match="needs phases: pass phases="):
        OBSERVERS["lite.warp"](frames)
    with pytest.raises(UsageError, match="no reference video was given"):
        OBSERVERS["lite.fidelity"](frames)
    with pytest.raises(UsageError, match="the reference has 6 frames and the clip 7"):
        OBSERVERS["lite.fidelity"](frames, reference=frames[1:])
    with pytest.raises(UsageError, match="needs a judge"):
        OBSERVERS["judge.vqa"](frames)


def test_one_function_is_several_observers() -> None:
    sizes = [OBSERVERS[id] for id in ("paper.depth", "paper.depth_base", "paper.depth_large")]
    assert [o.weights for o in sizes] == [(f"depth-anything-v2-{size}",) for size in ("small", "base", "large")]
    assert sizes[1].summary.endswith("by depth-anything-v2-base.")
    assert (
        len({repr(dict(o.params)) for o in sizes}) == 1
        and sizes[0].fn.__module__ == "revisit.suites.memobench.observers.depth"
    )

    @evidence(id="test_named")
    @dataclass(frozen=True)
    class Named:
        index: Annotated[Array, "N"]
        network: str

    @register_observer_per_network(
        {"test.a": "net-a", "test.b": ("net-b", "more")}, version=1, kind="frame", makes=Named
    )
    def named(network: str, batch: Batch, *, size: int = 3) -> Named:
        """Rows by {network}."""
        return Named(batch.index, f"{network} {size}")

    try:
        shown = np.zeros((2, 8, 8, 3), np.uint8)
        assert [one(shown, size=4).network for one in named] == ["net-a 4", "net-b 4"]
        assert named[1].weights == ("net-b", "more") and named[1].summary == "Rows by net-b."
    finally:
        for registry, ids in ((OBSERVERS, ("test.a", "test.b")), (EVIDENCE, ("test_named",))):
            for id in ids:
                del registry._things[id]  # type: ignore[attr-defined]


def lab(**changed: Any) -> LabStats:
    return LabStats(**{"index": np.array([0, 4, 9]), "mean": np.zeros((3, 3)), "std": np.ones((3, 3)), **changed})


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: lab(mean=np.zeros((2, 3))), r"LabStats\.mean has shape \(2, 3\); it must be \(N, 3\), where N is 3"),
        (lambda: lab(mean=np.zeros(3)), r"has shape \(3,\)"),
        (lambda: lab(std=np.zeros((3, 4))), r"has shape \(3, 4\)"),
        (lambda: lab(index=np.zeros((3, 1))), r"LabStats\.index has shape"),
        (lambda: lab(index=np.array([0, 4, 4])), "must be increasing"),
        (lambda: lab(mean=np.full((3, 3), np.inf)), "not finite"),
        (lambda: replace(lab(), mean=np.zeros((4, 3))), "N is 3 as in index"),
        (lambda: Thumbnails(np.arange(3), np.zeros(9, np.uint8), np.zeros(3), 4, 4), r"\(N \+ 1\), where N is 3"),
        (lambda: Judgeability(np.array([0, 2]), "a", np.zeros(0), -1, -1, judge="j"), "must be 0 or 1"),
    ],
)
def test_evidence_that_does_not_fit_is_refused_when_it_is_made(make: Any, said: str) -> None:
    with pytest.raises(InvalidEvidence, match=said):
        make()


def test_evidence_that_fits_is_made() -> None:
    assert lab(std=np.full((3, 3), np.nan)).index.tolist() == [0, 4, 9], "only what must be finite is asked"
    empty = np.zeros((0, 0))
    links = ViewLinks(
        np.zeros(0, int), np.zeros(0), np.zeros(0), empty, empty, np.zeros((0, 0, 3, 3)), empty, empty,
        np.zeros((0, 0, 2)), np.zeros(0), 0.0,
    )  # fmt: skip
    assert links.change.shape == (0,), "between no frames there is no step"


def test_damaged_evidence_in_the_cache_is_made_again(tmp_path: Path) -> None:
    cache = EvidenceCache(tmp_path)
    cache.save("ab1", lab())
    assert same(cache.load(LabStats, "ab1"), lab())
    save_npz(cache.path("ab1"), {**to_arrays(lab()), "mean": np.zeros((2, 3))})
    assert cache.load(LabStats, "ab1") is None and "ab1" not in cache
