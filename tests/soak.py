"""A long run through every fault: `make soak`.

    python -m tests.soak --clips 2000

Small clips are drawn and evaluated by the real command, with a judge behind HTTP and a network in a process of its own:
once undisturbed, and once with a fault at every boundary. The faults are real. Processes are killed (as the system does
when memory runs out) and stopped, the judge hangs up, and disk and shared memory are file systems of a few megabytes
that are filled: the script runs in a mount namespace of its own for that (`unshare`), or leaves those two out and says
so.

At the end every case must be scored or have a reason, with the scores of the undisturbed run; when the faults are over
the same command must lead to the same summary, to the byte. Memory and open files must not grow, and nothing may stay
in the temporary folder, in shared memory or among the processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.media import encode_mp4
from revisit.results.run import Run
from tests.conftest import PROJECT, moving_frames
from tests.judging import MODEL, serving

METRICS = ("flicker", "psnr", "judged_progress", "soak_level")
TOGETHER = 10  # of so many clips the first is the reference of the second
SHARED = "64m"  # of the file systems that are filled, as in a container
GROWTH = 0.05  # of memory over the second half of a run
LOCK = """
weights:
  soak: {title: Three numbers, licence: none, needs: [torch], files: [{name: model.safetensors}], sources: []}
"""
POINTS = "[revisit.plugins]\nsoak = tests.soak_parts\n"


# What is evaluated


def draw(folder: Path, count: int) -> Path:
    """Small clips, of which every tenth is compared with its neighbour; the manifest."""
    (folder / "clips").mkdir(parents=True)
    lines = []
    for number in range(count):
        encode_mp4(folder / f"clips/{number}.mp4", moving_frames(5, (32, 48), seed=number), fps=8)
        line = {"id": f"c{number}", "model": "abc"[number % 3], "video": f"clips/{number}.mp4", "prompt": "a cup falls"}
        if number % TOGETHER == 1:
            line["reference"] = f"clips/{number - 1}.mp4"
        lines.append(json.dumps(line))
    (folder / "manifest.jsonl").write_text("\n".join(lines))
    return folder / "manifest.jsonl"


@dataclass
class Stage:
    """Where the soak happens, and what the command is told."""

    folder: Path
    manifest: Path
    judge: Any  # the server
    own_disks: bool
    workers: int
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def disk(self) -> Path:
        """Holds runs and evidence, and may be filled."""
        return self.folder / "disk"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def out(self, run: str) -> Path:
        return self.disk / run


@contextmanager
def stage(count: int, own_disks: bool, workers: int) -> Iterator[Stage]:
    """A folder with all that is needed, gone at the end."""
    import torch
    from safetensors.torch import save_file

    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        for name in ("disk", "tmp", "weights/soak", "plugin/soak-0.1.dist-info"):
            (folder / name).mkdir(parents=True)
        if own_disks:
            mount(folder / "disk", f"{64 + count // 4}m")
            mount(Path("/dev/shm"), SHARED)
        save_file({"colours": torch.tensor([0.3, 0.5, 0.2])}, str(folder / "weights/soak/model.safetensors"))
        (folder / "lock.yaml").write_text(LOCK)
        info = folder / "plugin/soak-0.1.dist-info"
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: soak\nVersion: 0.1\n")
        (info / "entry_points.txt").write_text(POINTS)
        with serving(lambda body: answer(body, made)) as judge:
            settings = {
                "url": judge.url,
                "model": MODEL,
                "server": "soak",
                "pause": 0.05,
                "tries": 3,
                "canaries": False,
            }
            (folder / "judge.yaml").write_text(json.dumps(settings))
            made = Stage(folder, draw(folder, count), judge, own_disks, workers)
            made.environment = {
                "PYTHONPATH": os.pathsep.join(
                    [str(folder / "plugin"), str(PROJECT / "src"), str(PROJECT), os.environ.get("PYTHONPATH", "")]
                ),
                "TMPDIR": str(made.temporary),
                "REVISIT_WEIGHTS": str(folder / "weights"),
                "REVISIT_WEIGHTS_LOCK": str(folder / "lock.yaml"),
                "REVISIT_NETWORKS": "host",
                "REVISIT_DEVICE": "cpu",
            }
            yield made
    finally:
        if own_disks:
            subprocess.run(["umount", folder / "disk", "/dev/shm"], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def answer(body: dict[str, Any], made: Stage) -> str:
    """What the judge says; while it is down it hangs up."""
    if made.judge.down:
        raise ConnectionError
    return '{"progress": 4, "correctness": 5}'


def mount(place: Path, size: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", place], check=True)


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """A file system without any room."""
    filler = place / ".filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 24, 1 << 16, 1):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
    try:
        yield
    finally:
        filler.unlink()


# The command under way


@dataclass(frozen=True)
class Sample:
    """A look at a process."""

    done: float  # share of the cases that had answers
    memory: int  # bytes
    files: int


@dataclass
class Going:
    """The command while it runs, in a process group of its own."""

    process: subprocess.Popen[str]
    records: Path
    count: int
    samples: dict[int, list[Sample]] = field(default_factory=dict)  # by process; the command itself under 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def pid(self) -> int:
        return self.process.pid

    def done(self) -> float:
        """Share of the cases that are scored."""
        with suppress(OSError):
            lines = self.records.read_bytes().split(b"\n")
            return sum(b'"metric": "flicker"' in line and b'"scored"' in line for line in lines) / self.count
        return 0.0

    def until(self, share: float, seconds: float = 900) -> None:
        """Wait until so many cases have answers."""
        end = time.monotonic() + seconds
        while self.done() < share:
            if self.process.poll() is not None:
                raise SystemExit(f"the command ended at {self.done():.0%} with {self.process.returncode}")
            if time.monotonic() > end:
                raise SystemExit(f"the command stands still at {self.done():.0%}")
            time.sleep(0.1)

    def watch(self) -> None:
        while not self.over.wait(1):
            done = self.done()
            for name, pid in [(0, self.pid), *((pid, pid) for pid in children(self.pid))]:
                with suppress(OSError, IndexError):
                    memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
                    self.samples.setdefault(name, []).append(Sample(done, memory, files))

    def workers(self) -> list[int]:
        return [pid for pid in children(self.pid) if spawned(pid) and not has_torch(pid)]

    def host(self) -> int | None:
        """The process that runs the networks, waited for, because it may be on its way; None once the command ended."""
        for _ in range(600):
            for pid in children(self.pid):
                if spawned(pid) and has_torch(pid):
                    return pid
            if self.process.poll() is not None:
                return None
            time.sleep(0.1)
        raise SystemExit("no process runs the networks")

    def decoder(self) -> int:
        """A process that decodes a clip."""
        for _ in range(6000):
            for worker in self.workers():
                for pid in children(worker):
                    return pid
            time.sleep(0.002)
        raise SystemExit("no process decodes")


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    with suppress(OSError):
        return [int(child) for child in listed.read_text().split()]
    return [] if Path("/proc/self/task").joinpath(str(os.getpid()), "children").exists() else _by_parent(pid)


def _by_parent(pid: int) -> list[int]:
    """The same where the kernel keeps no lists of children."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((place / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(place.name))
    return found


def spawned(pid: int) -> bool:
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def has_torch(pid: int) -> bool:
    with suppress(OSError):
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    return False


@contextmanager
def started(made: Stage, run: str, count: int, cache: str = "") -> Iterator[Going]:
    """The real command."""
    command = [sys.executable, "-m", "revisit", "eval", made.manifest, "--out", made.out(run)]
    command += ["--workers", made.workers, "--no-report", "--quiet", "--judge", made.folder / "judge.yaml"]
    command += [word for id in METRICS for word in ("-m", id)]
    env = {**os.environ, **made.environment, "REVISIT_CACHE": str(made.disk / (cache or f"cache-{run}"))}
    said = made.folder / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command], env=env, text=True, start_new_session=True, stdout=file, stderr=file
        )
    going = Going(process, made.out(run) / "records.jsonl", count)
    watching = threading.Thread(target=going.watch, daemon=True)
    watching.start()
    try:
        yield going
    finally:
        going.over.set()
        watching.join()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# Faults


def kill_worker(made: Stage, going: Going) -> None:
    os.kill(going.workers()[0], signal.SIGKILL)


def stop_worker(made: Stage, going: Going) -> None:
    os.kill(going.workers()[-1], signal.SIGSTOP)


def kill_decoder(made: Stage, going: Going) -> None:
    os.kill(going.decoder(), signal.SIGKILL)


def kill_host(made: Stage, going: Going) -> None:
    if (pid := going.host()) is not None:
        os.kill(pid, signal.SIGKILL)


def stop_host(made: Stage, going: Going) -> None:
    if (pid := going.host()) is not None:
        os.kill(pid, signal.SIGSTOP)


def judge_down(made: Stage, going: Going) -> None:
    made.judge.down = True
    share = going.done()
    with suppress(SystemExit):
        going.until(min(share + 0.03, 0.99), 30)
    made.judge.down = False


UNDER_WAY: Sequence[Callable[[Stage, Going], None]] = (
    kill_worker,
    stop_worker,
    stop_host,
    judge_down,
    kill_decoder,
    kill_host,
)


def disturbed(made: Stage, count: int, say: Callable[[str], None]) -> Going:
    """The run with faults, until it comes to its own end; that last call."""

    def told(fault: str, going: Going) -> None:
        say(f"  {going.done():4.0%}  {fault}")

    with started(made, "disturbed", count) as going:
        going.until(going.done() + 0.04)
        told("SIGTERM", going)
        going.process.send_signal(signal.SIGTERM)
        say(f"        it ended with {going.process.wait(60)}")
    with started(made, "disturbed", count) as going:
        going.until(going.done() + 0.04)
        told("SIGKILL to the group", going)
        os.killpg(going.pid, signal.SIGKILL)
        going.process.wait(60)
    if made.own_disks:
        with filled(Path("/dev/shm")), started(made, "disturbed", count) as going:
            told("no shared memory left", going)
            going.until(going.done() + 0.04)
            with filled(made.disk):
                told("disk full", going)
                code = going.process.wait(300)
            said = (made.folder / "said").read_text()
            say(f"        it ended with {code}: {said.strip().splitlines()[-1] if said.strip() else 'no word'}")
            if code != 1 or "Traceback" in said:
                raise SystemExit(f"a full disk is not told in a sentence:\n{said}")
    else:
        say("        disk full, no shared memory left: left out, because nothing can be mounted here")
    with started(made, "disturbed", count) as going:
        begun = going.done()
        shares = np.linspace(begun, 0.8, 2 * len(UNDER_WAY) + 1)[1:]
        for share, fault in zip(shares.tolist(), (*UNDER_WAY, *UNDER_WAY), strict=True):
            going.until(share)
            told(fault.__name__.replace("_", " "), going)
            fault(made, going)
        say(f"        it ended with {going.process.wait(600)}")
        said = (made.folder / "said").read_text()
        if "Traceback" in said:  # of a worker that could not even start for want of memory; anything else is a fault
            say(f"        it printed {said.count('Traceback')} tracebacks:\n{said[said.index('Traceback') :][:3000]}")
    return going


# What must hold


def steady(going: Going, say: Callable[[str], None], *, all: bool) -> list[str]:
    """What grew over the second half of a run; `all` processes of it, or the command alone where faults end others."""
    grown = []
    for name, samples in going.samples.items():
        late = [sample for sample in samples if sample.done >= 0.5]
        if len(late) < 10 or (name and not all):
            continue
        half = len(late) // 5  # the first and the last fifth of it
        memory = [statistics.median(s.memory for s in part) for part in (late[:half], late[-half:])]
        files = [max(s.files for s in part) for part in (late[:half], late[-half:])]
        who = "the command" if name == 0 else f"process {name}"
        say(
            f"  {who}: {memory[0] / 2**20:.1f} to {memory[1] / 2**20:.1f} MiB "
            f"({memory[1] / memory[0] - 1:+.1%}), {files[0]} to {files[1]} open files"
        )
        if memory[1] > memory[0] * (1 + GROWTH):
            grown.append(f"{who} grew from {memory[0]:.0f} to {memory[1]:.0f} bytes")
        if files[1] > files[0] + 8:
            grown.append(f"{who} has {files[1]} open files, and had {files[0]}")
    return grown


def left_behind(made: Stage) -> list[str]:
    """Files in the temporary folder and in shared memory, and processes that still use the folder of the soak."""
    found = [str(path) for path in made.temporary.iterdir()]
    if made.own_disks:
        found += [str(path) for path in Path("/dev/shm").iterdir()]
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(made.folder).encode() in (place / "environ").read_bytes() and int(place.name) != os.getpid():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def compare(whole: Run, other: Run) -> tuple[Counter[str], list[str]]:
    """How often each end was met in the other run, and what is wrong with it."""
    expected = {(r.case.id, r.question): r for r in whole.results.records}
    found = {(r.case.id, r.question): r for r in other.results.records}
    wrong = [f"{about} has no answer" for about in expected.keys() - found.keys()]
    ends: Counter[str] = Counter()
    for about, record in found.items():
        ends[record.status] += 1
        if record.scored and record.value != expected[about].value:
            wrong.append(f"{about} is {record.value}, and undisturbed {expected[about].value}")
        if not record.scored and not record.sentence:
            wrong.append(f"{about} is {record.status} without a reason")
    return ends, wrong


def soak(count: int, own_disks: bool, workers: int, say: Callable[[str], None]) -> list[str]:
    """What went wrong."""
    wrong: list[str] = []
    with stage(count, own_disks, workers) as made:
        made.judge.down = False
        say(f"{count} clips are drawn")
        with started(made, "whole", count) as going:
            code = going.process.wait()
            if code:
                raise SystemExit((made.folder / "said").read_text())
        say("undisturbed:")
        wrong += steady(going, say, all=True)
        whole = Run(made.out("whole"))
        ends, more = compare(whole, whole)
        say(f"  {dict(ends)}")
        wrong += more
        say("disturbed:")
        going = disturbed(made, count, say)
        wrong += steady(going, say, all=False)
        ends, more = compare(whole, Run(made.out("disturbed")))
        reasons = Counter(record.sentence for record in Run(made.out("disturbed")).results.failures)
        say(f"  {dict(ends)}")
        for sentence, often in reasons.most_common(12):
            say(f"    {often} x {sentence[:160]}")
        wrong += more
        with started(made, "disturbed", count) as going:
            going.process.wait(600)
        same = (made.out("disturbed") / "summary.json").read_bytes() == (
            made.out("whole") / "summary.json"
        ).read_bytes()
        verdict = "the same" if same else "not the same"
        say(f"the same command again: it ended with {going.process.returncode}, and the summary is {verdict}")
        if not same or going.process.returncode:
            wrong.append("the summary is not that of the undisturbed run")
        if left := left_behind(made):
            wrong += [f"left behind: {name}" for name in left]
        unfinished = list(made.disk.rglob(".writing-*"))
        say(f"left behind: {len(left)} in temporary places, {len(unfinished)} unfinished files beside evidence")
    return wrong


def can_mount() -> bool:
    """Whether this process may have file systems of its own."""
    tried = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "soak", tempfile.gettempdir()],
        check=False, capture_output=True,
    )  # fmt: skip
    return tried.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate many clips while everything fails.")
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.inside and shutil.which("unshare") and can_mount():
        words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "tests.soak", "--inside"]
        os.execvp(words[0], [*words, *sys.argv[1:]])
    begun = time.monotonic()
    say = lambda text: print(f"{time.monotonic() - begun:5.0f} s  {text}", flush=True)  # noqa: E731, T201
    wrong = soak(asked.clips, asked.inside, asked.workers, say)
    spent = sum(
        resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    say(f"{spent:.0f} s of processor time; {len(wrong)} things are wrong")
    for sentence in wrong[:20]:
        say(f"  {sentence}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
