"""`revisit camera poses`: estimators in another Python, driven through stand-ins with the interfaces of the real ones.

The published networks were not run here; pycolmap is, where it is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import Clip, MissingPrerequisite, UsageError
from revisit.media import encode_mp4, load_npz
from revisit.observers.geometry_file import read_geometry
from revisit.observers.poses import read_poses
from revisit.posing.odometry import Odometry
from revisit.posing.programs import ESTIMATORS, Command, Driver
from revisit.posing.tasks import PoseTask, update_pose_files

Make = Callable[..., Path]
COMMON = """
import os, sys, time
from pathlib import Path
import numpy as np

def tell(what):
    with open(os.environ["SEEN"], "a") as log:
        log.write(what + "\\n")

def lens(n):
    return np.tile(np.array([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]]), (n, 1, 1))

def poses(n, inverse):
    made = np.tile(np.eye(4), (n, 1, 1))
    made[:, 0, 3] = np.arange(n) * (-0.1 if inverse else 0.1)
    return made

def trouble(frames):
    print("estimating", len(frames), "frames")
    os.write(1, b"written below Python\\n")
    name = os.environ.get("TROUBLE", "")
    if name == "raise":
        raise RuntimeError("out of memory\\nreally")
    if name == "die":
        os.write(2, b"Killed by nobody\\n")
        os._exit(9)
    if name == "hang":
        time.sleep(60)
"""
TORCH = """
import contextlib
bfloat16 = float16 = None
class cuda:
    is_available = staticmethod(lambda: False)
no_grad = contextlib.nullcontext
def load(path, map_location=None, weights_only=False):
    assert weights_only
    return path
def autocast(kind, dtype=None, enabled=True):
    assert kind == "cuda" and not enabled
    return contextlib.nullcontext()
"""
DA3 = """
from types import SimpleNamespace
from common import *
class DepthAnything3:
    @classmethod
    def from_pretrained(cls, name):
        tell(f"loaded {name}")
        print("a progress bar on the output")
        return cls()
    def to(self, device):
        assert device == "cpu"
        return self
    def inference(self, images, process_res=504, process_res_method="upper_bound_resize"):
        n = len(images)
        trouble(images)
        assert all(Path(image).suffix == ".png" for image in images)
        depth = np.full((n, 24, 32), 2.0)
        depth[:, 0, 0] = np.nan
        return SimpleNamespace(extrinsics=poses(n, True)[:, :3], intrinsics=lens(n), depth=depth)
"""
VGGT = """
from common import *
class Array(np.ndarray):
    def to(self, device):
        return self
class VGGT:
    from_pretrained = classmethod(lambda cls, name: (tell(f"loaded {name}"), cls())[1])
    def to(self, device):
        return self
    def eval(self):
        return self
    def aggregator(self, images):
        assert images.ndim == 5 and len(images) == 1
        return [images.shape[1]], 5
    def camera_head(self, tokens):
        return [None, tokens]
    def depth_head(self, tokens, images, start):
        assert start == 5
        return np.full((1, *images.shape[1:2], 24, 32, 1), 2.0), None
"""
VGGT_LOAD = """
from common import *
from vggt.models.vggt import Array
def load_and_preprocess_images(names):
    return np.zeros((len(names), 3, 24, 32)).view(Array)
"""
VGGT_POSES = """
from common import *
def pose_encoding_to_extri_intri(encoding, size):
    assert tuple(size) == (24, 32)
    return poses(encoding[0], True)[None, :, :3], lens(encoding[0])[None]
"""
OMEGA = """
from common import *
from vggt.models.vggt import Array
class VGGTOmega:
    def load_state_dict(self, state):
        tell(f"loaded {state}")
    def to(self, device):
        return self
    def eval(self):
        return self
    def __call__(self, images):
        assert images.ndim == 4
        return {"pose_enc": [len(images)], "images": images[None], "depth": np.full((1, len(images), 24, 32, 1), 2.0)}
"""
OMEGA_LOAD = """
from common import *
from vggt.models.vggt import Array
def load_and_preprocess_images(names, mode="balanced", image_resolution=0):
    assert (mode, image_resolution) == ("balanced", 512)
    return np.zeros((len(names), 3, 24, 32)).view(Array)
"""
OMEGA_POSES = VGGT_POSES.replace("pose_encoding_to_extri_intri", "encoding_to_camera")
HUB = """
def hf_hub_download(repository, name):
    return f"{repository}/{name}"
"""
MAPANYTHING = """
from common import *
class MapAnything:
    from_pretrained = classmethod(lambda cls, name: (tell(f"loaded {name}"), cls())[1])
    def to(self, device):
        return self
    def infer(self, views, memory_efficient_inference, minibatch_size, use_amp, amp_dtype, apply_mask, mask_edges):
        n = len(views)
        return [
            {"camera_poses": poses(n, False)[k][None], "intrinsics": lens(1), "depth_z": np.full((1, 24, 32, 1), 2.0)}
            for k in range(n)
        ]
"""
VIPE = """
from common import *
def main(args, standalone_mode):
    command, video, out, folder, pipeline, name = args
    assert (command, out, pipeline, standalone_mode) == ("infer", "--output", "--pipeline", False)
    tell(f"{Path(video).name} by {name}")
    for kind, data in (("pose", poses(12, False)), ("intrinsics", np.tile([60.0, 60.0, 32.0, 24.0], (12, 1)))):
        place = Path(folder) / kind
        place.mkdir(parents=True)
        np.savez(place / "clip.npz", data=data, inds=np.arange(12))
"""
PYCOLMAP = """
from common import *
from types import SimpleNamespace
CameraMode = SimpleNamespace(SINGLE=1)
def set_random_seed(seed):
    assert seed == 0
def extract_features(database, images, camera_mode):
    global names
    names = sorted(path.name for path in Path(images).iterdir())
    tell(f"{len(names)} frames")
def match_sequential(database):
    pass
class Model:
    def __init__(self):
        self.chosen = names[1::3][::-1]
        self.images = {
            k: SimpleNamespace(name=name, camera_id=7, cam_from_world=lambda name=name: SimpleNamespace(
                matrix=lambda: np.c_[np.eye(3), [-0.1 * int(name[:-4]), 0, 0]]))
            for k, name in enumerate(self.chosen)
        }
        matrix = np.diag([2, 2, 1]) @ lens(1)[0]
        self.cameras = {7: SimpleNamespace(width=64, height=48, calibration_matrix=lambda: matrix)}
    def num_reg_images(self):
        return len(self.images)
    def reg_image_ids(self):
        return list(self.images)
def incremental_mapping(database, images, folder):
    return {} if os.environ.get("TROUBLE") else {0: Model()}
"""
PACKAGES = {
    "common.py": COMMON,
    "torch.py": TORCH,
    "depth_anything_3/api.py": DA3,
    "vggt/models/vggt.py": VGGT,
    "vggt/utils/load_fn.py": VGGT_LOAD,
    "vggt/utils/pose_enc.py": VGGT_POSES,
    "vggt_omega/models.py": OMEGA,
    "vggt_omega/utils/load_fn.py": OMEGA_LOAD,
    "vggt_omega/utils/pose_enc.py": OMEGA_POSES,
    "huggingface_hub.py": HUB,
    "mapanything/models.py": MAPANYTHING,
    "mapanything/utils/image.py": "load_images = list\n",
    "vipe/cli/main.py": VIPE,
    "pycolmap.py": PYCOLMAP,
}


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """An environment with all estimators, and what they were asked."""
    site = tmp_path / "site"
    for name, code in PACKAGES.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
        for folder in path.parents:
            if folder == site:
                break
            (folder / "__init__.py").touch()
    log = tmp_path / "seen.txt"
    log.touch()
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("SEEN", str(log))
    return lambda: log.read_text(encoding="utf-8").splitlines()


def poses(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["camera", "poses", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def clips(tmp_path: Path, make_clip: Make) -> Path:
    for k, name in enumerate(("mine/a", "mine/b")):
        make_clip(tmp_path / f"clips/{name}.mp4", seed=k)
    return tmp_path / "clips"


@pytest.mark.parametrize("name", ["da3", "vggt", "vggt-omega", "mapanything", "vipe"])
def test_a_network_is_loaded_once_for_all_clips(name: str, seen: Any, clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "poses"
    assert "2 made, 0 kept, 0 failed" in poses(clips, "--with", name, "--out", out, "--quiet")
    if name == "vipe":
        assert sorted(seen()) == ["a.mp4 by default", "b.mp4 by default"]
    else:
        assert seen() == [f"loaded {ESTIMATORS[name][0]}"]
    path = read_poses(out / "mine/a.npz")
    assert path.times.tolist() == list(range(12))
    assert path.c2w[:, 0, 3] == pytest.approx(np.arange(12) * 0.1, abs=1e-5), "the camera moves right"
    found = read_geometry(out / "mine/a.npz")
    assert found.maker == f"{name} {ESTIMATORS[name][0]}" and found.found == "the file"
    if name == "vipe":
        assert (found.width, found.height) == (64, 48) and found.depth is None
    else:
        assert (found.width, found.height) == (32, 24) and load_npz(out / "mine/a.npz")["depth"].dtype == np.float16
    assert (out / "mine/a.log").is_file()


@pytest.mark.long
def test_what_is_there_is_kept_and_what_changed_is_made_again(
    seen: Any, clips: Path, tmp_path: Path, make_clip: Make
) -> None:
    given = (clips, "--with", "da3", "--out", tmp_path / "poses", "--quiet")
    poses(*given)
    log = (tmp_path / "poses/mine/a.log").read_text()
    assert "estimating 12 frames" in log and "written below Python" in log, "what is printed goes to the clip's log"
    assert "0 made, 2 kept" in poses(*given) and len(seen()) == 1, "nothing is started for nothing"
    make_clip(clips / "mine/b.mp4", seed=9)
    assert "1 made, 1 kept" in poses(*given)
    assert "2 made, 0 kept" in poses(*given, "--model", "other/checkpoint") and seen()[-1] == "loaded other/checkpoint"
    assert "2 made, 0 kept" in poses(*given, "--model", "other/checkpoint", "--fresh")
    assert "2 made, 0 kept" in poses(*given, "--frames", 4)
    assert read_poses(tmp_path / "poses/mine/a.npz").times.tolist() == [0, 4, 7, 11]


def test_structure_from_motion_numbers_what_it_placed(
    seen: Any, clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "poses"
    poses(clips, "--with", "pycolmap", "--out", out, "--quiet")
    path = read_poses(out / "mine/a.npz")
    assert path.times.tolist() == [1, 4, 7, 10]
    assert path.c2w[:, 0, 3] == pytest.approx([0.1, 0.4, 0.7, 1.0], abs=1e-5)
    found = read_geometry(out / "mine/a.npz")
    assert (found.width, found.height) == (64, 48) and found.intrinsics[0, 0, 0] == pytest.approx(60)
    monkeypatch.setenv("TROUBLE", "none")
    assert "no structure was found" in poses(clips, "--with", "pycolmap", "--out", out, "--fresh", "--quiet", code=1)
    assert (out / "mine/a.npz").is_file(), "what was there stays"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("raise", "RuntimeError: out of memory really"),
        pytest.param("die", "da3 ended with 9: Killed by nobody", marks=pytest.mark.long),
        pytest.param("hang", "da3 was stopped after 1 s; --timeout allows more", marks=pytest.mark.long),
    ],
)
def test_one_clip_that_fails_is_one_sentence(
    trouble: str, said: str, seen: Any, clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        clips,
        "--with",
        "da3",
        "--out",
        tmp_path / "poses",
        "--quiet",
        "--timeout",
        1 if trouble == "hang" else 60,
    )
    monkeypatch.setenv("TROUBLE", trouble)
    printed = poses(*given, code=1)
    assert printed.count(said) == 2 and "0 made, 0 kept, 2 failed" in printed
    assert len(seen()) == (1 if trouble == "raise" else 2), "one that died is started again"
    assert not list((tmp_path / "poses").rglob("*.npz"))
    monkeypatch.delenv("TROUBLE")
    assert "2 made" in poses(*given)


@pytest.mark.long
def test_a_python_without_the_estimator(clips: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite, match=r"cannot load da3: ModuleNotFoundError: .*depth-anything-3"):
        poses(clips, "--with", "da3", "--out", tmp_path / "poses")
    with pytest.raises(UsageError, match="--python /no/python: it cannot be started"):
        poses(clips, "--with", "da3", "--out", tmp_path / "poses", "--python", "/no/python")
    with pytest.raises(MissingPrerequisite, match="cannot load vggt"):
        poses(clips, "--with", "vggt", "--out", tmp_path / "poses", "--python", "/bin/false")
    with pytest.raises(UsageError, match="unknown estimator 'droid'"):
        poses(clips, "--with", "droid", "--out", tmp_path / "poses")


SCRIPT = """
import sys, time, numpy as np
video, out, what = sys.argv[1:]
print("working on", video)
if what == "hang":
    time.sleep(60)
if what == "nothing":
    sys.exit(3)
poses = np.tile(np.eye(4), (12, 1, 1))
poses[:, 0, 3] = np.arange(12) / 10
lens = np.array([[30.0, 0, 16], [0, 30, 12], [0, 0, 1]])
np.savez(out, cam_c2w=poses, intrinsics=lens, depth_z=np.ones((12, 24, 32)))
"""


def test_a_command_of_the_users_own(clips: Path, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = f"{sys.executable} {script} {{video}} {{out}}"
    given = (clips, "--out", tmp_path / "poses", "--quiet", "--with")
    assert "2 made" in poses(*given, f"{command} fine")
    assert read_poses(tmp_path / "poses/mine/b.npz").c2w[-1, 0, 3] == pytest.approx(1.1, abs=1e-5)
    assert "working on" in (tmp_path / "poses/mine/b.log").read_text()
    assert "0 made, 2 kept" in poses(*given, f"{command} fine")
    assert "ended with 3 and wrote no usable file: working on" in poses(*given, f"{command} nothing", code=1)
    begun = time.monotonic()
    assert "stopped after 1 s" in poses(*given, f"{command} hang", "--timeout", 1, code=1)
    assert time.monotonic() - begun < 30
    with pytest.raises(UsageError, match=r"needs \{video\}"):
        poses(*given, "python mine.py {npz}")
    with pytest.raises(UsageError, match="cannot be started"):
        poses(*given, "/no/such/program {video} {npz}")


def test_odometry_needs_no_environment(tmp_path: Path, make_clip: Make) -> None:
    make_clip(tmp_path / "clips/mine/a.mp4", count=12, size=(96, 128))
    output = poses(tmp_path / "clips", "--with", "odometry", "--out", tmp_path / "poses", "--workers", 0, "--quiet")
    assert "1 made" in output
    path = read_poses(tmp_path / "poses/mine/a.npz")
    assert len(path) and str(load_npz(tmp_path / "poses/mine/a.npz")["producer"]) == "revisit odometry 1"


def test_a_folder_of_frames_and_a_broken_clip(seen: Any, clips: Path, tmp_path: Path) -> None:
    import cv2

    folder = clips / "mine/frames"
    folder.mkdir()
    for k in range(3):
        cv2.imwrite(str(folder / f"{k:03d}.png"), np.full((48, 64, 3), 60 * k, np.uint8))
    (clips / "mine/c.mp4").write_bytes(b"no video")
    output = poses(clips, "--with", "da3", "--out", tmp_path / "poses", "--quiet", code=1)
    assert "3 made, 0 kept, 1 failed" in output and "c@mine" in output
    assert len(read_poses(tmp_path / "poses/mine/frames.npz")) == 3


def test_the_driver_runs_alone() -> None:
    """It is started by another Python, so it may import nothing of ours."""
    source = Path(sys.modules["revisit.posing.programs"].DRIVER).read_text(encoding="utf-8")
    assert "import revisit" not in source and "from revisit" not in source
    done = subprocess.run(
        [sys.executable, "-I", sys.modules["revisit.posing.programs"].DRIVER, "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert all(name in done.stdout for name in ESTIMATORS)


def test_estimators_are_checked_when_they_are_named() -> None:
    with pytest.raises(UsageError, match="unknown pose convention 'up'"):
        Command("x {video} {npz}", "up")


@pytest.mark.long
def test_suites_find_what_was_made(seen: Any, tmp_path: Path) -> None:
    from revisit.core import Case
    from revisit.suites.mind.read import read as read_mind
    from revisit.suites.mind.world import render_mind

    truth, made = render_mind(
        tmp_path / "mind", size=(32, 56), context=2, future=6, clips=1, mirrors=(), perspectives=("1st_data",)
    )
    out = tmp_path / "poses"
    given = ("--with", "da3", "--out", out, "--option", f"gt={truth}", "--quiet")
    poses(made, *given)
    cases = [entry for entry in read_mind(made, gt=str(truth), poses=str(out)) if isinstance(entry, Case)]
    assert cases and all(case.artifacts["poses"].is_relative_to(out) for case in cases)
    with pytest.raises(UsageError, match="there is no such folder"):
        list(read_mind(made, gt=str(truth), poses="/no/folder"))


def test_memobench_looks_at_the_same_places(seen: Any, tmp_path: Path, make_clip: Make) -> None:
    from revisit.core import Case
    from revisit.suites.memobench.read import read as read_memo

    for name in ("Synthetic/Miami/Miami_001/video.mp4", "Real/012/video.mp4"):
        make_clip(tmp_path / "memo/mine" / name)
    out = tmp_path / "poses"
    poses(tmp_path / "memo", "--suite", "memobench", "--with", "da3", "--out", out, "--quiet")
    cases = [entry for entry in read_memo(tmp_path / "memo", poses=str(out)) if isinstance(entry, Case)]
    assert len(cases) == 2 and all("poses" in case.artifacts for case in cases), [case.id for case in cases]


# The real pycolmap


def _python_with_pycolmap() -> str | None:
    python = os.environ.get("PYCOLMAP_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", "import pycolmap"], capture_output=True, check=False)
    return python if done.returncode == 0 else None


@pytest.mark.slow
def test_the_real_pycolmap_finds_a_real_camera(tmp_path: Path, shared: Path) -> None:
    """Sixteen frames of RealEstate10K against the poses that came with them."""
    from dataclasses import replace

    from revisit.geometry.alignment import align, apply, match_by_time
    from revisit.geometry.trajectory_errors import absolute_errors, relative_errors, statistics

    python = _python_with_pycolmap()
    if python is None:
        pytest.skip("needs pycolmap: pip install pycolmap, or PYCOLMAP_PYTHON=<a Python that has it>")
    name = "re10k_0bf152ef84195293"
    task = PoseTask(name, Clip(shared / f"clips/{name}.mp4"), tmp_path / "poses.npz", tmp_path / "poses.log")
    done = update_pose_files([task], Driver("pycolmap", python, timeout=300))
    assert done.made == 1, done.failed
    found, truth = read_poses(task.place), read_poses(shared / f"clips/{name}.txt")
    truth = replace(truth, times=np.arange(len(truth)).astype(float), time_unit="frames")
    found, truth = match_by_time(found, truth, tolerance=0.01)
    assert len(found) >= 12
    placed = apply(align(found, truth, "sim3"), found)
    path = np.linalg.norm(np.diff(truth.c2w[:, :3, 3], axis=0), axis=1).sum()
    assert statistics(absolute_errors(placed, truth).translation).rmse < 0.02 * path
    assert statistics(relative_errors(placed, truth).rotation).mean < 0.5


def test_frames_are_those_of_the_clip(seen: Any, tmp_path: Path) -> None:
    """A stretch of a clip has the numbers that it has in the stretch."""
    frames = [np.full((48, 64, 3), 20 * k, np.uint8) for k in range(10)]
    encode_mp4(tmp_path / "clip.mp4", frames, fps=8)
    task = PoseTask("x", Clip(tmp_path / "clip.mp4", start=4, count=5), tmp_path / "poses.npz")
    assert update_pose_files([task], Driver("da3")).made == 1
    assert read_poses(task.place).times.tolist() == [0, 1, 2, 3, 4]


def test_odometry_needs_no_cache_that_can_be_written(
    tmp_path: Path, make_clip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "cache"))
    for fan_out in range(256):
        place = tmp_path / f"cache/evidence/{fan_out:02x}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()  # a file where a folder should be made
    task = PoseTask("a", Clip(make_clip(tmp_path / "a.mp4", size=(96, 128))), tmp_path / "a.npz")
    ((_, arrays),) = Odometry(workers=0).run([task])
    assert not isinstance(arrays, str), arrays
