"""Formats of camera paths: closed-form poses in, round trips, and a sentence for every malformed file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.geometry.formats import (
    format_colmap,
    format_kitti,
    format_tum,
    from_c2w_array,
    from_depth_anything,
    from_mapanything,
    from_unreal_rows,
    from_vipe,
    from_w2c_array,
    parse_colmap,
    parse_kitti,
    parse_realestate10k,
    parse_transforms,
    parse_tum,
    parse_unreal,
)
from revisit.geometry.poses import InvalidPoses, from_opengl, invert_rigid_poses, make_trajectory
from revisit.geometry.rotations import rotation_from_axis_angle, yaw_pitch_of_rotation
from tests.geometry.test_geometry_poses import pose, random_poses

steady = settings(derandomize=True, max_examples=15, deadline=None, database=None)
HALF = np.sqrt(0.5)


# Text


@steady
@given(st.integers(0, 2**32 - 1))
def test_written_files_are_read_back(seed):
    path = make_trajectory(random_poses(seed), np.arange(8) * 3 + 5)
    tum = parse_tum(format_tum(path))
    assert np.allclose(tum.c2w, path.c2w, atol=1e-11) and tum.times.tolist() == path.times.tolist()
    assert np.array_equal(parse_kitti(format_kitti(path)).c2w, path.c2w)
    colmap = parse_colmap(format_colmap(path))
    assert np.allclose(colmap.c2w, path.c2w, atol=1e-11) and colmap.times.tolist() == path.times.tolist()


def test_tum_is_camera_to_world_with_the_quaternion_ending_in_w():
    path = parse_tum(f"# a comment\n\n1.5 1 2 3 0 {HALF} 0 {HALF}\n")
    assert path.centres.tolist() == [[1, 2, 3]] and path.times.tolist() == [1.5]
    assert np.allclose(yaw_pitch_of_rotation(path.rotations), [[90], [0]])
    assert (path.time_unit, path.scale) == ("seconds", "unknown")


def test_kitti_is_camera_to_world_by_rows():
    path = parse_kitti("1 0 0 4 0 1 0 5 0 0 1 6\n")
    assert path.centres.tolist() == [[4, 5, 6]]
    assert (path.times.tolist(), path.time_unit, path.scale) == ([0], "frames", "unknown")


RE10K = "2000000 0.5 0.9 0.5 0.5 0 0 1 0 0 0 0 1 0 0 0 0 1 {z}"


@pytest.mark.parametrize("address", ["", "https://example.org/watch?v=1\n"])
def test_realestate10k_is_world_to_camera_with_normalised_intrinsics(address):
    path = parse_realestate10k(address + RE10K.format(z=3) + "\n")
    assert path.centres.tolist() == [[0, 0, -3]]
    assert path.times.tolist() == [2.0]
    assert path.intrinsics is not None and path.intrinsics_unit == "normalised"
    assert path.intrinsics[0].tolist() == [[0.5, 0, 0.5], [0, 0.9, 0.5], [0, 0, 1]]


def test_real_realestate10k_files_are_read(shared):
    files = sorted((shared / "clips").glob("re10k_*.txt"))
    assert files
    for file in files:
        path = parse_realestate10k(file.read_text())
        assert len(path) == len(file.read_text().splitlines()) - 1
        assert path.intrinsics is not None and np.allclose(path.intrinsics[:, :2, 2], 0.5)


COLMAP = f"""# Image list with two lines of data per image
# IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME
7 {HALF} 0 {HALF} 0 0 0 1 1 images/frame_000010.jpg

3 1 0 0 0 0 0 2 1 images/frame_000002.jpg

"""


def test_colmap_is_world_to_camera_sorted_and_numbered_by_name():
    path = parse_colmap(COLMAP)
    assert path.times.tolist() == [2, 10]
    assert np.allclose(path.centres, [[0, 0, -2], [1, 0, 0]])
    # The world turns right before the camera, so the camera has turned left.
    assert np.allclose(yaw_pitch_of_rotation(path.rotations)[0], [0, -90])


@pytest.mark.parametrize("points", ["", "\n12.5 7.25 -1 30.0 4.5 12", None], ids=["empty", "points", "missing"])
def test_colmap_lines_of_points_may_be_empty_full_or_missing(points):
    rows = [f"{k} 1 0 0 0 {k} 0 0 1 frame_{k}.jpg" for k in range(12)]
    text = "\n".join(rows if points is None else [row + (points or "\n") for row in rows])
    path = parse_colmap(text)
    assert path.centres[:, 0].tolist() == [-k for k in range(12)]


def test_colmap_names_may_have_spaces_and_no_numbers():
    text = "1 1 0 0 0 1 0 0 1 the second view.jpg\n\n2 1 0 0 0 2 0 0 1 a first.jpg\n\n"
    path = parse_colmap(text)
    assert path.times.tolist() == [0, 1] and path.centres[:, 0].tolist() == [-2, -1]


def test_colmap_names_may_be_numbers():
    path = parse_colmap("\n".join(f"{k} 1 0 0 0 {k} 0 0 1 {k:06d}" for k in (3, 1, 2)))
    assert path.times.tolist() == [1, 2, 3] and path.centres[:, 0].tolist() == [-1, -2, -3]


def test_a_trajectory_in_seconds_is_written_with_counted_images():
    path = make_trajectory(random_poses(0), np.arange(8) / 10, time_unit="seconds")
    assert parse_colmap(format_colmap(path)).times.tolist() == list(range(8))


@pytest.mark.parametrize(
    ("parse", "text", "sentence"),
    [
        (parse_tum, "", "the file has no poses; expected lines of timestamp tx"),
        (parse_tum, "# only comments\n", "the file has no poses"),
        (parse_tum, "# x\n1 2 3\n", "line 2 has 3 fields; expected 8: timestamp tx ty tz"),
        (parse_tum, "1 0 0 0 0 0 0 one", "line 1 has 'one' where a finite number is expected"),
        (parse_tum, "1 0 0 nan 0 0 0 1", "line 1 has 'nan' where a finite number"),
        (parse_tum, "1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 0\n", "line 2 has a quaternion of length 0; expected 1"),
        (parse_tum, "2 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n", "time runs backwards from pose 0"),
        (parse_kitti, "1 0 0 0 0 1 0 0 0 0 1", "line 1 has 11 fields; expected 12"),
        (parse_kitti, "2 0 0 0 0 2 0 0 0 0 2 0", "rotation of pose 0 is not orthonormal"),
        (parse_kitti, "-1 0 0 0 0 1 0 0 0 0 1 0", "pose 0 is mirrored"),
        (parse_realestate10k, "https://a/b\n1 2\n", "line 2 has 2 fields; expected 19"),
        (parse_realestate10k, "https://a/b\n", "the file has no poses"),
        (parse_realestate10k, RE10K.format(z="x"), "line 1 has 'x'"),
        (parse_realestate10k, "0 500 500 320 240 1 0 0 0 0 1 0 0 0 0 1 2 500 500", "not orthonormal"),
        (parse_colmap, "# nothing\n", "the file has no images"),
        (parse_colmap, "1 1 0 0 0 0 0 0 1\n", "line 1 has 9 fields; expected ID QW QX"),
        (parse_colmap, "1 1 0 0 0 a 0 0 1 x.jpg\n", "line 1 has 'a' where"),
        (parse_colmap, "1 5 0 0 0 0 0 0 1 x.jpg\n", "line 1 has a quaternion of length 5"),
        (parse_colmap, "1 1 0 0 0 0 0 0 1 x.jpg\n\n2 1 0 0 0 0 0 0 1 x.jpg\n", "'x.jpg' occurs twice"),
        (parse_transforms, "[1]", "the document is a list"),
        (parse_transforms, "{", "not a JSON document"),
        (parse_transforms, "[" * 100_000, "not a JSON document"),
        (parse_transforms, "{}", "no list of frames"),
        (parse_transforms, '{"frames": [{}]}', "frame 0 has no pose; expected a transform_matrix of 4 rows"),
        (parse_transforms, '{"frames": [{"transform_matrix": [["a",0,0,0],[],[],[]]}]}', "frame 0 has no pose"),
        (parse_unreal, "{}", "no list 'data'"),
        (parse_unreal, '{"data": []}', "no rows with poses"),
        (parse_unreal, '{"data": [{"time": 0}]}', "row 0 has no actor_pos; expected"),
    ],
)
def test_malformed_files_are_told_in_one_sentence(parse, text, sentence):
    with pytest.raises(InvalidPoses, match=sentence) as error:
        parse(text)
    assert "\n" not in str(error.value)


# JSON


def transforms(poses: np.ndarray, **extra: Any) -> dict[str, Any]:
    frames = [
        {"file_path": f"./images/{k}.png", "transform_matrix": matrix.tolist()}
        for k, matrix in enumerate(from_opengl(poses))
    ]
    return {**extra, "frames": frames}


def test_transforms_have_opengl_axes_and_are_sorted_by_file_path():
    poses = random_poses(0, 12)
    document = transforms(poses)
    document["frames"].reverse()
    path = parse_transforms(json.dumps(document))
    assert np.allclose(path.c2w, poses) and path.times.tolist() == list(range(12))
    assert path.intrinsics is None


def test_frames_without_a_path_keep_their_order():
    poses = random_poses(0)
    frames = [{"transform_matrix": matrix.tolist()} for matrix in from_opengl(poses)]
    assert np.allclose(parse_transforms(json.dumps({"frames": frames})).c2w, poses)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"fl_x": 500, "fl_y": 510, "cx": 320, "cy": 240}, [[500, 0, 320], [0, 510, 240], [0, 0, 1]]),
        ({"camera_angle_x": np.pi / 2, "w": 640, "h": 480}, [[320, 0, 320], [0, 320, 240], [0, 0, 1]]),
        ({"camera_angle_x": np.pi / 2}, None),
    ],
)
def test_intrinsics_of_transforms(extra, expected):
    path = parse_transforms(json.dumps(transforms(random_poses(0, 2), **extra)))
    if expected is None:
        assert path.intrinsics is None
    else:
        assert path.intrinsics is not None and np.allclose(path.intrinsics[1], expected)


def row(time: int, x: float = 0, yaw: float = 0, who: str = "actor") -> dict[str, Any]:
    return {
        "time": time,
        "ws": 1,
        f"{who}_pos": {"x": x, "y": 0.0, "z": 170.0},
        f"{who}_rpy": {"x": 0, "y": 0, "z": yaw},
    }


def test_unreal_rows_are_metres_in_opencv_axes():
    path = parse_unreal(json.dumps({"mark_time": 0, "data": [row(5), row(6, 150), row(7, 150, 30)]}))
    assert path.times.tolist() == [5, 6, 7] and path.scale == "metres"
    assert np.allclose(path.centres, [[0, -1.7, 0], [0, -1.7, 1.5], [0, -1.7, 1.5]])
    assert np.allclose(yaw_pitch_of_rotation(path.rotations)[0], [0, 0, 30])


def test_a_third_person_recording_is_read_from_its_camera():
    rows = [{**row(k, 100 * k), **row(k, 100 * k - 300, who="camera")} for k in range(3)]
    assert from_unreal_rows(rows).centres[0, 2] == -3
    del rows[1]["camera_pos"]
    with pytest.raises(InvalidPoses, match="row 1 has no camera_pos"):
        from_unreal_rows(rows)


@pytest.mark.parametrize("value", ["1", None, True, float("nan"), 10**400])
def test_unreal_numbers_must_be_numbers(value):
    rows = [row(0)]
    rows[0]["actor_pos"]["y"] = value
    with pytest.raises(InvalidPoses, match=r"row 0: actor_pos\.y is .*; expected a number"):
        from_unreal_rows(rows)


# Arrays


def test_bare_matrices():
    poses = random_poses(0)
    assert np.allclose(from_c2w_array(poses).c2w, poses)
    assert np.allclose(from_w2c_array(invert_rigid_poses(poses)[:, :3]).c2w, poses)


@pytest.mark.parametrize("shape", [(4,), (8, 4), (3, 3), (8, 3, 3)])
def test_intrinsics_come_in_four_shapes(shape):
    k = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
    values = np.array([500.0, 510, 320, 240]) if shape[-1] == 4 else k
    path = from_c2w_array(random_poses(0), intrinsics=np.broadcast_to(values, shape))
    assert path.intrinsics is not None and np.array_equal(path.intrinsics, np.tile(k, (8, 1, 1)))


def test_vipe_is_camera_to_world_with_frame_numbers():
    poses = random_poses(0)
    path = from_vipe({"data": poses.astype(np.float32), "inds": np.arange(8) * 2})
    assert np.allclose(path.c2w, poses, atol=1e-5) and path.times.tolist() == list(range(0, 16, 2))


def test_depth_anything_is_world_to_camera_unless_it_says_otherwise():
    poses = random_poses(0)
    k = np.tile(np.diag([400.0, 400, 1]), (8, 1, 1))
    arrays = {"extrinsics": invert_rigid_poses(poses)[:, :3], "intrinsics": k, "depth": np.ones((8, 2, 2))}
    path = from_depth_anything(arrays)
    assert np.allclose(path.c2w, poses) and path.intrinsics is not None
    assert np.allclose(from_depth_anything({**arrays, "convention": np.array("c2w")}).c2w, invert_rigid_poses(poses))
    converted = {"extrinsics": poses, "convention": np.array("c2w_opencv"), "frame_indices": np.arange(8) * 30}
    assert np.allclose(from_depth_anything(converted).c2w, poses)
    assert from_depth_anything(converted).times[-1] == 210
    with pytest.raises(InvalidPoses, match="expected 'w2c_opencv' or 'c2w_opencv'"):
        from_depth_anything({**converted, "convention": np.array("opengl")})


def test_mapanything_is_camera_to_world():
    poses = random_poses(0)
    path = from_mapanything({"cam_c2w": poses, "intrinsic": np.diag([400.0, 400, 1])})
    assert np.allclose(path.c2w, poses) and path.intrinsics is not None and path.intrinsics.shape == (8, 3, 3)


def test_malformed_arrays_are_told_in_one_sentence():
    poses = random_poses(0)
    with pytest.raises(InvalidPoses, match="the file has data, pose; a pose file of ViPE has an array called 'inds'"):
        from_vipe({"data": poses, "pose": poses})
    with pytest.raises(InvalidPoses, match="the file has no arrays; a pose file of Depth Anything 3"):
        from_depth_anything({})
    with pytest.raises(InvalidPoses, match=r"shape \(8, 3, 3\); expected \(N, 4, 4\)"):
        from_depth_anything({"extrinsics": poses[:, :3, :3]})
    with pytest.raises(InvalidPoses, match="not orthonormal"):
        from_w2c_array(poses * 2 - np.eye(4))
    with pytest.raises(InvalidPoses, match=r"8 poses need \(3, 3\) or \(8, 3, 3\)"):
        from_c2w_array(poses, intrinsics=np.zeros((5, 3, 3)))
    with pytest.raises(InvalidPoses, match=r"shape \(\); expected"):
        from_c2w_array(np.array(1.0))


def test_one_pose_says_the_same_in_every_format():
    """A camera two metres right of the origin, turned right by 30 degrees, in the words of seven formats."""
    expected = pose(rotation_from_axis_angle((0, 1, 0), 30), (2, 0, 0))
    half = np.radians(15)
    w2c = np.linalg.inv(expected)
    unreal = {**row(0, yaw=30), "actor_pos": {"x": 0, "y": 200, "z": 0}}
    found = [
        parse_tum(f"0 2 0 0 0 {np.sin(half)} 0 {np.cos(half)}"),
        parse_kitti(" ".join(map(str, expected[:3].ravel()))),
        parse_realestate10k(" ".join(map(str, [0, 1, 1, 0.5, 0.5, 0, 0, *w2c[:3].ravel()]))),
        parse_colmap(f"1 {np.cos(half)} 0 {-np.sin(half)} 0 {' '.join(map(str, w2c[:3, 3]))} 1 a.jpg"),
        parse_transforms(json.dumps(transforms(expected[None]))),
        from_unreal_rows([unreal]),
        from_depth_anything({"extrinsics": w2c[None]}),
    ]
    for path in found:
        assert np.allclose(path.c2w[0], expected, atol=1e-11)
