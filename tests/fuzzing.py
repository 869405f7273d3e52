"""A mutation fuzzer over everything that reads files from outside.

    python -m tests.fuzzing --inputs 95000 --media 5000 --flips 100000 --seed 1 --log build/fuzz.jsonl

A long run is cut into pieces, each with a seed of its own, which `--workers` processes share; a log has a line for each
piece that is done, and the same command goes on where it stopped.

The corpus is made by the project itself: rendered datasets of all layouts, poses in all formats, a run with its bundle
and evidence, answers, labels, settings and small clips. One file at a time is changed, as bytes or as what it says, and
read by the function that a command would read it with. A reader may return, or refuse in one sentence (`RevisitError`);
anything else is a finding: another exception, more than `SECONDS` or `MEMORY`, a program started, a connection, a
pickle, or a file opened outside of the corpus.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import multiprocessing
import os
import random
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import OBSERVERS, SUITES, Case, Clip, RevisitError
from revisit.engine.cache import EvidenceCache
from revisit.engine.dataset_cases import ensure_writable_entry
from revisit.engine.request import Request, load_observer_set
from revisit.engine.run import evaluate
from revisit.evidence.frames import FrameFacts
from revisit.geometry import formats
from revisit.geometry.poses import make_trajectory
from revisit.judges.protocol import JudgeAnswer
from revisit.judges.questions import Question, YesNo
from revisit.judges.settings import judge_from_source
from revisit.judges.store import AnswerStore
from revisit.media import DECODINGS, Limits, encode_mp4, open_clip
from revisit.observers.poses import read_poses
from revisit.results.model_facts import load_model_facts
from revisit.results.run import Run
from revisit.runs.bundle_check import check_bundle
from revisit.runs.bundles import read_bundle, write_bundle
from tests.conftest import moving_frames
from tests.judging import pictures

SECONDS = 20.0  # of processor time for one input; on the clock thirty times as long, for what only waits
MEMORY = 6 << 30  # bytes of address space of this process
LIMITS = Limits(seconds=10, memory=1 << 30, frames=2000, pixels=1 << 22)
MEDIA = "media"
TEXTS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    "",
    " ",
    "\x00",
    "\u2028",
    "\ud800",
    "x" * 5000,
    "../../../etc/passwd",
    "/etc/passwd",
    "http://127.0.0.1:9/x",
    "file:///etc/passwd",
    "NaN",
    "2020-99-99",
    "é\u202e",
    [],
    {},
    [[]],
    {"": None},
    [None] * 3,
    {"id": "x"},
    float("nan"),
    float("inf"),
    "=1+1",
    "%s%n{0}",
    "con",
    "a/b",
    ".",
    "..",
)
BYTES = (
    b"NaN",
    b"1e999",
    b"null",
    b"-1",
    b"[]",
    b"{}",
    b'""',
    b"\\ud800",
    b"\xff\xfe",
    b"\x00",
    b"\xe2\x80\xa8",
    b"\r",
    b",",
    b'"',
    b"[" * 3000,
    b"{" * 3000,
    b'{"a":' * 3000,
    b"../../../../etc/passwd",
    b"9" * 5000,
    b"&a [*a]",
    b"!!python/object:os.system",
    b"\x80\x04cos\nsystem\n(S'true'\ntR.",
    b"PK\x03\x04",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"- ",
    b": ",
)
LISTED = (".json", ".jsonl", ".yaml", ".yml", ".csv", ".txt", ".tum", ".md")


@dataclass(frozen=True)
class Reader:
    """Something that reads files: those of its corpus that are changed, and how they are read."""

    name: str
    files: Sequence[Path]
    read: Callable[[Path], object]  # given the file that was changed
    weight: float = 1.0


@dataclass
class Findings:
    """What became of all inputs."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def inputs(self) -> int:
        return self.read.total() + self.refused.total()

    @property
    def told(self) -> str:
        read, refused = self.read.total(), self.refused.total()
        return f"{self.inputs} inputs, {read} read, {refused} refused, slowest {self.slowest:.1f} s"


# The corpus


LAYOUTS = ("folder", "mbench", "mbench-t", "memobench", "wrbench", "mind")


def readers(folder: Path, worlds: Path | None = None) -> list[Reader]:
    """All readers, with a corpus of their own in a folder; those of datasets where rendered `worlds` are given."""
    made = [*_poses(folder / "poses"), *_imports(folder / "imports")]
    if worlds is not None:
        shutil.copytree(worlds, folder / "worlds")
        made += _suites(folder / "worlds")
    made += [*_runs(folder / "runs"), *_settings(folder / "settings"), *_media(folder / "media")]
    return [reader for reader in made if reader.files]


def render_worlds(folder: Path) -> None:
    """Small datasets in all layouts; a minute or two, and nothing where they are there already."""
    from revisit.worlds.layouts.common import Model
    from revisit.worlds.layouts.rendering import render_layouts

    render_layouts(folder, LAYOUTS, seeds=1, size=(64, 64), frames=9, models=(Model.parse("perfect"),), workers=0)


def _suites(folder: Path) -> Iterator[Reader]:
    from revisit.worlds.layouts.film_orders import evaluation_command

    for layout in LAYOUTS:
        if not (folder / layout).is_dir():
            continue
        root = folder / layout
        suite = SUITES[layout.partition("-")[0]]
        words = shlex.split(evaluation_command(layout, root))
        source = Path(words[2])
        options = dict(word.split("=", 1) for before, word in pairwise(words) if before == "--option")

        def read(_: Path, source: Path = source, suite: Any = suite, options: Any = options) -> list[Any]:
            suite.recognises(source)
            return [ensure_writable_entry(entry) for entry in suite.read(source, (), **options)]

        texts = [path for path in sorted(root.rglob("*")) if path.suffix in (*LISTED, ".xlsx") and path.is_file()]
        yield Reader(f"suite {layout}", texts, read, weight=2)
        if suite.dataset is not None:

            def described(_: Path, root: Path = root, suite: Any = suite) -> object:
                return suite.dataset.describe(root) if suite.dataset.mine(root) else None

            if hasattr(suite.dataset, "describe") and hasattr(suite.dataset, "mine"):
                yield Reader(f"describe {layout}", texts, described)
        by_observer: dict[str, list[Path]] = {}
        owners: dict[Path, Case] = {}
        for case in read(root):
            for artifact, path in case.artifacts.items() if isinstance(case, Case) else ():
                by_observer.setdefault(artifact, []).append(path)
                owners[path] = case
        for artifact, paths in by_observer.items():
            for maker in (maker for maker in OBSERVERS.values() if maker.artifact == artifact):

                def imported(path: Path, maker: Any = maker, owners: Any = owners) -> object:
                    return maker.fn(path, *(getattr(owners[path], name.removesuffix("?")) for name in maker.inputs))

                yield Reader(f"{maker.id} of {layout}", paths[:3], imported)


def _poses(folder: Path) -> Iterator[Reader]:
    folder.mkdir(parents=True)
    c2w = np.tile(np.eye(4), (7, 1, 1))
    c2w[:, 0, 3] = np.arange(7) / 3
    path = make_trajectory(c2w, np.arange(7.0))
    w2c = path.w2c
    lens = np.tile(np.array([[50.0, 0, 32], [0, 50, 32], [0, 0, 1]]), (7, 1, 1))
    texts = {
        "tum.txt": formats.format_tum(path),
        "kitti.txt": formats.format_kitti(path),
        "images.txt": formats.format_colmap(path),
        "transforms.json": json.dumps(
            {
                "fl_x": 50,
                "frames": [{"file_path": f"{k}.png", "transform_matrix": m.tolist()} for k, m in enumerate(c2w)],
            }
        ),
        "re10k.txt": "https://x\n"
        + "".join(
            f"{k * 33333} 0.5 0.5 0.5 0.5 0 0 {' '.join(map(repr, m[:3].ravel().tolist()))}\n"
            for k, m in enumerate(w2c)
        ),
        "table.csv": "frame,x,y,z,yaw,pitch,roll\n" + "".join(f"{k},{k / 3},0,0,0,0,0\n" for k in range(7)),
        "c2w.json": json.dumps({"c2w": c2w.tolist()}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    np.save(folder / "c2w.npy", c2w)
    np.savez(folder / "da3.npz", extrinsics=w2c[:, :3], intrinsics=lens)
    np.savez(folder / "vipe.npz", data=c2w, inds=np.arange(7))
    np.savez(folder / "mapanything.npz", cam_c2w=c2w, intrinsic=lens)
    files = sorted(folder.iterdir())
    yield Reader("poses", files, lambda path: [read_poses(path), _quietly(path)], weight=3)
    yield Reader("import.poses", files, lambda path: OBSERVERS["import.poses"].fn(path))


def _quietly(path: Path) -> int:
    """Read a file as every format, whatever it looks like; in how many it can be."""
    read = 0
    from revisit.observers.poses import FORMATS

    for format in FORMATS:
        with contextlib.suppress(RevisitError):
            read_poses(path, format)
            read += 1
    return read


def _imports(folder: Path) -> Iterator[Reader]:
    """Importers of tables, on files of their kinds."""
    folder.mkdir(parents=True)
    rows = [
        {"frame": k, "index": k, "score": k / 7, "value": k / 7, "x0": 0.1, "y0": 0.1, "x1": 0.5, "y1": 0.5}
        for k in range(7)
    ]
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "by.json").write_text(json.dumps({"frames": rows, "scores": [k / 7 for k in range(7)]}))
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    (folder / "rows.csv").write_text(table.getvalue())
    np.savez(
        folder / "rows.npz",
        index=np.arange(7),
        score=np.arange(7) / 7,
        vectors=np.ones((7, 4)),
        features=np.ones((7, 4)),
    )
    np.savez(
        folder / "all.npz",
        vector=np.ones((7, 4)),
        face=np.arange(7),
        frame=np.arange(7),
        looked=np.arange(7),
        maker=np.array("net"),
        image=np.ones((7, 4)),
        text=np.ones((1, 4)),
        segment=np.zeros(7, int),
        depth=np.ones((7, 6, 8)),
        inverse=np.array(True),
        mask=np.ones((7, 6, 8), bool),
        tokens=np.ones((7, 9, 4)),
        cropped=np.array(True),
        other=np.arange(7),
        difference=np.ones((7, 3)),
        extrinsics=np.tile(np.eye(4)[:3], (7, 1, 1)),
        intrinsics=np.tile(np.eye(3), (7, 1, 1)),
        norm=np.ones((7, 3)),
        other_norm=np.ones((7, 3)),
        fold=np.array(True),
        box=np.ones((7, 4)),
        score=np.ones(7),
    )
    files = sorted(folder.iterdir())
    for maker in OBSERVERS.values():
        if maker.kind == "file" and not maker.inputs and maker.id != "import.poses":
            yield Reader(maker.id, files, partial(_imported, maker), weight=0.3)


def _imported(maker: Any, path: Path) -> object:
    return maker.fn(path)


def _of_shape(read: Callable[[Path, str], object], shape: str, path: Path) -> object:
    return read(path, shape)


def _runs(folder: Path) -> Iterator[Reader]:
    videos, out = folder / "videos", folder / "run"
    for name, seed in (("a", 1), ("b", 2)):
        (videos / "m").mkdir(parents=True, exist_ok=True)
        encode_mp4(videos / "m" / f"{name}.mp4", moving_frames(8, seed=seed), fps=8)
    cache = EvidenceCache(folder / "cache")
    plan = Request.from_options(videos, suite="folder", metrics=("flicker", "motion_amount"), truth=False).plan()
    run = evaluate(plan, out, workers=0, cache=cache)
    bundle = write_bundle(run, folder / "run.bundle.zip")
    files = [out / name for name in ("run.json", "plan.json", "records.jsonl", "summary.json")]

    def read(_: Path) -> object:
        found = Run(out)
        return [found.facts, found.plan, found.summary, found.diagnosis, found.results.records, found.exit_code]

    yield Reader("run", files, read, weight=2)
    yield Reader("bundle", [bundle], lambda path: [read_bundle(path), check_bundle(path)])
    store = AnswerStore(folder / "answers.jsonl")
    for number in range(3):
        judge = {"judge": "openai", "model": "m", "server": "s"}
        store.record_answer(
            pictures(seed=number),
            Question(f"q{number}", "Is it?", YesNo()),
            judge,
            JudgeAnswer("answered", "yes", 0.8, reply="yes"),
        )
    store.close()

    def replayed(path: Path) -> object:
        judge = judge_from_source(str(path)).judge
        asked = AnswerStore(None, folder / "copy.jsonl")
        (folder / "copy.jsonl").unlink()
        asked.close()
        AnswerStore(path).close()
        return judge.reply(pictures(seed=1), [Question("q1", "Is it?", YesNo())], [""])

    yield Reader("answers", [folder / "answers.jsonl"], replayed, weight=2)
    key = next(cache.files()).stem
    yield Reader("evidence", [cache.path(key)], lambda path: cache.load(FrameFacts, path.stem))


def _settings(folder: Path) -> Iterator[Reader]:
    from revisit.control.generation import read_generation_records
    from revisit.control.generators import load_generators
    from revisit.datasets.clips import read_target_boxes
    from revisit.evidence.judged import BankQuestion as BankQuestion
    from revisit.judges.calibration import load_judge_labels as judged_labels
    from revisit.labels.formats import label_studio_tasks, mbench_rows, wrbench_rows
    from revisit.labels.formats import read_foreign_labels as read_shape
    from revisit.labels.label import Box, Label, label_to_json, read_label_files
    from revisit.suites.memobench.imports import read_answer_entries
    from revisit.suites.memobench.question_bank import Bank, Judgement, read_bank, write_bank

    folder.mkdir(parents=True)
    labels = [
        Label(
            task="marks",
            item="s1",
            rater="ann",
            question="target",
            answer="hidden, returned",
            case="s1",
            model="m",
            clip="a.mp4",
            frames={"gone": 3, "back": 7},
            boxes=(Box("cup", (0.1, 0.1, 0.5, 0.5)),),
        ),
        Label(
            task="pairwise",
            item="s2",
            rater="bob",
            question="better",
            answer="a",
            case="s2",
            other="s3",
            model="m",
            other_model="n",
        ),
    ]
    asked = (BankQuestion(1, "Instruction Following", True, "Is the cup there?"),)
    texts = {
        "judge.yaml": "url: http://127.0.0.1:9/v1\nmodel: m\nbudget: {calls: 3}\nroles: {}\n",
        "set.yaml": "title: mine\nextends: lite\nroles: {frame_facts: lite.frames}\n",
        "models.yaml": "models:\n  wan:\n    parameters: 14\n    category: CI2V\n    fps: 16\n",
        "generators.yaml": "generators:\n  mine: {title: Mine, payload: pose_folder, lengths: [5, 4, 81]}\n",
        "records.jsonl": '{"id": "a", "prompt": "p", "camera": "yaw:left:60@40", "seed": 1}\n'
        '{"id": "b", "prompt": "q", "camera": "static@81"}\n',
        "targets.json": '{"a": {"box": [0.1, 0.1, 0.5, 0.5], "name": "cup"}}',
        "labels.jsonl": "".join(json.dumps(label_to_json(label)) + "\n" for label in labels),
        "judged.csv": "clip,question,label,rater\na.mp4,Is there a cup?,yes,ann\n",
        "judged.jsonl": '{"clip": "a.mp4", "question": "Is there a cup?", "label": "yes", "about": {"x": 1}}\n',
        "studio.json": json.dumps(label_studio_tasks(labels)),
        "wrbench.jsonl": "".join(json.dumps(row) + "\n" for row in wrbench_rows(labels)),
        "mbench.jsonl": "".join(json.dumps(row) + "\n" for row in mbench_rows(labels)),
        "bank.csv": write_bank(Bank("Zen_Garden", 10, asked, (Judgement(asked[0], 1, True, "it is"),), (), (), asked)),
        "vqa.json": '{"judge": "m", "answers": [{"id": 1, "question": "Is it?", "dimension": "IF", "answer": "Yes"}]}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)

    def one(name: str, read: Callable[[Path], object]) -> Reader:
        return Reader(name, [folder / name], read)

    yield one("judge.yaml", lambda path: judge_from_source(str(path)))
    yield one("set.yaml", lambda path: load_observer_set(str(path)))
    yield one("models.yaml", lambda path: load_model_facts([], path))
    yield one("generators.yaml", load_generators.__wrapped__)
    yield one("records.jsonl", read_generation_records)
    yield one("targets.json", read_target_boxes)
    yield one("labels.jsonl", lambda path: read_label_files([path]))
    yield one("judged.csv", judged_labels)
    yield one("judged.jsonl", judged_labels)
    for name, shape in (("studio.json", "label-studio"), ("wrbench.jsonl", "wrbench"), ("mbench.jsonl", "mbench")):
        yield one(name, partial(_of_shape, read_shape, shape))
    yield one("bank.csv", read_bank)
    yield one("vqa.json", read_answer_entries)


def _media(folder: Path) -> Iterator[Reader]:
    import cv2

    folder.mkdir(parents=True)
    frames = moving_frames(6)
    for suffix in ("mp4", "mov", "mkv"):
        with contextlib.suppress(Exception):
            encode_mp4(folder / f"clip.{suffix}", frames, fps=8)
    _encode(folder / "clip.webm", "libvpx-vp9", frames)
    _encode(folder / "other.mkv", "ffv1", frames)
    _encode(folder / "clip.avi", "mpeg4", frames)
    np.save(folder / "clip.npy", np.stack(frames))
    np.savez(folder / "clip.npz", frames=np.stack(frames), fps=8)
    animation: Any = cv2.Animation() if hasattr(cv2, "Animation") else None
    for suffix in ("gif", "webp") if animation else ():
        animation.frames, animation.durations = list(frames), np.full(len(frames), 125, np.int32)
        cv2.imwriteanimation(str(folder / f"clip.{suffix}"), animation)
    folders = [folder / "images", folder / "photos"]
    for place, suffix in zip(folders, ("png", "jpg"), strict=True):
        place.mkdir()
        for number, rgb in enumerate(frames[:3]):
            cv2.imwrite(str(place / f"{number}.{suffix}"), rgb)

    def decode(path: Path) -> object:
        """By our own rules and by each library, in turn with the content."""
        decoding = ("", *DECODINGS)[zlib.crc32(path.read_bytes()) % (1 + len(DECODINGS))]
        clip = Clip(path.parent if path.parent in folders else path, decoding=decoding)
        with open_clip(clip, LIMITS) as stream:
            return sum(1 for _ in stream)

    files = [path for place in (folder, *folders) for path in sorted(place.iterdir()) if path.is_file()]
    yield Reader(MEDIA, files, decode)


def _encode(path: Path, codec: str, frames: Sequence[np.ndarray]) -> None:
    import av

    with contextlib.suppress(Exception), av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=8)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for rgb in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())


# Mutations


def mutated(content: bytes, suffix: str, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The content, changed as a document where it is one, or as bytes."""
    if suffix in LISTED and chance.random() < 0.6:
        with contextlib.suppress(Exception):
            return _said_otherwise(content.decode(), suffix, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        content = _bytes_changed(content, chance, others)
    return content


def _bytes_changed(content: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(content) + 1)
    to = min(len(content), at + chance.choice((1, 1, 2, 4, 8, 64, 1024)))
    kind = chance.randrange(8)
    if kind == 0 and at < len(content):
        return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + chance.randbytes(to - at) + content[to:]
    if kind == 2:
        return content[:at] + content[to:]
    if kind == 3:
        return content[:to] + content[at:to] * chance.choice((1, 3, 50)) + content[to:]
    if kind == 4:
        return content[:at]
    if kind == 5 and others:
        other = chance.choice(others)
        return content[:at] + other[chance.randrange(len(other) + 1) :][:4096] + content[to:]
    if kind == 6:
        return content[:at] + chance.choice((b"\x00", b"\xff", b"\x7f")) * (to - at) + content[to:]
    return content[:at] + chance.choice(BYTES) + content[to:]


def _said_otherwise(text: str, suffix: str, chance: random.Random) -> bytes:
    """A document with one value, name or row changed."""
    import yaml

    if suffix in (".csv", ".txt", ".tum", ".md"):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        cells = lines[at].split("," if suffix == ".csv" else " ")
        cells[chance.randrange(len(cells))] = str(chance.choice(TEXTS))[:6000]
        lines[at] = ("," if suffix == ".csv" else " ").join(cells)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    if suffix == ".jsonl":
        lines = [line for line in text.split("\n") if line.strip()]
        at = chance.randrange(len(lines))
        lines[at] = json.dumps(_other(json.loads(lines[at]), chance))
        return "\n".join(lines).encode() + b"\n"
    if suffix == ".json":
        return json.dumps(_other(json.loads(text), chance)).encode()
    return str(yaml.safe_dump(_other(yaml.safe_load(text), chance))).encode("utf-8", "surrogatepass")


def _other(content: Any, chance: random.Random) -> Any:
    """The content with something within it replaced, left out, added or doubled."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        name = chance.choice(list(content))
        kind = chance.random()
        if kind < 0.1:
            return {key: value for key, value in content.items() if key != name}
        if kind < 0.2:
            return {**content, str(chance.choice(TEXTS))[:100]: content[name]}
        return {**content, name: _other(content[name], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        at = chance.randrange(len(content))
        kind = chance.random()
        if kind < 0.1:
            return content[:at] + content[at + 1 :]
        if kind < 0.2:
            return [*content, content[at]]
        return [*content[:at], _other(content[at], chance), *content[at + 1 :]]
    return chance.choice(TEXTS)


# Running


class Watch:
    """What the process does while an input is read, from Python's audit events."""

    REMOVES = ("os.remove", "shutil.rmtree")  # of what was unpacked
    STRANGE = (
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "pickle.find_class",
        "socket.connect",
        "os.remove",
        "shutil.rmtree",
        "ctypes.dlopen",
    )

    def __init__(self, folder: Path) -> None:
        self.allowed = (
            str(folder),
            "/proc",
            "/dev",
            "/sys",
            *(str(Path(place).resolve()) for place in sys.path if place),
        )
        self.allowed += (
            sys.prefix,
            sys.base_prefix,
            "/usr",
            "/lib",
            "/etc/ld.so",
            tempfile.gettempdir() + "/fuzz",
            tempfile.gettempdir() + "/revisit-",  # where bundles are unpacked
            str(Path(__file__).parents[1]),
        )
        self.on, self.seen = False, list[str]()
        sys.addaudithook(self)

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(given[0], str | bytes):
            path = given[0].decode("utf-8", "replace") if isinstance(given[0], bytes) else given[0]
            if path.startswith("/") and not path.startswith(self.allowed):
                self.seen.append(f"opened {path[:200]}")
        elif event == "subprocess.Popen" and "worker.py" not in str(given[1]):
            self.seen.append(f"started {given[1]!r:.200}")
        elif event in self.STRANGE and not (event in self.REMOVES and str(given[0]).startswith(self.allowed)):
            self.seen.append(f"{event} {given!r:.200}")


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS:g} s")


def fuzz(targets: Sequence[Reader], inputs: int, seed: int | str, watch: Watch | None = None) -> Findings:
    """Read so many changed files, spread over the readers by their weights."""
    chance, found = random.Random(seed), Findings()
    kept = {path: path.read_bytes() for reader in targets for path in reader.files}
    weights = [reader.weight for reader in targets]
    signal.signal(signal.SIGALRM, _too_slow)
    signal.signal(signal.SIGPROF, _too_slow)
    for number in range(inputs):
        reader = chance.choices(targets, weights)[0]
        path = chance.choice(reader.files)
        others = [kept[other] for other in reader.files if other.suffix == path.suffix]
        content = mutated(kept[path], path.suffix, chance, others)
        path.write_bytes(content)
        problem = _problem(reader, path, found, watch)
        if problem:
            found.found.append(f"{reader.name}: {path.name}: input {number} of seed {seed}: {problem}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kept[path])
    return found


def _problem(reader: Reader, path: Path, found: Findings, watch: Watch | None) -> str:
    """What went wrong while a file was read, or nothing."""
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 30 * SECONDS)
    if watch is not None:
        watch.seen, watch.on = [], True
    problem = ""
    try:
        reader.read(path)
        found.read[reader.name] += 1
    except RevisitError as error:
        found.refused[reader.name] += 1
        if "\n" in str(error) or not str(error).strip() or len(str(error)) > 3000:
            problem = f"not a sentence: {str(error)[:300]!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found.refused[reader.name] += 1
        frames = traceback.extract_tb(error.__traceback__)
        where = next(
            (f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames) if "/revisit/" in f.filename), "?"
        )
        problem = f"{type(error).__name__} at {where}: {str(error)[:200]!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if watch is not None:
            watch.on = False
    found.slowest = max(found.slowest, time.process_time() - begun)
    if watch is not None and watch.seen:
        problem = f"{problem}; {watch.seen[0]}"
    return problem


def flips(cache: EvidenceCache, count: int, seed: int | str) -> tuple[int, int]:
    """How many flipped bits of evidence loaded, and how many did not heal, of so many."""
    chance, silent, sick = random.Random(seed), 0, 0
    from revisit.observers.frames import frame_facts

    record = frame_facts(np.stack(moving_frames(9)))
    key = "ab" * 20
    cache.save(key, record)
    content = cache.path(key).read_bytes()
    for _ in range(count):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            bit = chance.randrange(8 * len(content))
            damaged[bit // 8] ^= 1 << bit % 8
        if bytes(damaged) == content:
            continue
        cache.path(key).write_bytes(damaged)
        sound = cache.verify_or_drop(key) if chance.random() < 0.5 else cache.load(FrameFacts, key) is not None
        silent += sound
        sick += key in cache  # it is dropped: a run then makes it again
    cache.save(key, record)
    assert cache.verify_or_drop(key)
    return silent, sick


PIECES = {"flips": 10_000, "inputs": 500, "media": 25}  # so many at a time
Piece = tuple[str, int, str]  # kind, count and seed


def pieces(asked: argparse.Namespace) -> Iterator[Piece]:
    """The parts of a long run."""
    for kind, most in PIECES.items():
        for start in range(0, getattr(asked, kind), most):
            yield kind, min(most, getattr(asked, kind) - start), f"{asked.seed}.{kind}.{start // most}"


class Place:
    """Where a process does its pieces: a corpus of its own, which it alone changes."""

    here: Place  # of this process

    def __init__(self, folder: Path, worlds: Path, only: str) -> None:
        self.folder = folder / str(os.getpid())
        self.targets = [reader for reader in readers(self.folder / "corpus", worlds) if only in reader.name]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        self.watch = Watch(folder)

    @classmethod
    def take(cls, *given: Any) -> None:
        cls.here = cls(*given)


def piece(kind: str, count: int, seed: str) -> dict[str, Any]:
    """What became of one part, as a line of the log."""
    place, begun = Place.here, time.monotonic()
    facts: dict[str, Any]
    if kind == "flips":
        silent, sick = flips(EvidenceCache(place.folder / "flips"), count, seed)
        facts = {"found": [f"{silent} damaged pieces loaded, {sick} did not heal"] if silent or sick else []}
    else:
        mine = [reader for reader in place.targets if (reader.name == MEDIA) == (kind == "media")]
        found = fuzz(mine, count if mine else 0, seed, place.watch)
        facts = {"read": found.read, "refused": found.refused, "slowest": found.slowest, "found": found.found}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"seed": seed, "kind": kind, "count": count, **facts, "MiB": memory, "seconds": time.monotonic() - begun}


def spread(due: Sequence[Piece], workers: int, *given: Any) -> Iterator[dict[str, Any]]:
    """Lines of the log as pieces get done; they are shared by so many processes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, Place.take, given) as pool:
        going = {pool.submit(piece, *one): one for one in due}
        for future in as_completed(going):
            try:
                yield future.result()
            except BrokenProcessPool:
                lost = ", ".join(seed for one, (_, _, seed) in going.items() if not one.done() or one is future)
                raise SystemExit(f"a process crashed in one of the next pieces, {workers} at a time: {lost}") from None


def told(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A long run in words."""
    for kind in PIECES:
        mine = [line for line in lines if line["kind"] == kind]
        read, refused = (sum(sum(line.get(end, {}).values()) for line in mine) for end in ("read", "refused"))
        ends = f", {read} read, {refused} refused" if kind != "flips" else ""
        slowest = max((line.get("slowest", 0.0) for line in mine), default=0.0)
        yield (
            f"{sum(line['count'] for line in mine)} {kind}{ends}, {sum(len(line['found']) for line in mine)} findings, "
            f"slowest {slowest:.1f} s, {sum(line['seconds'] for line in mine):.0f} s in all, "
            f"at most {max((line['MiB'] for line in mine), default=0)} MiB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Read files that were changed at random.")
    for name, usual in (("inputs", 20_000), ("media", 500), ("flips", 20_000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--workers", type=int, default=1, help="Processes that share the work.")
    parser.add_argument("--worlds", type=Path, default=Path("build/fuzz-worlds"), help="Rendered datasets, kept.")
    parser.add_argument("--log", type=Path, help="A line for each piece that is done; those are not done again.")
    parser.add_argument("--only", default="", help="Only readers whose name holds this.")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    begun = time.monotonic()
    say = lambda text: print(f"{time.monotonic() - begun:7.0f} s  {text}", flush=True)  # noqa: E731, T201
    done: dict[str, dict[str, Any]] = {}
    if asked.log is not None:
        asked.log.parent.mkdir(parents=True, exist_ok=True)
        if asked.log.is_file():
            done = {line["seed"]: line for line in map(json.loads, asked.log.read_text().splitlines())}
    try:
        due = [one for one in pieces(asked) if one[2] not in done]
        if due:
            render_worlds(asked.worlds)
        for line in spread(due, asked.workers, folder, asked.worlds, asked.only):
            done[line["seed"]] = line
            if asked.log is not None:
                with asked.log.open("a") as log:
                    log.write(json.dumps(line) + "\n")
            say(f"{line['seed']}: {line['count']} in {line['seconds']:.0f} s, {len(line['found'])} findings")
            for sentence in line["found"]:
                say(f"  {sentence}")
        for sentence in told(list(done.values())):
            say(sentence)
        by_reader = sum(
            (Counter(line.get("read", {})) + Counter(line.get("refused", {})) for line in done.values()), Counter()
        )
        for name, count in sorted(by_reader.items()):
            say(f"  {name}: {count}")
        sys.exit(any(line["found"] for line in done.values()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
