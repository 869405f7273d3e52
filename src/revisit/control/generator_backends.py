"""Generator backends: a command for every job, one process kept alive for many jobs, or a function.

All of them get the job as JSON (`Job.as_json`) and write a clip to its `out`; docs/generate.md has what a process that
is kept alive (`ProcessBackend`) reads and answers. Command lines are split into arguments before they are filled in, so
that no prompt can become a command.

Baseline generators, without a network: every suite runs end to end with them, and every table has its floors.

- `hold`: the first frame, held;
- `pan`: the first frame, turned as the camera is asked to turn; what is beyond its edges is its mirror image;
- `repeat`: the end of the context clip, or of the source video, once more.

Their rows are floors: a model that remembers anything does better. `worlds.on_demand` has one that renders.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import string
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revisit.control.jobs import JobRequest
from revisit.control.metering import Cost, Meter
from revisit.control.requested_path import intrinsics
from revisit.core import Clip, RevisitError, UsageError
from revisit.core.concurrency import kill_process_group, put_lines_in_queue, start_thread
from revisit.core.text import parse_json_or_none
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.media import encode_mp4, open_clip

PLACEHOLDERS = (
    "prompt", "image", "source_video", "context", "context_frames", "camera", "line", "token_degrees", "path", "seed",
    "frames", "fps", "width", "height", "id", "sample", "job", "out",
)  # fmt: skip
TAIL = 400  # characters of last words that are kept
LOOK = 0.05  # seconds between two looks at a process that works
LOADING = 3600.0  # seconds that a process may take to load its weights
GeneratorFunction = Callable[[JobRequest], Any]  # returns frames, or has written the clip itself
SWEEP = 30.0  # degrees out and back, where no path is requested


class Ended(NamedTuple):
    """What became of a clip."""

    status: str  # "" if all is well
    reason: str  # or last words
    cost: Cost | None = None  # of a clip that was made


class CommandBackend:
    """A command for every job."""

    def __init__(self, command: str, env: Mapping[str, str]) -> None:
        command_arguments(command, dict.fromkeys(PLACEHOLDERS, ""))
        self.command, self.env = command, env
        self.running: subprocess.Popen[bytes] | None = None

    def make(self, request: JobRequest, file: Path, timeout: float) -> Ended:
        """Run the command."""
        words = command_arguments(self.command, placeholder_values(request, file))
        meter, started = Meter(self.env), time.monotonic()
        with tempfile.TemporaryFile() as output:
            try:
                self.running = process = _start_process(words, self.env, subprocess.DEVNULL, output, subprocess.STDOUT)
            except OSError as error:
                return Ended("crashed", f"the command cannot be started: {error}")
            meter.session = process.pid
            try:
                code = _wait_and_meter(process, timeout, meter)
                if code is None:
                    return Ended("hung", f"the command was stopped after {timeout:g} seconds")
            finally:
                kill_process_group(process)
            tail = _output_tail(output)
        if code:
            return Ended("crashed", _exit_sentence(code, tail))
        cost = meter.clip_cost(time.monotonic() - started, loading_seconds=None)
        return Ended("", f"its last output: {tail}" if tail else "it printed nothing", cost)

    def close(self) -> None:
        """End a command that is still running."""
        if self.running is not None:
            kill_process_group(self.running)


class ProcessBackend:
    """One process for many jobs; where it dies or hangs, the next job starts another."""

    def __init__(self, command: str, env: Mapping[str, str], loading: float = LOADING) -> None:
        self.words = shlex.split(command)
        if not self.words:
            raise UsageError("--serve needs a command, such as 'python serve.py'")
        self.env, self.loading = env, loading
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False

    def make(self, request: JobRequest, file: Path, timeout: float) -> Ended:
        """Hand the job over and wait for the answer."""
        started, new, loading = time.monotonic(), self.process is None, 0.0
        if self.process is None:
            try:
                self._start_process_and_reader()
            except OSError as error:
                return Ended("crashed", f"the process cannot be started: {error}")
        process = self.process
        assert process is not None and process.stdin is not None
        deadline = time.monotonic() + timeout + (0 if self.ready else self.loading)
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return self._end_crashed_process()
        while True:
            try:
                line = self._next_line(deadline)
            except queue.Empty:
                self._stop_if_running()
                return Ended("hung", f"no answer after {timeout:g} seconds; the process was stopped")
            if line is None:
                return self._end_crashed_process()
            content = parse_json_or_none(line)
            answer = content if isinstance(content, dict) else {}
            if answer.get("ready") and not self.ready:
                now = time.monotonic()
                self.ready, deadline, loading, started = True, now + timeout, now - started, now
            elif answer.get("id") == request["id"]:
                # A process that does not say when it is ready loads within its first clip.
                inside = new and not self.ready
                self.ready = True
                if answer.get("error") or answer.get("status") not in (None, "done"):
                    return Ended("failed", str(answer.get("error") or answer.get("status")))
                self.meter.measure(last=True)
                cost = self.meter.clip_cost(time.monotonic() - started, None if inside else loading)
                return Ended("", " ".join(self.chatter)[-TAIL:] or "it printed nothing", cost)
            else:
                self.chatter.append(line.decode(errors="replace").strip())

    def _next_line(self, deadline: float) -> bytes | None:
        """The next line that the process prints, None where it has ended; queue.Empty behind the deadline."""
        while True:
            remaining = deadline - time.monotonic()
            try:
                return self.lines.get(timeout=max(0.0, min(remaining, LOOK)))
            except queue.Empty:
                if remaining <= LOOK:
                    raise
                self.meter.measure()

    def close(self) -> None:
        """Let the process end by itself: its stdin is closed. Who does not end is stopped."""
        if self.process is not None:
            with contextlib.suppress(OSError):
                assert self.process.stdin is not None
                self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self._stop_if_running()

    def _start_process_and_reader(self) -> None:
        self.meter = Meter(self.env)
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the process
        self.process = _start_process(self.words, self.env, subprocess.PIPE, subprocess.PIPE, self.stderr)
        self.ready = False
        self.meter.session = self.process.pid
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.chatter: deque[str] = deque(maxlen=20)
        start_thread(put_lines_in_queue, self.process.stdout, self.lines)

    def _end_crashed_process(self) -> Ended:
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        code = self.process.poll()
        tail = _output_tail(self.stderr) or " ".join(self.chatter)[-TAIL:]
        self._stop_if_running()
        return Ended("crashed", _exit_sentence(code or 0, tail))

    def _stop_if_running(self) -> None:
        if self.process is not None:
            kill_process_group(self.process)
            self.stderr.close()
        self.process = None


class FunctionBackend:
    """A function in this process. It cannot be stopped: a time-out does not reach it."""

    def __init__(self, function: GeneratorFunction) -> None:
        self.function = function

    def make(self, request: JobRequest, file: Path, timeout: float) -> Ended:
        """Call the function; frames that it returns are encoded."""
        started = time.monotonic()
        try:
            result = self.function(request)
            if hasattr(result, "detach"):
                result = result.detach().cpu().numpy()
            if result is not None and not isinstance(result, str | Path):
                encode_mp4(Path(request["out"]), map(np.asarray, result), request["fps"])
        except RevisitError as error:  # a second try would be refused, too
            return Ended("refused", str(error))
        except Exception as error:  # whatever the user's function does, the other jobs go on
            return Ended("crashed", f"{type(error).__name__}: {error}")
        # Its memory is that of this process, whatever else it holds.
        return Ended("", "the function returned", Cost(time.monotonic() - started))

    def close(self) -> None:
        """Nothing is left running."""


GeneratorBackend = CommandBackend | ProcessBackend | FunctionBackend  # makes clips, one after the other


def command_arguments(command: str, values: Mapping[str, str]) -> list[str]:
    """The command's arguments with its placeholders filled in."""
    words = shlex.split(command)
    placeholders = {name for word in words for _, name, _, _ in string.Formatter().parse(word) if name is not None}
    unknown = sorted(placeholders - set(PLACEHOLDERS))
    if unknown:
        raise UsageError(f"the command has a placeholder {{{unknown[0]}}}; known are {', '.join(PLACEHOLDERS)}")
    if not words or not placeholders & {"out", "job"}:
        raise UsageError("the command needs {out}, the file to write the clip to, or {job}, a file that says so")
    return [word.format_map(values) for word in words]


def placeholder_values(request: JobRequest, job_file: Path) -> dict[str, str]:
    """Placeholder -> its value."""
    inputs, control = request["inputs"], request["control"]
    context = inputs["context"]
    width, height = request["size"]
    return {
        "prompt": inputs["prompt"], "image": inputs["image"] or "", "source_video": inputs["source_video"] or "",
        "context": context["video"] if context else "",
        "context_frames": str(context["frames"] or "") if context else "",
        "camera": control.get("payload") or "", "line": control.get("line") or "", "path": control.get("path") or "",
        "token_degrees": "" if control.get("token_degrees") is None else f"{control['token_degrees']:g}",
        "seed": str(request["seed"]), "frames": str(request["frames"]), "fps": f"{request['fps']:g}",
        "width": str(width), "height": str(height), "id": request["id"], "sample": request["sample"],
        "job": str(job_file), "out": request["out"],
    }  # fmt: skip


def worker_environment(worker_number: int, gpus: Sequence[str]) -> dict[str, str]:
    """What tells a worker's processes which worker they are, and which GPU is theirs."""
    gpu = {"CUDA_VISIBLE_DEVICES": gpus[worker_number % len(gpus)]} if gpus else {}
    return {"REVISIT_WORKER": str(worker_number), **gpu}


def _start_process(
    words: Sequence[str], env: Mapping[str, str], stdin: int, stdout: Any, stderr: Any
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **env}
    return subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, env=environment)


def _output_tail(output: Any) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - 4 * TAIL))
    return " ".join(output.read().decode(errors="replace").split())[-TAIL:]


def _exit_sentence(code: int, tail: str) -> str:
    if code < 0:
        return f"it was killed by signal {-code}"
    return f"the command failed with exit code {code}{f': {tail}' if tail else ', and printed nothing'}"


def _wait_and_meter(process: subprocess.Popen[bytes], timeout: float, meter: Meter) -> int | None:
    """The exit code of a command, which is looked at meanwhile; None where it takes longer."""
    deadline, pause = time.monotonic() + timeout, 0.005
    while True:
        meter.measure()
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return process.poll()
        try:
            return process.wait(min(pause, remaining))
        except subprocess.TimeoutExpired:
            pause = min(1.5 * pause, LOOK)


def repeat_first_frame(job: JobRequest) -> Iterator[np.ndarray]:
    """The first frame, in every frame."""
    first = _first_frame_or_grey(job)
    yield from (first for _ in range(job["frames"]))


def turn_first_frame(job: JobRequest) -> Iterator[np.ndarray]:
    """The first frame as a wall around the camera, mirrored beyond its left and right edge, under the asked turns."""
    import cv2

    first = _first_frame_or_grey(job)
    width, height = job["size"]
    K = intrinsics((width, height))
    edge = np.arctan(width / 2 / K[0, 0])
    x, y = np.meshgrid((np.arange(width) + 0.5 - K[0, 2]) / K[0, 0], (np.arange(height) + 0.5 - K[1, 2]) / K[1, 1])
    rays = np.stack([x, y, np.ones_like(x)], axis=-1)
    for turn in _requested_rotations(job):
        if np.abs(turn - np.eye(3)).max() < 1e-9:
            yield first
            continue
        X, Y, Z = np.moveaxis(rays @ turn.T, -1, 0)
        around = np.arctan2(X, Z)
        horizontal = np.tan(edge - np.abs((around + edge) % (4 * edge) - 2 * edge))  # back and forth between the edges
        up = Y / np.hypot(X, Z) * np.hypot(horizontal, 1)
        map_x, map_y = K[0, 0] * horizontal + K[0, 2] - 0.5, K[1, 1] * up + K[1, 2] - 0.5
        yield cv2.remap(
            first, map_x.astype(np.float32), map_y.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
        )


def repeat_last_seen_frames(job: JobRequest) -> Iterator[np.ndarray]:
    """The last frames of what was seen before, played once more; from the start again where they are too few."""
    import cv2

    context, source = job["inputs"]["context"], job["inputs"]["source_video"]
    if context:
        clip = Clip(Path(context["video"]), start=context["start"], count=context["frames"])
    elif source:
        clip = Clip(Path(source))
    else:
        raise UsageError("this job has neither a context clip nor a source video, so there is nothing to repeat")
    frame_count = int(job["frames"])
    with open_clip(clip, wanted=lambda count, _: np.arange(max(0, count - frame_count), count)) as stream:
        frames = [cv2.resize(frame.rgb, tuple(job["size"]), interpolation=cv2.INTER_AREA) for frame in stream]
    yield from islice((frame for _ in range(frame_count) for frame in frames), frame_count)


BASELINE_GENERATORS: dict[str, GeneratorFunction] = {
    "hold": repeat_first_frame,
    "pan": turn_first_frame,
    "repeat": repeat_last_seen_frames,
}


def _first_frame_or_grey(job: JobRequest) -> np.ndarray:
    """The first frame at the asked size; grey where the job has none, as a model without it knows nothing."""
    import cv2

    width, height = job["size"]
    if not job["inputs"]["image"]:
        return np.full((height, width, 3), 127, np.uint8)
    picture = cv2.imdecode(np.fromfile(job["inputs"]["image"], np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise UsageError(f"{job['inputs']['image']}: no picture that can be read")
    return np.ascontiguousarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)[..., ::-1])


def _requested_rotations(job: JobRequest) -> np.ndarray:
    """Rotations (frames, 3, 3) from the first view, as asked; out and back by a sweep where nothing was asked."""
    frames = int(job["frames"])
    path = job["control"].get("path")
    if not path:
        there = np.linspace(0, 2, frames)
        return np.stack([rotation_from_axis_angle((0, 1, 0), SWEEP * min(share, 2 - share)) for share in there])
    c2w = np.load(path, allow_pickle=False)
    return np.asarray(c2w[0, :3, :3].T @ c2w[:, :3, :3])
