"""Reading camera paths from disk: the format is recognised, and errors begin with the name of the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.core import MediaError, UsageError
from revisit.geometry.formats import format_colmap, format_kitti, format_tum
from revisit.geometry.poses import from_opengl, invert_rigid_poses, make_trajectory, to_unreal
from revisit.observers.poses import read_poses
from tests.geometry.test_geometry_poses import random_poses

POSES = random_poses(0)
PATH = make_trajectory(POSES)


def nerf() -> str:
    return json.dumps({"frames": [{"transform_matrix": matrix.tolist()} for matrix in from_opengl(POSES)]})


def unreal() -> str:
    rows = [
        {"time": k, "actor_pos": dict(zip("xyz", at, strict=True)), "actor_rpy": dict(zip("xyz", angles, strict=True))}
        for k, (at, angles) in enumerate(zip(*(part.tolist() for part in to_unreal(POSES)), strict=True))
    ]
    return json.dumps({"mark_time": 0, "data": rows})


def realestate10k() -> str:
    rows = [[k, 0.5, 0.5, 0.5, 0.5, 0, 0, *matrix[:3].ravel()] for k, matrix in enumerate(invert_rigid_poses(POSES))]
    return "https://example.org\n" + "\n".join(" ".join(map(str, numbers)) for numbers in rows)


@pytest.mark.parametrize(
    "text",
    [format_tum(PATH), format_kitti(PATH), format_colmap(PATH), realestate10k(), nerf(), unreal()],
    ids=["tum", "kitti", "colmap", "realestate10k", "transforms", "unreal"],
)
def test_text_is_recognised_by_its_content(tmp_path: Path, text: str):
    (tmp_path / "poses.txt").write_text(text)
    assert np.allclose(read_poses(tmp_path / "poses.txt").c2w, POSES, atol=1e-9)


@pytest.mark.parametrize(
    "arrays",
    [
        {"data": POSES, "inds": np.arange(8)},
        {"extrinsics": invert_rigid_poses(POSES)[:, :3], "intrinsics": np.tile(np.diag([9.0, 9, 1]), (8, 1, 1))},
        {"cam_c2w": POSES},
        {"camera_poses": POSES, "intrinsics": np.diag([9.0, 9, 1])},
        {"extrinsic": invert_rigid_poses(POSES)[None, :, :3], "intrinsic": np.tile(np.diag([9.0, 9, 1]), (1, 8, 1, 1))},
    ],
    ids=["vipe", "da3", "mapanything", "mapanything's own names", "vggt"],
)
def test_npz_is_recognised_by_its_arrays(tmp_path: Path, arrays: dict[str, np.ndarray]):
    np.savez(tmp_path / "poses.npz", **arrays)  # type: ignore[arg-type]
    assert np.allclose(read_poses(tmp_path / "poses.npz").c2w, POSES)


@pytest.mark.parametrize(
    ("name", "matrices"), [("extrinsics_opencv_w2c", invert_rigid_poses(POSES)), ("a.target_c2w", POSES)]
)
def test_npy_is_recognised_by_its_name(tmp_path: Path, name: str, matrices: np.ndarray):
    np.save(tmp_path / f"{name}.npy", matrices)
    assert np.allclose(read_poses(tmp_path / f"{name}.npy").c2w, POSES)


def test_a_format_can_be_named(tmp_path: Path):
    np.save(tmp_path / "camera.npy", invert_rigid_poses(POSES))
    assert np.allclose(read_poses(tmp_path / "camera.npy", "w2c").c2w, POSES)
    with pytest.raises(MediaError, match=r"camera\.npy: its arrays are called camera; it is unclear whether"):
        read_poses(tmp_path / "camera.npy")
    with pytest.raises(UsageError, match="choose one of auto, auto_c2w, tum"):
        read_poses(tmp_path / "camera.npy", "euroc")


def test_errors_begin_with_the_name_of_the_file(tmp_path: Path):
    (tmp_path / "short.txt").write_text("1 2 3\n")
    (tmp_path / "bad.txt").write_text("1 0 0 0 0 0 0 1\n1 0 0 0 0 0 1\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x01")
    np.savez(tmp_path / "other.npz", a=POSES, b=POSES)
    with pytest.raises(MediaError, match=r"short\.txt: its first data line has 3 fields"):
        read_poses(tmp_path / "short.txt")
    with pytest.raises(MediaError, match=r"bad\.txt: line 2 has 7 fields; expected 8"):
        read_poses(tmp_path / "bad.txt")
    with pytest.raises(MediaError, match=r"binary\.txt: it is not a UTF-8 text file"):
        read_poses(tmp_path / "binary.txt")
    with pytest.raises(MediaError, match=r"missing\.txt: it cannot be read \(No such file"):
        read_poses(tmp_path / "missing.txt")
    with pytest.raises(MediaError, match=r"other\.npz: its arrays are called a, b"):
        read_poses(tmp_path / "other.npz")
    with pytest.raises(MediaError, match=r"other\.npz: it has 2 arrays; expected one"):
        read_poses(tmp_path / "other.npz", "c2w")
