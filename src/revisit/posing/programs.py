"""Estimators that are other programs: a command of the user's, or our driver in the Python that has a network.

`Command` starts its program anew for each clip. `Driver` loads the estimator once and hands it clip after clip; one
that dies or takes longer than it may is started again for the next clip. Both leave what was printed in the clip's
log, and what they stop ends together with all its children.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from revisit.core import Clip, MediaError, MissingPrerequisite, UsageError, digest
from revisit.core.concurrency import kill_process_group, put_lines_in_queue, start_thread
from revisit.core.text import parse_json_or_none, read_package_yaml
from revisit.geometry.poses import InvalidPoses
from revisit.media import array_shapes_in_npz, encode_mp4, load_npz, open_clip
from revisit.media.error_names import printable_line
from revisit.observers.geometry_file import READ, convert_geometry_file, geometry_arrays, geometry_from_arrays
from revisit.posing.tasks import Arrays, PoseTask, make_each_in_temporary_folder

DRIVER = Path(__file__).with_name("driver.py")
LOADING = 1800.0  # seconds that an estimator may take to load; the first time it fetches its weights
ESTIMATORS = read_package_yaml("revisit.posing", "estimators.yaml")
STRUCTURE_FRAMES = 120  # that structure from motion is given: its time grows faster than their number


@dataclass(frozen=True)
class Command:
    """A program that reads {video} and writes {npz}, in any format of `revisit import poses`."""

    command: str
    convention: str = "auto"
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.convention not in ("auto", "w2c", "c2w"):
            raise UsageError(f"unknown pose convention {self.convention!r}; choose w2c, c2w or auto")
        if "{video}" not in self.command or not ("{npz}" in self.command or "{out}" in self.command):
            raise UsageError(
                f"the command {self.command!r} needs {{video}}, the clip to read, and {{npz}}, the file to write"
            )

    @property
    def producer(self) -> str:
        return f"command {digest([self.command, self.convention])}"

    def run(self, tasks: Sequence[PoseTask]) -> Iterator[tuple[PoseTask, Arrays | str]]:
        return make_each_in_temporary_folder(tasks, self._estimate_task)

    def _estimate_task(self, task: PoseTask, folder: Path) -> Arrays:
        npz, ours = folder / "results.npz", folder / "ours.npz"
        video = task.clip.path if is_whole_file(task.clip) else write_lossless_video(task.clip, folder / "clip.mp4")
        parts = [
            part.replace("{video}", str(video)).replace("{npz}", str(npz)).replace("{out}", str(npz))
            for part in shlex.split(self.command)
        ]
        log = _create_empty_log(task, folder)
        code = _run_program(parts, log, self.timeout)
        if code or not npz.is_file():
            raise MediaError(f"the command ended with {code} and wrote no usable file: {last_printed_line(log)}")
        convert_geometry_file(npz, ours, convention=self.convention)
        return load_npz(ours)


def _run_program(parts: list[str], log: Path, timeout: float | None) -> int:
    """The exit code of a program that was given its time."""
    with log.open("ab") as out:
        try:
            running = subprocess.Popen(parts, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        except OSError as error:
            raise UsageError(f"{parts[0]} cannot be started: {error.strerror}") from error
        try:
            return running.wait(timeout)
        except subprocess.TimeoutExpired:
            raise MediaError(f"the command was stopped after {timeout:g} s; --timeout allows more") from None
        finally:
            kill_process_group(running)


@dataclass(frozen=True)
class Driver:
    """An estimator in the Python that has it, loaded once for many clips."""

    name: str
    python: str = sys.executable
    model: str = ""
    device: str = ""
    most: int | None = None  # frames of a clip, evenly spread; all where None
    timeout: float | None = None

    @property
    def checkpoint(self) -> str:
        return self.model or str(ESTIMATORS[self.name][0])

    @property
    def frame_limit(self) -> int | None:
        return self.most or (STRUCTURE_FRAMES if self.name == "pycolmap" else None)

    @property
    def producer(self) -> str:
        most = f", {self.frame_limit} frames" if self.frame_limit else ""
        return f"{self.name} {self.checkpoint}".strip() + most

    def run(self, tasks: Sequence[PoseTask]) -> Iterator[tuple[PoseTask, Arrays | str]]:
        with (
            tempfile.TemporaryDirectory(prefix="revisit-poses-") as folder,
            closing(_DriverProcess(self, Path(folder) / "driver.log")) as process,
        ):
            process.start()
            yield from make_each_in_temporary_folder(tasks, partial(self._estimate_task, process))

    def _estimate_task(self, process: _DriverProcess, task: PoseTask, folder: Path) -> Arrays:
        out, log = folder / "results.npz", _create_empty_log(task, folder)
        clip: dict[str, object] = {"video": str(task.clip.path.resolve()), "folder": str(folder), "out": str(out)}
        numbers: list[int] = []
        images = folder / "images"
        images.mkdir()
        if self.name == "vipe" and is_whole_file(task.clip):
            with open_clip(task.clip, wanted=np.arange(0)) as stream:  # it decodes the video itself
                size = stream.info.width, stream.info.height
        else:
            numbers, size = write_spread_frames(task, images, self.frame_limit)
            clip["video"] = str(images) if self.name == "vipe" else clip["video"]
        frames = [str(images / f"{number:06d}.png") for number in numbers]
        clip |= {"frames": frames, "numbers": numbers, "log": str(log.resolve())}
        process.send_clip_and_wait(clip, self.timeout, log)
        arrays = load_npz(out, members=[name for name in READ if name in array_shapes_in_npz(out)])
        if "depth" not in arrays and "size" not in arrays:
            arrays["size"] = np.array(size)
        try:
            return geometry_arrays(geometry_from_arrays(arrays), self.producer)
        except InvalidPoses as error:
            raise MediaError(str(error)) from error


def is_whole_file(clip: Clip) -> bool:
    """Whether a clip is all of its file."""
    return not clip.start and clip.count is None


def write_lossless_video(clip: Clip, path: Path) -> Path:
    """A file with just the frames of a clip, without an odd last row or column, which H.264 in 4:2:0 cannot have."""
    with open_clip(clip) as stream:
        height, width = stream.info.height // 2 * 2, stream.info.width // 2 * 2
        encode_mp4(path, (frame.rgb[:height, :width] for frame in stream), stream.info.fps, crf=0)
    return path


def write_spread_frames(task: PoseTask, folder: Path, max_frames: int | None) -> tuple[list[int], tuple[int, int]]:
    """(numbers of the frames that were written as PNG files, width and height); at most so many, evenly spread."""
    import cv2

    def spread_frame_numbers(count: int, fps: float) -> np.ndarray:
        return np.unique(np.linspace(0, count - 1, min(max_frames or count, count)).round().astype(int))

    numbers = []
    with open_clip(task.clip, wanted=spread_frame_numbers) as stream:
        size = stream.info.width, stream.info.height
        for frame in stream:
            numbers.append(int(frame.index))
            cv2.imwrite(str(folder / f"{frame.index:06d}.png"), frame.rgb[:, :, ::-1])
    if not numbers:
        raise MediaError("the clip has no frames")
    return numbers, size


class _DriverProcess:
    """The conversation with a driver."""

    def __init__(self, driver: Driver, log: Path) -> None:
        self.asked, self.log = driver, log
        self.running: subprocess.Popen[str] | None = None
        self.answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        driver = self.asked
        parts = [driver.python, "-u", str(DRIVER), driver.name, "--model", driver.checkpoint, "--device", driver.device]
        self.answers = queue.SimpleQueue()
        with self.log.open("ab") as log:
            try:
                self.running = subprocess.Popen(
                    parts, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                    errors="replace", start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise UsageError(f"--python {driver.python}: it cannot be started ({error.strerror})") from error
        start_thread(put_lines_in_queue, self.running.stdout, self.answers)
        answer = self._wait_for_answer(LOADING)
        if answer is None or "ready" not in answer:
            reason = (answer or {}).get("error") or last_printed_line(self.log)
            raise MissingPrerequisite(
                f"{driver.python} cannot load {driver.name}: {printable_line(reason, 300)}. Give with --python "
                f"the Python of an environment that has {ESTIMATORS[driver.name][1]}, and with --model a checkpoint "
                "it can read"
            )

    def send_clip_and_wait(self, clip: Mapping[str, object], timeout: float | None, log: Path) -> None:
        """Have the poses of a clip made; MediaError says why it has none."""
        if self.running is None or self.running.poll() is not None:
            self.start()
        assert self.running is not None and self.running.stdin is not None
        try:
            self.running.stdin.write(json.dumps(clip) + "\n")
            self.running.stdin.flush()
            answer = self._wait_for_answer(timeout)
        except BrokenPipeError:
            answer = {"dead": ""}
        if answer is None:
            self.close()
            raise MediaError(f"{self.asked.name} was stopped after {timeout:g} s; --timeout allows more")
        if "dead" in answer:
            code = self.running.wait()
            self.close()
            raise MediaError(f"{self.asked.name} ended with {code}: {last_printed_line(log)}")
        if "error" in answer:
            raise MediaError(printable_line(answer["error"], 300))

    def _wait_for_answer(self, timeout: float | None) -> dict[str, str] | None:
        """What it answers; None where that takes too long."""
        try:
            line = self.answers.get(timeout=timeout)
        except queue.Empty:
            return None
        if line is None:
            return {"dead": ""}
        answer = parse_json_or_none(line)
        return answer if isinstance(answer, dict) else {"error": f"it answered {line[:80]!r}"}

    def close(self) -> None:
        """End it, with everything that it started."""
        if self.running is not None:
            kill_process_group(self.running)
            self.running = None


def _create_empty_log(task: PoseTask, folder: Path) -> Path:
    """The file for what is printed, new and empty."""
    log = task.log or folder / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    return log


def last_printed_line(log: Path) -> str:
    """The last thing that was printed."""
    try:
        lines = log.read_bytes()[-4000:].decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    return printable_line(next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing"), 200)
