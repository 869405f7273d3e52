"""What a run costs beside decoding, observing and scoring: a clip more, a metric more, the plan of a large dataset.

`python benchmarks/scale.py [--before CHECKOUT/src] [--clips 2000]` measures this version, and another one beside it in
the same run, in seconds of the processor. Clips are tiny; a few of them are observed, and their evidence stands for
that of the others, so that the time goes into what is measured.

`python benchmarks/scale.py --overhead 500 [--frames 33] [--workers 0]` observes all clips for real, at 480p, and tells
what share of the processor time is the engine's own, starts included: everything but decoding, observers and metrics;
then adds a metric to that run. Workers measure themselves.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from shares import run_apart

SEEN = 20  # clips that are observed
MODELS = 4
FRAMES, HEIGHT, WIDTH = 9, 48, 64
OURS = str(Path(__file__).resolve().parent.parent / "src")


def make_clips(folder: Path, count: int, start: int = 0) -> None:
    for k in range(start, start + count):
        make_clip(folder, k, FRAMES, (HEIGHT, WIDTH))


def make_clip(folder: Path, k: int, frames: int, size: tuple[int, int]) -> None:
    """A clip of a view that goes away and comes back, each with other bytes."""
    from revisit.media import encode_mp4

    height, width = size
    path = folder / f"model{k % MODELS}" / f"scene{k // MODELS:05d}.mp4"
    path.parent.mkdir(parents=True, exist_ok=True)
    view = np.roll(wall(height, width + 12 * frames), k // 40, axis=1)
    view = view[k % 40 : k % 40 + height] // 2 + np.uint8(k % 64)
    way = [*range(frames // 2 + 1), *range(frames // 2 - 1, -1, -1)]
    step = 4 * (1 + k % 3)
    encode_mp4(path, [view[:, step * t : step * t + width] for t in way], 8)


@lru_cache
def wall(height: int, width: int) -> np.ndarray:
    """What the clips show."""
    import cv2

    noise = np.random.default_rng(1).integers(0, 256, (height + 40, width, 3), dtype=np.uint8)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 1.5), None, 0, 255, cv2.NORM_MINMAX)


def lend_evidence(videos: Path, seen: Path) -> None:
    """Let the evidence of the run `seen` stand for that of all clips, in the cache of this process."""
    from revisit.core import import_registering_modules
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.request import Request

    import_registering_modules()
    cache = EvidenceCache(cache_root())
    known = json.loads((seen / "plan.json").read_text())["cases"]
    plan = Request.from_options(videos).plan()
    for k, case in enumerate(plan.cases):
        for kind, key in plan.wanted[case.id].keys.items():
            path = cache.path(key)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(cache.path(known[k % len(known)]["evidence"][kind]), path)


def plan_many(cases: int, metrics: int) -> None:
    """Plan and open a run of so many cases, of which no clip is read; print what it took."""
    import time
    from dataclasses import replace

    from revisit.core import SUITES, Case, Clip, import_registering_modules
    from revisit.engine import plan as planning
    from revisit.engine.request import load_observer_set
    from revisit.engine.resume import resume_run

    import_registering_modules()
    made = [
        Case(f"scene{k // 8}@model{k % 8}#0", "folder", f"model{k % 8}", f"scene{k // 8}", Clip(Path(f"/v/{k}.mp4")))
        for k in range(cases)
    ]
    reader: Any = importlib.import_module("revisit.media.digest")
    if not hasattr(reader, "ClipDigests"):  # of earlier versions
        hashing = importlib.util.find_spec("revisit.engine.clip_digests")
        reader = importlib.import_module("revisit.engine.clip_digests") if hashing else planning
    reader.clip_digest = lambda clip: str(clip.path)
    suite = replace(SUITES["folder"], read=lambda source, roots: made)
    ids = suite.metrics()[:metrics]
    started = time.process_time()
    plan = planning.make_plan(suite, Path(), load_observer_set("lite"), metrics=ids)
    planned = time.process_time() - started
    with tempfile.TemporaryDirectory() as folder:
        resume_run(Path(folder), plan, fresh=False, request=None, dataset_case_ids=None)
    whole = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform != "darwin" else 1 << 30)
    counts = {"cases": len(plan.cases), "askers": len(plan.checks)}
    print(json.dumps({**counts, "plan": planned, "with_folder": whole, "gb": memory}))


def show_overhead(source: str, clips: int, frames: int, workers: int) -> None:
    """The engine's own share of a run in which everything is observed, and what one metric more costs after it."""
    with tempfile.TemporaryDirectory() as folder:
        videos, cache = Path(folder) / "videos", Path(folder) / "cache"
        with ProcessPoolExecutor(max(workers, 1)) as pool:
            for _ in pool.map(make_clip, [videos] * clips, range(clips), [frames] * clips, [(480, 832)] * clips):
                pass
        asked(source, cache)  # compiles it
        found = []
        for without in (["--without", "return_consistency"], []):
            words = ["--apart", str(videos), str(Path(folder) / "run"), "--workers", str(workers), *without]
            _, said = processor_time(source, [str(Path(__file__).resolve()), *words], cache)
            found.append(json.loads(said.splitlines()[-1]))
    first, more = found
    whole = first.pop("all")
    work = {name: first.pop(name) for name in ("decoding", "observers", "metrics")}
    engine = whole - sum(work.values())
    rest = {**first, "everything else": engine - sum(first.values())}
    print(f"{clips} clips of {frames} frames, 480p, {workers} workers, seconds of the processor")
    parts = {f"  {name}": value for name, value in sorted(rest.items(), key=lambda part: -part[1])}
    for name, value in {**work, "engine": engine, **parts, "all": whole, "one metric more": more["all"]}.items():
        print(f"{name:50} {value:8.2f}   {value / whole:6.1%}")


def processor_time(source: str, arguments: list[str], cache: Path) -> tuple[float, str]:
    """Seconds of the processor that a Python command took with its children, under a version of the package.

    Bytecode is kept, as an installed package has it: the first command of a version also compiles it.
    """
    paths = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, "REVISIT_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache.parent / "bytecode")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:  # 1 is also "finished, but something failed"
        raise SystemExit(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def measured(source: str, home: Path, clips: int) -> dict[str, Any]:
    """What this version takes for each step."""
    videos, few, cache, run = home / "videos", home / "few", home / "cache", home / "run"
    script = [str(Path(__file__).resolve())]
    evaluate = ["-m", "revisit", "eval", "--workers", "0", "--quiet"]
    found: dict[str, Any] = {}
    processor_time(source, [*evaluate, str(few), "--out", str(home / "seen"), "--no-report"], cache)
    processor_time(source, [*script, "--lend", str(videos), str(home / "seen")], cache)
    # The first time without one metric, which then comes as a new one.
    without = [id for id in asked(source, cache) if id != "return_consistency"]
    chosen = [word for id in without for word in ("-m", id)]
    found["all but one metric"], _ = processor_time(source, [*evaluate, str(videos), "--out", str(run), *chosen], cache)
    found["one metric more"], _ = processor_time(source, [*evaluate, str(videos), "--out", str(run)], cache)
    found["nothing new"], _ = processor_time(source, [*evaluate, str(videos), "--out", str(run)], cache)
    return found


def one_clip_more(source: str, home: Path) -> dict[str, Any]:
    """What the clip costs that was added since, and what of it is observing."""
    run = home / "run"
    arguments = ["-m", "revisit", "eval", "--workers", "0", "--quiet", str(home / "videos"), "--out", str(run)]
    whole, _ = processor_time(source, arguments, home / "cache")
    counters = json.loads((run / "run.json").read_text())["counters"]
    assert counters["clips_decoded"] == 1, counters
    observing = sum(counters["observer_seconds"].values())
    return {"one clip more": whole, "of which observing": observing}


def asked(source: str, cache: Path) -> list[str]:
    """What the folder suite asks, metrics and gates."""
    return processor_time(source, [str(Path(__file__).resolve()), "--asked"], cache)[1].split()


def print_asked() -> None:
    """Print what the folder suite asks, and import all that a run does."""
    import revisit.report.write_html
    from revisit.core import SUITES, import_registering_modules

    assert revisit.report.write_html
    import_registering_modules()
    print(*SUITES["folder"].metrics(), *SUITES["folder"].card.get("gates", ()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", help="the src folder of another version, measured beside this one")
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--overhead", type=int, help="clips that are observed for real, for the engine's own share")
    parser.add_argument("--frames", type=int, default=33, help="of each of them")
    parser.add_argument("--workers", type=int, default=0, help="processes that observe them; 0: this one")
    parser.add_argument("--lend", nargs=2, type=Path)
    parser.add_argument("--apart", nargs=2, type=Path)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--plan", nargs=2, type=int)
    parser.add_argument("--asked", action="store_true")
    chosen = parser.parse_args()
    if chosen.apart:
        videos, run = chosen.apart
        return run_apart(videos, run, chosen.without, chosen.workers)
    if chosen.overhead:
        return show_overhead(OURS, chosen.overhead, chosen.frames, chosen.workers)
    if chosen.lend:
        return lend_evidence(*chosen.lend)
    if chosen.asked:
        return print_asked()
    if chosen.plan:
        return plan_many(*chosen.plan)
    versions = {"now": OURS, **({"before": str(Path(chosen.before).resolve())} if chosen.before else {})}
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in versions:
            make_clips(Path(folder) / name / "videos", chosen.clips)
            make_clips(Path(folder) / name / "few", min(SEEN, chosen.clips))
        for name, source in versions.items():
            found[name] = measured(source, Path(folder) / name, chosen.clips)
            make_clips(Path(folder) / name / "videos", 1, start=chosen.clips)
            found[name] |= one_clip_more(source, Path(folder) / name)
            arguments = [str(Path(__file__).resolve()), "--plan", str(chosen.cases), "40"]
            _, told = processor_time(source, arguments, Path(folder) / name / "cache")
            facts = json.loads(told)
            found[name] |= {
                f"plan of {facts['cases']} cases, {facts['askers']} questions": facts["plan"],
                "the same with its folder opened": facts["with_folder"],
                "most memory of that, GB": facts["gb"],
            }
    print(f"{chosen.clips} clips, seconds of the processor")
    for step, value in found["now"].items():
        beside = found.get("before", {}).get(step)
        told = f"   before {beside:8.2f}   ratio {value / beside:6.3f}" if beside else ""
        print(f"{step:50} {value:8.2f}{told}")


if __name__ == "__main__":
    main()
