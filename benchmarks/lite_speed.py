"""What observing costs, observer by observer, and what it finds: this version, and another one beside it.

    python benchmarks/lite_speed.py [--before OLD/src] [--rounds 3] [--set lite] [--models 1] [manifest.jsonl ...]

Every case of the manifests is evaluated by both versions in turn, each in a process of its own and with an empty cache.
Told are milliseconds of processor time per frame (what several observers share is charged to the first that asks for
it; decoding is another process), the size of the evidence, and how far every score moved. Without a manifest, a clip of
480p with a reference and a target is rendered. With `--models N` a case is evaluated for N models at once, N copies of
the clip that differ in their last bytes only, so that what is made once per reference counts once.

    python benchmarks/lite_speed.py --command DATA --before OLD/src [--rounds 3]

The whole command, `revisit eval` with its report, in both versions in turn: seconds of the processor of all processes
on six real clips with reference and target, then the share of each part on eight clips. Both run from byte code, as
installed packages do. DATA has `memobench/videos` and `memobench_more`. benchmarks/lite_speed.json has the outcome,
from which docs/make_speed.py writes docs/speed.md.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import processor_time

THIS = Path(__file__).resolve().parents[1] / "src"
HERE, THERE = "this version", "before"
FILE = Path(__file__).with_suffix(".json")
SIX = {"Real_007": ("lingbot", "svc"), "Real_024": ("lingbot", "svc"), "ZenGarden_001": ("lingbot", "wan")}
EIGHT = {**SIX, "Barnyard_001": ("lingbot", "wan")}
OBSERVING = ("decoding", "observers", "packing evidence")  # parts as shares.py names them; all others are around it
Cost = dict[str, float]  # observer -> seconds of the processor; further rows in round brackets


def evaluate_on_request() -> None:
    """A worker: evaluates the manifests that it is told, and answers what each observer cost."""
    import cv2
    import numpy as np

    import revisit
    from revisit.engine import observe

    spent: Cost = defaultdict(float)
    name = "start_observer" if hasattr(observe, "start_observer") else "watch"  # as older versions call it
    drive = getattr(observe, name)

    class Timed:
        """A watcher whose processor time is counted."""

        def __init__(self, observer: Any, *rest: Any) -> None:
            self.id = observer.id
            self.watcher = self.measured(drive, observer, *rest)

        def measured(self, work: Any, *given: Any) -> Any:
            start = time.process_time()
            try:
                return work(*given)
            finally:
                spent[self.id] += time.process_time() - start

        def see(self, frame: Any, reference: Any) -> None:
            self.measured(self.watcher.see, frame, reference)

        def finish(self) -> Any:
            return self.measured(self.watcher.finish)

    setattr(observe, name, Timed)
    weights = Path(os.environ.get("REVISIT_CACHE") or "~/.cache/revisit").expanduser() / "weights"
    for depth in ("uint8", "float32"):  # tables that OpenCV makes once per process, in a third of a second
        cv2.cvtColor(np.zeros((1, 1, 3), depth), cv2.COLOR_RGB2LAB)
    for line in sys.stdin:
        asked = json.loads(line)
        spent.clear()
        os.environ["REVISIT_CACHE"] = asked["cache"]
        Path(asked["cache"]).mkdir(parents=True)
        (Path(asked["cache"]) / "weights").symlink_to(weights)
        start = time.process_time()
        revisit.evaluate(
            asked["manifest"], set=asked["set"], out=asked["out"], roots=["/"], workers=0, fresh=True, truth=False
        )
        total = time.process_time() - start
        sizes: dict[str, int] = defaultdict(int)
        for file in Path(asked["cache"]).glob("evidence/*/*.npz"):
            sizes["all"] += file.stat().st_size
        print(
            json.dumps({"spent": {**spent, "(engine and metrics)": total - sum(spent.values())}, "bytes": sizes["all"]})
        )
        sys.stdout.flush()


class Worker:
    """One version in a process of its own."""

    def __init__(self, source: Path) -> None:
        env = {**os.environ, "PYTHONPATH": str(source), "REVISIT_DEVICE": "cpu"}
        command = [sys.executable, __file__, "--worker"]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def evaluate(self, **asked: str) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("a version failed; its message is above")
        told: dict[str, Any] = json.loads(answer)
        return told


def cases_of(manifests: list[Path], models: int, root: Path) -> list[Path]:
    """A manifest of its own for each case, with absolute paths."""
    made: list[Path] = []
    for manifest in manifests:
        for line in manifest.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            for name in ("video", "reference"):
                if name in case:
                    case[name] = str((manifest.parent / case[name]).resolve())
            lines = [case]
            if models > 1:
                lines = []
                for k in range(models):
                    copy = root / f"{len(made)}-{k}{Path(case['video']).suffix}"
                    # A free box at the end of an mp4 changes the digest of the file and none of its frames.
                    copy.write_bytes(Path(case["video"]).read_bytes() + b"\x00\x00\x00\x0cfree%4d" % k)
                    lines.append({**case, "video": str(copy), "model": f"model{k}", "id": case.get("id", "clip")})
            path = root / f"{len(made)}.jsonl"
            path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
            made.append(path)
    return made


def rendered(root: Path) -> Path:
    """A manifest with one clip of 480p that goes away from a target and returns, and its reference."""
    command = [sys.executable, "-m", "revisit", "world", "render", "--suite", "folder", "--out", str(root)]
    options = ["--size", "480x832", "--seeds", "1", "--failures", "state_reset"]
    env = {**os.environ, "PYTHONPATH": str(THIS)}
    subprocess.run([*command, *options], env=env, check=True, capture_output=True)
    lines = [line for line in (root / "folder/manifest.jsonl").read_text().splitlines() if '"reference"' in line]
    one = root / "folder/one.jsonl"
    one.write_text(lines[0] + "\n", encoding="utf-8")
    return one


def answers(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest line of each question."""
    lines = (json.loads(line) for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines())
    return {(line["case"], line.get("metric") or line["gate"]): line for line in lines}


def moved(runs: list[tuple[Path, Path]]) -> None:
    """Print the largest movement of every score, and what else changed."""
    largest: dict[str, tuple[float, float]] = {}
    others: list[str] = []
    count = 0
    for before, after in runs:
        old, new = answers(before), answers(after)
        others += [f"{key}: only in one of them" for key in sorted(old.keys() ^ new.keys())]
        for key in sorted(old.keys() & new.keys()):
            a, b = old[key], new[key]
            count += 1
            told = [(one.get("status"), one.get("label"), (one.get("reason") or {}).get("kind")) for one in (a, b)]
            if told[0] != told[1]:
                others.append(f"{key[0]}, {key[1]}: {told[0]} became {told[1]}")
            elif a.get("score") is not None:
                way = abs(float(b["score"]) - float(a["score"]))
                seen = largest.get(key[1], (0.0, 0.0))
                largest[key[1]] = max(seen[0], way), max(seen[1], abs(float(a["score"])))
    changed = {name: pair for name, pair in largest.items() if pair[0] > 0}
    print(
        f"\n{count} answers; {len(largest)} metrics scored, {len(changed)} moved; {len(others)} answers changed in kind"
    )
    for name, (way, size) in sorted(changed.items(), key=lambda item: -item[1][0]):
        print(f"  {name:40} {way:10.3g}   (values up to {size:.4g})")
    for line in others:
        print(f"  {line}")


def real_manifest(data: Path, clips: Mapping[str, tuple[str, ...]], path: Path) -> Path:
    """A manifest of real clips with their references and targets."""
    boxes = json.loads((data / "memobench_more/eye.json").read_text(encoding="utf-8"))
    lines = []
    for scene, models in clips.items():
        folder = next(
            f for f in (data / "memobench/videos", data / "memobench_more") if (f / f"{scene}_gt.mp4").is_file()
        )
        for model in models:
            label = boxes[f"{scene}/{model}"]
            lines.append({
                "id": scene, "model": model, "video": str(folder / f"{scene}_{model}.mp4"),
                "reference": str(folder / f"{scene}_gt.mp4"), "target": {"name": label["name"], "box": label["box"]},
            })  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def installed(source: Path, folder: Path) -> dict[str, str]:
    """The environment of a version that runs as if it were installed: from byte code, and with an empty cache."""
    copy = folder.parent / f"installed{str(source).replace(os.sep, '-')}"
    if not copy.exists():
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(copy, quiet=1)
    return {**os.environ, "PYTHONPATH": str(copy), "REVISIT_CACHE": str(folder / "cache"), "REVISIT_DEVICE": "cpu"}


def command_seconds(source: Path, manifest: Path, folder: Path, *flags: str) -> float:
    """Seconds of the processor of `revisit eval` with an empty cache, all processes together."""
    command = [sys.executable, "-m", "revisit", "eval", str(manifest), "--set", "lite", "--root", "/", "--quiet"]
    env = installed(source, folder)
    spent, done = processor_time.of_command([*command, "--out", str(folder / "run"), "--workers", "2", *flags], env)
    if not (folder / "run/summary.json").is_file():
        raise SystemExit(done.stderr.decode()[-2000:])
    return spent


def command_shares(manifest: Path, folder: Path) -> Cost:
    """Seconds of each part of a run of this version, two workers; `rest` is what no part was charged with."""
    command = [sys.executable, __file__, "--apart", str(folder / "run"), str(manifest)]
    done = subprocess.run(command, env=installed(THIS, folder), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    spent: Cost = json.loads(done.stdout.splitlines()[-1])
    parts = {name: seconds for name, seconds in spent.items() if name != "all"}
    return {**parts, "rest": spent["all"] - sum(parts.values()), "all": spent["all"]}


def compare_commands(data: Path, before: Path, rounds: int, out: Path) -> None:
    """Measure the parts of this version, and both versions in turn; what is measured is stored after each round."""
    from revisit.core import OBSERVERS, import_registering_modules

    import_registering_modules()
    outcome: dict[str, Any] = {
        "machine": platform.machine(),
        "six": {scene: list(models) for scene, models in SIX.items()},
        "eight": {scene: list(models) for scene, models in EIGHT.items()},
        "observers": {id: OBSERVERS[id].version for id in sorted(OBSERVERS) if id.startswith("lite.")},
        "seconds": {THERE: [], HERE: []},
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shares = command_shares(real_manifest(data, EIGHT, root / "eight.jsonl"), root / "shares")
        outcome["shares"] = {name: round(value, 3) for name, value in sorted(shares.items(), key=lambda item: -item[1])}
        around = 1 - sum(shares[name] for name in OBSERVING) / shares["all"]
        print(f"around the observers {100 * around:.1f} %", flush=True)
        six = real_manifest(data, SIX, root / "six.jsonl")
        for turn in range(rounds):
            versions = [(THERE, before, ()), (HERE, THIS, ("--no-truth",))]
            for name, source, flags in versions if turn % 2 == 0 else versions[::-1]:
                spent = command_seconds(source, six, root / f"{name}-{turn}", *flags)
                outcome["seconds"][name].append(round(spent, 2))
            ratio = outcome["seconds"][THERE][-1] / outcome["seconds"][HERE][-1]
            print(f"round {turn + 1}: {outcome['seconds']}, ratio {ratio:.2f}", flush=True)
            out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--before", type=Path)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--set", default="lite")
    options.add_argument("--models", type=int, default=1)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--command", type=Path, metavar="DATA", help="measure the whole command on real clips")
    options.add_argument("--out", type=Path, default=FILE, help="file that --command writes")
    options.add_argument("--apart", type=Path, help=argparse.SUPPRESS)
    options.add_argument("manifests", nargs="*", type=Path)
    given = options.parse_args()
    if given.worker:
        evaluate_on_request()
        return
    if given.apart:
        from shares import run_apart

        given.apart.parent.mkdir(parents=True)
        run_apart(given.manifests[0], given.apart, workers=2, roots=[Path("/")])
        return
    if given.command:
        if given.before is None:
            options.error("--command needs --before OLD/src")
        compare_commands(given.command.resolve(), given.before.resolve(), given.rounds, given.out)
        return
    sources = {THERE: given.before.resolve()} if given.before else {}
    sources[HERE] = THIS
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        cases = cases_of(given.manifests or [rendered(root / "worlds")], given.models, root)
        workers = {name: Worker(source) for name, source in sources.items()}
        spent: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in sources}
        sizes: dict[str, list[int]] = {name: [] for name in sources}
        runs = []
        for number, manifest in enumerate(cases):
            frames = clip_frames(manifest)
            for turn in range(given.rounds):
                order = list(workers) if turn % 2 == 0 else list(workers)[::-1]
                for name in order:
                    out = root / f"{name}-{number}-{turn}"
                    told = workers[name].evaluate(
                        manifest=str(manifest), set=given.set, out=str(out), cache=str(out / "cache")
                    )
                    for observer, seconds in told["spent"].items():
                        spent[name][observer].append(1000 * seconds / frames)
                    sizes[name].append(told["bytes"] // len(manifest.read_text().splitlines()))
            if given.before:
                runs.append((root / f"{THERE}-{number}-0", root / f"{HERE}-{number}-0"))
        for worker in workers.values():
            worker.process.communicate()
        table(spent, sizes, len(cases))
        if given.before:
            moved(runs)


def clip_frames(manifest: Path) -> int:
    """Frames of all clips of a manifest."""
    import numpy as np

    from revisit.core import Clip
    from revisit.media import Limits, open_clip

    count = 0
    for line in manifest.read_text(encoding="utf-8").splitlines():
        with open_clip(Clip(Path(json.loads(line)["video"])), Limits(), wanted=np.arange(0)) as stream:
            count += stream.info.count
    return count


def table(spent: dict[str, dict[str, list[float]]], sizes: dict[str, list[int]], cases: int) -> None:
    names = list(spent)
    rows = {name: {o: statistics.mean(values) for o, values in some.items()} for name, some in spent.items()}
    print(f"{'ms per frame':26}" + "".join(f"{name:>14}" for name in names) + ("     ratio" if len(names) > 1 else ""))

    def line(title: str, values: list[float], digits: int = 2) -> None:
        ratio = f"{values[0] / values[1]:10.2f}" if len(values) > 1 and values[1] else ""
        print(f"{title:26}" + "".join(f"{value:14.{digits}f}" for value in values) + ratio)

    everybody = sorted(
        {o for some in rows.values() for o in some}, key=lambda o: -max(some.get(o, 0) for some in rows.values())
    )
    observers = [o for o in everybody if not o.startswith("(")]
    for observer in observers:
        line(observer, [rows[name].get(observer, 0.0) for name in names])
    line("all observers", [sum(rows[name].get(o, 0.0) for o in observers) for name in names])
    for other in (o for o in everybody if o.startswith("(")):
        line(other, [rows[name].get(other, 0.0) for name in names])
    line("evidence, MB per clip", [statistics.mean(sizes[name]) / 1e6 for name in names])
    print(f"{cases} cases")


if __name__ == "__main__":
    main()
