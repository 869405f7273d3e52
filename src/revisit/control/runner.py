"""Runner: a user's own generation command over a list of records, resumable, with provenance for every clip.

The command is a line with placeholders, split into arguments before they are filled in, so that no prompt can
become a command: {prompt} {image} {source_video} {camera} {line} {path} {seed} {frames} {fps} {width} {height} {out}.
{camera} is the payload's file, or its folder; {line} is the payload itself, where it is one line of text.
What becomes of a record is written down (`generation.jsonl`) and never stops the batch, whatever text is in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import string
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.delivery import Delivery, deliver, plan_for
from revisit.control.generators import Generator
from revisit.control.payloads import FAMILIES
from revisit.control.provenance import Inputs, provenance
from revisit.core import Clip, MediaError, RevisitError, UsageError
from revisit.media import Limits, announced_frames, file_digest, open_clip
from revisit.media.files import replacing

PLACEHOLDERS = (
    "prompt", "image", "source_video", "camera", "line", "path", "seed", "frames", "fps", "width", "height", "out",
)  # fmt: skip
LONGEST_NAME = 120  # characters of an id that a file's name keeps
TAIL = 400  # characters of a command's last words that are kept
LONGEST_REASON = 1000  # characters
LOG = "generation.jsonl"


@dataclass(frozen=True)
class GenerationRecord:
    """What one clip shall show."""

    id: str
    prompt: str
    camera: str  # a script
    image: Path | None = None
    source_video: Path | None = None
    seed: int = 0
    policy: str = "none"
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Generated:
    """What became of a record: made, kept (it was there already), or how it failed."""

    id: str
    status: str  # made | kept | crashed | hung | wrote nothing | wrong length | refused
    reason: str = ""
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()  # what must be known of its payload

    @property
    def good(self) -> bool:
        return self.status in ("made", "kept")


def read_records(path: Path) -> list[GenerationRecord]:
    """The records of a JSON-lines file; relative paths start at its folder."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected JSON lines with id, prompt and camera")
    try:
        # Only line feeds part records: a prompt may hold any other separator.
        lines = path.read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the file is not UTF-8 text ({error})") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            files = {name: (path.parent / row[name]) if row.get(name) else None for name in ("image", "source_video")}
            found.append(
                GenerationRecord(
                    id=str(row["id"]),
                    prompt=str(row["prompt"]),
                    camera=str(row["camera"]),
                    **files,
                    seed=int(row.get("seed", 0)),
                    policy=str(row.get("policy", "none")),
                    annotations=dict(row.get("annotations") or {}),
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: expected an object with id, prompt and camera ({error})") from error
    twice = sorted(id for id, count in Counter(record.id for record in found).items() if count > 1)
    if twice:
        raise UsageError(f"{path}: the id {twice[0]!r} is there more than once")
    return found


def arguments(command: str, values: Mapping[str, str]) -> list[str]:
    """The command's arguments with its placeholders filled in."""
    words = shlex.split(command)
    named = {name for word in words for _, name, _, _ in string.Formatter().parse(word) if name is not None}
    unknown = sorted(named - set(PLACEHOLDERS))
    if unknown:
        raise UsageError(f"the command has a placeholder {{{unknown[0]}}}; known are {', '.join(PLACEHOLDERS)}")
    if not words or "out" not in named:
        raise UsageError("the command needs {out}, where the clip shall be written")
    return [word.format_map(values) for word in words]


def generate(
    records: Sequence[GenerationRecord],
    to: Generator,
    command: str,
    folder: Path,
    *,
    timeout: float = 3600,
    workers: int = 1,
    frames: int | None = None,
    checkpoint: str = "",
) -> Iterator[Generated]:
    """Run the command for every record that has no clip yet, and tell what became of each as it ends."""
    arguments(command, dict.fromkeys(PLACEHOLDERS, ""))
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max(workers, 1)) as pool, (folder / LOG).open("a", encoding="utf-8") as log:
        waiting = [pool.submit(_one, record, to, command, folder, timeout, frames, checkpoint) for record in records]
        for future in waiting:
            made = future.result()
            log.write(json.dumps({"generator": to.id, **made.__dict__}) + "\n")
            log.flush()
            yield made


def write_manifest(records: Iterable[GenerationRecord], to: Generator, folder: Path) -> Path:
    """manifest.jsonl of the clips that are there, as `revisit eval` reads it."""
    lines = []
    for record in records:
        clip = _clip(folder, record.id)
        if clip.is_file():
            entry = {
                "id": record.id, "model": to.id, "video": clip.name, "prompt": record.prompt, "camera": record.camera,
                "seed": record.seed, "annotations": dict(record.annotations),
            }  # fmt: skip
            lines.append(json.dumps(entry) + "\n")  # in ASCII: not every text can be written in UTF-8
    path = folder / "manifest.jsonl"
    with replacing(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")
    return path


def picture_size(image: Path, to: Generator) -> tuple[int, int] | None:
    """Width and height of a first picture, where a generator's lens is told in pixels of it."""
    import cv2

    if not FAMILIES[to.payload].pictured:
        return None
    picture = cv2.imdecode(np.fromfile(image, np.uint8), cv2.IMREAD_COLOR) if _is_file(image) else None
    if picture is None:
        raise UsageError(f"{image}: no picture that can be read; its size is needed for the lens")
    return picture.shape[1], picture.shape[0]


def _one(
    record: GenerationRecord, to: Generator, command: str, folder: Path, timeout: float, frames: int | None,
    checkpoint: str,
) -> Generated:  # fmt: skip
    started = time.monotonic()
    remarks: list[str] = []
    try:
        plan, delivery = _asked(record, to, frames)
        remarks = delivery.remarks()
        status, reason = _made(record, to, plan, delivery, command, folder, timeout, checkpoint)
    except RevisitError as error:
        status, reason = "refused", str(error)
    except Exception as error:  # whatever a record holds, the others go on
        status, reason = "refused", f"this record cannot be handled: {type(error).__name__}: {error}"
    seconds = round(time.monotonic() - started, 3)
    return Generated(record.id, status, reason[:LONGEST_REASON], seconds, tuple(remarks))


def _asked(record: GenerationRecord, to: Generator, frames: int | None) -> tuple[CameraPlan, Delivery]:
    """What a record asks of a generator, and what it is given for it."""
    _require_text(record)
    needed = {"image": record.image, "source_video": record.source_video}.get(to.takes)
    if to.takes != "nothing" and (needed is None or not _is_file(needed)):
        raise UsageError(f"{to.id} starts from {to.takes}, and the record names no such file: {needed}")
    plan = plan_for(record.camera, to, frames)
    picture = picture_size(record.image, to) if record.image else None
    return plan, deliver(plan, to, prompt=record.prompt, image=str(record.image or ""), picture=picture)


def _made(
    record: GenerationRecord, to: Generator, plan: CameraPlan, delivery: Delivery, command: str, folder: Path,
    timeout: float, checkpoint: str,
) -> tuple[str, str]:  # fmt: skip
    """What became of a record, and why."""
    clip = _clip(folder, record.id)
    inputs = Inputs(record.prompt, record.seed, _digest(record.image), _digest(record.source_video), record.policy)
    expected = provenance(record.id, plan, to, delivery, inputs)
    if _is_kept(clip, expected):
        return "kept", ""
    camera, path = _write_inputs(clip, plan, delivery)
    values = {
        "prompt": record.prompt, "image": str(record.image or ""), "source_video": str(record.source_video or ""),
        "camera": str(camera), "line": delivery.line, "path": str(path), "seed": str(record.seed),
        "frames": str(len(plan)), "fps": f"{plan.fps:g}", "width": str(to.size[0]), "height": str(to.size[1]),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as scratch:
        made = Path(scratch) / clip.name
        status, reason = _run(arguments(command, {**values, "out": str(made)}), timeout)
        if status:
            return status, reason
        if not made.is_file() or not made.stat().st_size:
            return "wrote nothing", f"the command ended well and left no file at {{out}}; {reason}"
        count = announced_frames(made)
        if count is not None and count != len(plan):
            return "wrong length", f"the clip has {count} frames, and {len(plan)} were asked for"
        made.replace(clip)
    output = {"sha256": _digest(clip), "bytes": clip.stat().st_size, **_measured(clip)}
    made_with = {"command": command, "checkpoint": checkpoint}
    content = {**expected, "made_with": made_with, "output": output}
    with replacing(_sidecar(clip)) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    return "made", ""


def _require_text(record: GenerationRecord) -> None:
    """Raise UsageError where a record holds what is no text, or what no command can be given."""
    if not record.id.strip() or not record.id.isprintable():
        raise UsageError(f"the id {record.id!r} is empty or holds a character that cannot be shown; give it another")
    for name in ("prompt", "image", "source_video"):
        if "\0" in str(getattr(record, name) or ""):
            raise UsageError(f"the {name} holds a NUL character, which no command can be given; take it out")
    for name, content in vars(record).items():
        try:
            json.dumps(content, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the {name} holds half a character (a lone surrogate), which is no text") from error


def _measured(clip: Path) -> dict[str, Any]:
    """Frames, frame rate and size of a clip as it is, whatever was asked for; or why it cannot be opened."""
    try:
        with open_clip(Clip(clip), Limits(), wanted=np.arange(0)) as stream:
            info = stream.info
    except RevisitError as error:
        return {"frames": None, "problem": str(error)}
    return {"frames": info.count, "fps": round(float(info.fps), 6), "size": [info.width, info.height]}


def _run(words: list[str], timeout: float) -> tuple[str, str]:
    """("", last words) of a command that ended well, or how it failed and why. It gets a process group of its own."""
    with tempfile.TemporaryFile() as words_said:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=words_said, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            return "crashed", f"the command cannot be started: {error}"
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return "hung", f"no end after {timeout:g} seconds; it was stopped"
        finally:
            _stop(process)
        words_said.seek(max(0, words_said.seek(0, os.SEEK_END) - 4 * TAIL))
        tail = " ".join(words_said.read().decode(errors="replace").split())[-TAIL:]
    if code:
        return "crashed", f"the command ended with {code}: {tail}" if code > 0 else f"it was killed by signal {-code}"
    return "", f"its last words: {tail}" if tail else "it said nothing"


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command with everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write_inputs(clip: Path, plan: CameraPlan, delivery: Delivery) -> tuple[Path, Path]:
    """The payload and the path it was made from, beside the clip."""
    camera, path = delivery.write(clip.with_suffix("")), clip.with_suffix(".target_c2w.npy")
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, plan.path.c2w)
    return camera, path


def _is_kept(clip: Path, expected: Mapping[str, Any]) -> bool:
    """Whether the clip is there, unchanged, and was made from the same inputs."""
    try:
        known = json.loads(_sidecar(clip).read_text(encoding="utf-8"))
        same = all(known[name] == expected[name] for name in ("intended", "delivered", "inputs", "generator"))
        return same and known["output"]["sha256"] == _digest(clip)
    except (OSError, ValueError, KeyError, TypeError, MediaError):
        return False


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    if not _is_file(path):
        raise UsageError(f"{path}: no such file")
    return file_digest(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        return False


def _clip(folder: Path, id: str) -> Path:
    """The clip of a record. Where an id cannot be a name as it is, a digest keeps it apart from all others."""
    name = re.sub(r"[^A-Za-z0-9_.@-]+", "_", id).strip("._")[:LONGEST_NAME]
    if name != id:
        name = f"{name or 'clip'}-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return folder / f"{name}.mp4"


def _sidecar(clip: Path) -> Path:
    return clip.with_suffix(".provenance.json")
