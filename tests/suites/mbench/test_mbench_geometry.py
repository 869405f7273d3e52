"""Spatial consistency of MBench against exact poses, an independent implementation, and real clips; the pose file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Case, Clip, InvalidEvidence, MediaError, Reason, Record, Score, Suite, Unscored
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.geometry.two_view import relative_pose
from revisit.media import encode_mp4, load_npz, save_npz
from revisit.observers.geometry_file import convert_geometry_file, read_geometry
from revisit.observers.sets import load_roles
from revisit.results.tables import standard_summary as summarise
from revisit.suites.mbench.evidence import GeometryTrack, PairMatches
from revisit.suites.mbench.imports import geometry
from revisit.suites.mbench.metrics.spatial import MatchedView, epipolar_errors, spatial_epipolar, spatial_reprojection
from revisit.suites.mbench.observers.returned_pairs import find_sift_points, match_sift_points, return_matches
from tests.looking import as_frames, look, read
from tests.mbench_world import HALF, SIZE, room, track, write_npz


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[GeometryTrack, PairMatches]:
    """The room's camera and the matches of its frames out and back."""
    path = write_npz(tmp_path_factory.mktemp("room") / "results.npz", "w2c_opencv")
    return geometry.fn(path), look(return_matches, as_frames(room().rgb), da3=path, annotations={"setting": "A"})


def score(metric: Callable[..., Score | Unscored], *evidence: Any, **params: Any) -> Score:
    made = metric(*evidence, **params)
    assert isinstance(made, Score), made
    return made


def test_exact_poses_leave_less_than_a_third_of_a_pixel(seen: tuple[GeometryTrack, PairMatches]) -> None:
    epipolar, reprojection = (score(metric, *seen) for metric in (spatial_epipolar, spatial_reprojection))
    assert seen[1].how == "fold" and epipolar.facts["pairs_with_too_few_matches"] == 0
    assert epipolar.raw is not None and reprojection.raw is not None
    assert epipolar.raw < 0.3 and reprojection.raw < 0.3
    assert epipolar.value > 0.94 and reprojection.value > 0.94
    assert reprojection.raw == pytest.approx(epipolar.raw / 2, rel=0.1), "half of it, by construction"
    assert epipolar.units is not None
    assert np.allclose(epipolar.units["value"], np.exp(-epipolar.units["raw"] / 5))
    assert epipolar.value == pytest.approx(epipolar.units["value"].mean())


def test_the_error_grows_with_a_wrong_tilt_as_the_closed_form_says(seen: tuple[GeometryTrack, PairMatches]) -> None:
    # The way back is a step to the side: epipolar lines run level, and a tilt moves a point by f tan(tilt) (1 + y²/f²).
    where, matches = seen
    lens = where.intrinsics[0]
    height = (matches.points[:, 3] - lens[1, 2]) / lens[1, 1]
    for tilt in (0.25, 0.5, 1.0, 2.0):
        poses = where.c2w.copy()
        poses[HALF + 1 :, :3, :3] = poses[HALF + 1 :, :3, :3] @ rotation_from_axis_angle((1, 0, 0), tilt)
        expected = room().focal_at_504 * np.tan(np.radians(tilt)) * (1 + np.square(height).mean())
        wrong = replace(where, c2w=poses)
        assert score(spatial_epipolar, wrong, matches).raw == pytest.approx(expected, rel=0.06)
        assert score(spatial_reprojection, wrong, matches).raw == pytest.approx(expected / 2, rel=0.06)


def test_a_wrong_lens_or_grid_shows(seen: tuple[GeometryTrack, PairMatches]) -> None:
    where, matches = seen
    poses = where.c2w.copy()
    poses[HALF + 1 :, :3, :3] = poses[HALF + 1 :, :3, :3] @ rotation_from_axis_angle((0, 1, 0.5), 3)
    right = replace(where, c2w=where.c2w)
    doubled = replace(where, intrinsics=where.intrinsics @ np.diag([2.0, 2, 1]), c2w=poses)
    assert score(spatial_epipolar, right, matches).value > score(spatial_epipolar, doubled, matches).value + 0.3


def test_mixed_up_poses_are_named_by_the_matches_alone() -> None:
    # No depth: only the pictures can tell. A camera off the origin, or its centre would be the same both ways.
    rng = np.random.default_rng(0)
    start = np.eye(4)
    start[:3, 3] = [1.0, 0.5, -2.0]
    other = start.copy()
    other[:3, :3] = rotation_from_axis_angle((0.2, 1, 0.1), 6)
    other[:3, 3] += [0.3, 0.05, 0.1]
    where = track(np.stack([start, other]))
    points = rng.uniform([-2, -1, 3], [2, 1, 8], (200, 3)) + start[:3, 3]
    pixels = [_project(where.intrinsics[0], pose, points) for pose in (start, other)]
    matches = _matches([(0, 1)], [np.hstack(pixels)])
    assert score(spatial_epipolar, where, matches).raw == pytest.approx(0, abs=1e-6)
    mixed = score(spatial_epipolar, replace(where, c2w=invert_rigid_poses(where.c2w), convention="c2w"), matches)
    assert mixed.raw is not None and mixed.raw > 2
    assert "read as world-to-camera" in mixed.facts["warning"] and mixed.facts["error_if_mixed_up"] < 1e-6


def test_the_oracle_agrees(shared: Path) -> None:
    given = dict(np.load(shared / "golden/geom_case.npz"))
    oracle = json.loads((shared / "golden/geom_oracle.json").read_text())
    second = np.eye(4)
    second[:3, :3], second[:3, 3] = given["R"], given["t"].ravel()
    where = track(
        np.stack([np.eye(4), invert_rigid_poses(second)]), intrinsics=np.tile(given["K"], (2, 1, 1)), width=504
    )
    matches = _matches([(0, 1)], [np.hstack([given["x1"], given["x2"]])])
    for metric, known in (
        (spatial_epipolar, oracle["sym_epi_mean"]),
        (spatial_reprojection, oracle["cv2_dlt_reproj_mean"]),
    ):
        made = score(metric, where, matches, rule="paper")
        assert made.raw == pytest.approx(known, abs=1e-9) and made.value == pytest.approx(np.exp(-known), abs=1e-9)


def test_the_rules_differ_in_pixels_trimming_and_tau() -> None:
    where, matches = _shifted(up=np.r_[np.full(90, 2.0), np.full(10, 40.0)])
    corrected, paper = (score(spatial_epipolar, where, matches, rule=rule) for rule in ("corrected", "paper"))
    assert corrected.raw == pytest.approx(2.0, rel=1e-3), "the worst tenth is left out"
    assert paper.raw == pytest.approx(0.9 * 2 + 0.1 * 40, rel=1e-3)
    assert corrected.value == pytest.approx(np.exp(-2 / 5), rel=1e-3) and paper.value < 0.01
    half = replace(where, width=252, height=140)
    assert score(spatial_epipolar, half, matches).raw == pytest.approx(4.0, rel=1e-3), "in pixels of 504"


def test_cameras_in_one_place_are_compared_by_where_a_turn_carries_points() -> None:
    pose = np.eye(4)
    pose[:3, :3] = rotation_from_axis_angle((0, 1, 0), 4)
    where = track(np.stack([np.eye(4), pose]))
    points = np.random.default_rng(1).uniform([-1, -1, 4], [1, 1, 9], (50, 3))
    table = np.hstack([_project(where.intrinsics[0], p, points) for p in (np.eye(4), pose)])
    exact = score(spatial_epipolar, where, _matches([(0, 1)], [table]))
    assert exact.raw == pytest.approx(0, abs=1e-9) and exact.facts["in_one_place"] == 1
    off = score(spatial_reprojection, where, _matches([(0, 1)], [table + np.array([0, 0, 0, 3.0])]))
    assert off.raw == pytest.approx(1.5, rel=0.05)


def test_too_little_to_see_is_unscored() -> None:
    where, matches = _shifted(up=np.zeros(10))
    made = spatial_epipolar(where, matches)
    assert isinstance(made, Unscored) and made.kind == "not_followed" and "at most 10" in made.sentence
    empty = _matches([], [])
    made = spatial_epipolar(where, empty)
    assert isinstance(made, Unscored) and made.kind == "no_return"
    refused = spatial_epipolar(replace(where, refused="nothing tells"), matches)
    assert isinstance(refused, Unscored) and refused.reason == Reason("unreadable", "nothing tells")
    with pytest.raises(InvalidEvidence, match="P \\+ 1"):
        spatial_epipolar(where, replace(matches, offsets=np.zeros(1, int)))
    with pytest.raises(InvalidEvidence, match="beyond the 2 poses"):
        spatial_epipolar(where, replace(matches, other_row=np.array([7])))


def test_a_blank_clip_has_no_matches(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "results.npz")
    blank = [np.full((*SIZE, 3), 90, np.uint8)] * len(room().rgb)
    found = look(return_matches, as_frames(blank), da3=path, annotations={})
    assert len(found.frame) and not len(found.points)
    assert isinstance(spatial_epipolar(geometry.fn(path), found), Unscored)


def test_strided_poses_and_segments(tmp_path: Path) -> None:
    numbers = np.arange(len(room().rgb)) * 2
    path = write_npz(tmp_path / "results.npz", frame_indices=numbers)
    doubled = [picture for picture in room().rgb for _ in (0, 1)][:-1]
    found = look(return_matches, as_frames(doubled), da3=path, annotations={"setting": "T", "segments": ["x"] * 4})
    assert found.how == "segments" and (found.frame % 2 == 0).all() and 0 < len(found.frame) <= 5
    assert score(spatial_epipolar, geometry.fn(path), found).value > 0.94
    with pytest.raises(MediaError, match="another clip"):
        look(return_matches, as_frames(room().rgb), da3=path, annotations={})


def test_the_engine_hands_the_file_to_observers_and_notices_when_it_changes(tmp_path: Path) -> None:
    pictures, poses = [room().rgb[k] for k in (0, 1, HALF, -2, -1)], room().film.poses[[0, 1, HALF, -2, -1]]
    encode_mp4(tmp_path / "a.mp4", pictures, fps=8)
    five = {"depth": room().depth[[0, 1, HALF, -2, -1]], "intrinsics": np.tile(room().film.K, (5, 1, 1))}
    file = tmp_path / "results.npz"
    mine = Case("s@m", "test", "m", "s", Clip(tmp_path / "a.mp4"), annotations={"setting": "A"})

    def run(artifacts: dict[str, Path]) -> Record:
        chosen = ("mb_spatial_epipolar",)
        cases = [replace(mine, artifacts=artifacts)]
        card: dict[str, Any] = {"protocols": {"p": {}}}
        suite = Suite("test", card, lambda source, roots: cases, lambda source: True, lambda: chosen, summarise)
        plan = make_plan(suite, tmp_path / "a.mp4", ObserverSet("lite", load_roles("lite")), metrics=chosen)
        (record,) = evaluate(plan, tmp_path / "run", workers=0).results.records_for(chosen[0])
        return record

    assert run({}).sentence == "no da3 file was given for this case; `revisit mbench prepare` makes one"
    write_npz(file, extrinsics=invert_rigid_poses(poses), **five)
    exact = run({"da3": file})
    assert exact.raw is not None and exact.raw < 1, "compression moves points a little"
    poses[3:, :3, :3] = poses[3:, :3, :3] @ rotation_from_axis_angle((1, 0, 0), 2)
    write_npz(file, "w2c_opencv", extrinsics=invert_rigid_poses(poses), **five)
    assert (run({"da3": file}).raw or 0) > 5
    write_npz(file, extrinsics=invert_rigid_poses(poses) * np.nan, **five)
    broken = run({"da3": file})
    assert broken.failed and broken.sentence.startswith("results.npz: pose 0 holds NaN")


# The file


@pytest.mark.parametrize("w2c", [True, False])
def test_the_depth_tells_the_convention(tmp_path: Path, w2c: bool) -> None:
    found = read_geometry(write_npz(tmp_path / "results.npz", w2c=w2c))
    right, wrong = found.errors if w2c else found.errors[::-1]
    assert found.convention == ("w2c" if w2c else "c2w") and right < 0.01 < 0.05 < wrong
    assert np.allclose(found.c2w, room().film.poses, atol=1e-6)


def test_a_file_that_contradicts_its_depth_is_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "results.npz", "c2w_opencv", w2c=True)
    with pytest.raises(MediaError, match="says that its poses are camera-to-world, but its depth says world-to-camera"):
        read_geometry(path)
    assert read_geometry(path, "c2w").found == "the user"


def test_a_camera_at_rest_leaves_the_convention_open(tmp_path: Path) -> None:
    still = np.tile(np.eye(4), (len(room().rgb), 1, 1))
    depth = np.tile(room().depth[:1], (len(still), 1, 1))
    path = write_npz(tmp_path / "results.npz", extrinsics=still, depth=depth)
    found = geometry.fn(path)
    assert found.refused.startswith("it is unclear whether the poses are world-to-camera or camera-to-world")
    told = write_npz(tmp_path / "told.npz", "w2c_opencv", extrinsics=still, depth=depth)
    assert geometry.fn(told).refused == "" and geometry.fn(told).found == "the file"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"intrinsics": None}, "it has no array 'intrinsics'"),
        ({"depth": np.ones((3, 10, 12))}, "9 poses need \\(9, H, W\\)"),
        ({"depth": np.full((9, *SIZE), np.nan)}, "the depth of row 0 holds NaN"),
        ({"depth": np.zeros((9, *SIZE))}, "no positive value"),
        ({"extrinsics": np.zeros((9, 3, 4))}, "not orthonormal"),
        ({"extrinsics": np.zeros((9, 2, 4))}, "expected \\(N, 4, 4\\)"),
        ({"extrinsics": np.full((9, 3, 4), np.nan)}, "NaN"),
        ({"frame_indices": np.arange(4)}, "frame_indices has 4 numbers, but there are 9 poses"),
        ({"convention": np.array("opengl")}, "expected 'w2c_opencv'"),
        ({"depth": None}, "neither depth nor 'size'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = write_npz(tmp_path / "results.npz", **change)
    with pytest.raises(MediaError, match=sentence):
        read_geometry(path)


def test_intrinsics_of_another_grid_are_named_or_scaled(tmp_path: Path) -> None:
    film = room().film
    large = np.tile(np.diag([4.0, 4, 1]) @ film.K, (len(film), 1, 1))
    large[:, :2, 2] += 1.5  # pixel centres are whole numbers on either grid
    with pytest.raises(MediaError, match=f"its depth is {SIZE[1]} x {SIZE[0]}: they are for different picture sizes"):
        read_geometry(write_npz(tmp_path / "results.npz", intrinsics=large))
    size = np.array([4 * SIZE[1], 4 * SIZE[0]])
    scaled = read_geometry(write_npz(tmp_path / "told.npz", intrinsics=large, size=size))
    assert np.allclose(scaled.intrinsics, film.K)


# Import


def _sources(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The room's geometry as each program writes it, and what has to be said beside."""
    film, depth = room().film, room().depth
    n, w2c = len(film), invert_rigid_poses(film.poses)
    lens = np.tile(film.K, (n, 1, 1))
    four = np.array([film.K[0, 0], film.K[1, 1], film.K[0, 2], film.K[1, 2]])
    write_npz(folder / "da3.npz", w2c=True)
    save_npz(
        folder / "vggt.npz", {"extrinsic": w2c[None, :, :3], "intrinsic": lens[None], "depth": depth[None, ..., None]}
    )
    save_npz(folder / "map.npz", {"camera_poses": film.poses, "intrinsics": lens, "depth_z": depth[..., None]})
    save_npz(folder / "vipe.npz", {"data": film.poses, "inds": np.arange(n)})
    save_npz(folder / "vipe_lens.npz", {"data": np.tile(four, (n, 1)), "inds": np.arange(n)})
    save_npz(folder / "depth.npz", {"depth": depth})
    (folder / "cameras.txt").write_text(f"# cameras\n1 PINHOLE {SIZE[1]} {SIZE[0]} {' '.join(map(str, four))}\n")
    (folder / "images.txt").write_text(_colmap(w2c))
    beside = {"depth": folder / "depth.npz"}
    return {
        "da3": (folder / "da3.npz", {}),
        "vggt": (folder / "vggt.npz", {}),
        "mapanything": (folder / "map.npz", {}),
        "vipe": (folder / "vipe.npz", {"intrinsics": str(folder / "vipe_lens.npz"), **beside}),
        "colmap": (folder / "images.txt", {"intrinsics": str(folder / "cameras.txt"), **beside}),
    }


def _colmap(w2c: np.ndarray) -> str:
    from revisit.geometry.rotations import quaternions_of_rotations

    lines = []
    for k, pose in enumerate(w2c):
        numbers = [*quaternions_of_rotations(pose[:3, :3]), *pose[:3, 3]]
        lines += [f"{k + 1} {' '.join(f'{v:.9f}' for v in numbers)} 1 {k:06d}.png", "0 0 -1"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("program", ["da3", "vggt", "mapanything", "vipe", "colmap"])
def test_every_program_becomes_the_same_file(tmp_path: Path, program: str) -> None:
    source, said = _sources(tmp_path)[program]
    told = convert_geometry_file(source, tmp_path / "out.npz", **said)
    arrays = load_npz(tmp_path / "out.npz")
    assert told["producer"] == program and arrays["depth"].dtype == np.float16
    assert str(arrays["convention"]) == "w2c_opencv" and "image" not in arrays
    found = read_geometry(tmp_path / "out.npz")
    assert np.allclose(found.c2w, room().film.poses, atol=1e-5) and np.allclose(found.intrinsics, room().film.K)
    assert found.depth is not None and np.allclose(found.depth, room().depth, rtol=1e-3)
    assert found.convention == "w2c" and found.found == "the file"


def test_the_command_imports_and_says_what_is_missing(tmp_path: Path, revisit: Callable[..., Any]) -> None:
    source, _ = _sources(tmp_path)["vipe"]
    out = tmp_path / "out.npz"
    missing = revisit("import", "poses", source, "--out", out, check=1)
    assert "has no intrinsics; give them with --intrinsics" in missing.stderr
    lens = "250,250,151.5,87.5"
    done = revisit(
        "import", "poses", source, "--out", out, "--intrinsics", lens, "--size", f"{SIZE[1]}x{SIZE[0]}", "--json"
    )
    assert json.loads(done.stdout)["poses"] == len(room().rgb)
    assert "exists; pass --force" in revisit("import", "poses", source, "--out", out, check=2).stderr


# Real clips


@pytest.mark.parametrize("name", ["re10k_0bf152ef84195293", "re10k_0c9b371cc6225682", "re10k_0f68374b76390082"])
def test_real_estate_poses_fit_their_clips(tmp_path: Path, shared: Path, name: str) -> None:
    convert_geometry_file(shared / f"clips/{name}.txt", tmp_path / "out.npz", size=(384, 256))
    where = geometry.fn(tmp_path / "out.npz")
    frames, _ = read(shared / f"clips/{name}.mp4", range(0, 16, 3))
    points = [find_sift_points(frame.rgb.mean(axis=2).astype(np.uint8)) for frame in frames]
    pairs = [(3 * k, 3 * k + 3) for k in range(5)]
    matches = _matches(pairs, [match_sift_points(points[k], points[k + 1]) for k in range(5)])
    medians = [np.median(epipolar_errors(view)) for view in _views(where, matches)]
    assert 0.2 <= np.median(medians) <= 1.3, "pixels at 384 x 256, as the clips' description says"
    mixed = score(spatial_epipolar, replace(where, c2w=invert_rigid_poses(where.c2w)), matches)
    assert "the pose convention seems wrong" in mixed.facts["warning"]


def test_a_real_loop_with_depth(tmp_path: Path, shared: Path) -> None:
    import cv2

    folder = shared / "clips/7scenes_redkitchen_return"
    given = dict(np.load(folder / "cameras.npz"))
    rows = np.array([0, 3, 6, 20, 40, 60, 63, 90, 114, 117, 120])
    raw = np.stack([cv2.imread(str(folder / f"{k:04d}.depth.png"), -1)[::2, ::2] for k in rows]).astype(np.float32)
    depth = np.where(raw < 65535, raw, 0) / 1000
    lens = np.tile(given["K"], (len(rows), 1, 1))
    arrays = {"extrinsics": given["c2w"][rows], "intrinsics": lens, "depth": depth, "size": np.array([640, 480])}
    save_npz(tmp_path / "results.npz", arrays)
    where = geometry.fn(tmp_path / "results.npz")
    assert where.convention == "c2w" and where.error_c2w < 0.02 < 0.1 < where.error_w2c
    save_npz(tmp_path / "wrong.npz", {**arrays, "convention": np.array("w2c_opencv")})
    with pytest.raises(MediaError, match="its depth says camera-to-world"):
        read_geometry(tmp_path / "wrong.npz")
    # Colour is not registered to depth, by 2 to 7 pixels of 640; poses and lens are those of depth.
    used = [(0, 1), (5, 6), (0, 9)]
    points = {k: find_sift_points(cv2.imread(str(folder / f"{rows[k]:04d}.jpg"), 0)) for k in sorted({*sum(used, ())})}
    full = replace(where, intrinsics=lens, width=640, height=480)
    matches = _matches(used, [match_sift_points(points[i], points[j]) for i, j in used])
    medians = np.array([np.median(epipolar_errors(view)) for view in _views(full, matches)])
    mixed = np.array([np.median(epipolar_errors(view)) for view in _views(full, matches, mixed=True)])
    assert (medians < 7).all() and (mixed > 3 * medians).all()


# Helpers


def _project(lens: np.ndarray, c2w: np.ndarray, points: np.ndarray) -> np.ndarray:
    seen = (points - c2w[:3, 3]) @ c2w[:3, :3] @ lens.T
    return seen[:, :2] / seen[:, 2:]


def _matches(pairs: list[tuple[int, int]], tables: list[np.ndarray]) -> PairMatches:
    early, late = (np.array([pair[k] for pair in pairs], dtype=int) for k in (0, 1))
    return PairMatches(
        early, late, early, late, np.zeros(len(pairs)), np.cumsum([0, *(len(table) for table in tables)]),
        np.concatenate([np.zeros((0, 4)), *tables]), "fold", "", "a test",
    )  # fmt: skip


def _shifted(up: np.ndarray) -> tuple[GeometryTrack, PairMatches]:
    """Two level cameras side by side, and matches that are off by so many pixels vertically."""
    second = np.eye(4)
    second[0, 3] = 0.5
    where = track(np.stack([np.eye(4), second]))
    points = np.random.default_rng(2).uniform([-1, -0.5, 4], [1, 0.5, 9], (len(up), 3))
    table = np.hstack([_project(where.intrinsics[0], pose, points) for pose in where.c2w])
    table[:, 3] += up
    return where, _matches([(0, 1)], [table])


def _views(where: GeometryTrack, matches: PairMatches, mixed: bool = False) -> list[MatchedView]:
    from revisit.suites.mbench.metrics.spatial import matched_views_of_pairs

    return matched_views_of_pairs(where, matches, invert_rigid_poses(where.c2w) if mixed else where.c2w)


def test_relative_poses_of_the_room_are_a_step_to_the_side() -> None:
    rotation, translation = relative_pose(room().film.poses[0], room().film.poses[-1])
    assert np.allclose(rotation, np.eye(3), atol=1e-9) and translation == pytest.approx([-0.1, 0, 0], abs=1e-9)
