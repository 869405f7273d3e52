"""Geometry and network features of a clip, from files, for the metrics of MBench.

For users who run the networks themselves. Frames are numbered from 0, and `maker` names the network. The files are
described in docs/mbench-metrics.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from revisit.core import MediaError, observer
from revisit.geometry.poses import InvalidPoses
from revisit.media import array_shapes_in_npz, load_npz
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.observers import imports
from revisit.observers.geometry_file import geometry_from_arrays, read_geometry, require_poses_and_intrinsics
from revisit.suites.mbench.evidence import BodyFeatures, FaceFeatures, GeometryTrack, GramDistances, TextFeatures

FACES = (
    "an npz with vector (faces, channels), frame (of each face), looked (all frames asked), maker, and same (the least "
    "cosine of one person's faces, 0.15 where it is not given)"
)
BODIES = "an npz with vector (bodies, channels), face (row of the face file each belongs to) and maker"
GRAMS = (
    "an npz with frame, other, difference, norm and other_norm (pairs, layers), fold (whether a pair is out and back) "
    "and maker"
)
TEXT = "an npz with image (frames, channels), text (segments, channels), frame, segment (of each frame) and maker"


@observer(
    id="import.geometry", version=1, kind="file", makes=GeometryTrack, artifact="da3", sets=("lite",),
    made_by="revisit mbench prepare",
)  # fmt: skip
def geometry(path: Path, *, convention: str = "auto") -> GeometryTrack:
    """Poses and intrinsics of the clip from a file of Depth Anything 3 or the like; of depth only its medians."""
    track = read_geometry(path, convention)
    same = ("frame", "c2w", "intrinsics", "median_depth", "width", "height", "convention", "found", "refused", "maker")
    error_w2c, error_c2w = track.errors
    return GeometryTrack(**{name: getattr(track, name) for name in same}, error_w2c=error_w2c, error_c2w=error_c2w)


def count_poses_in_file(path: Path) -> int:
    """How many poses such a file has; MediaError where it cannot be used. Of depth only the shape is looked at."""
    shapes = array_shapes_in_npz(path)
    with raise_media_errors_naming_file(path):
        require_poses_and_intrinsics(shapes)
    arrays = load_npz(path, members=["extrinsics", "intrinsics", *({"size"} & shapes.keys())])
    depth = shapes.get("depth")
    if depth is not None:
        arrays.setdefault("size", np.array(depth[2:0:-1]))
    with raise_media_errors_naming_file(path):
        try:
            count = len(geometry_from_arrays(arrays, "w2c").c2w)
        except InvalidPoses as error:
            raise MediaError(str(error)) from error
        if depth is not None and depth[0] != count:
            raise MediaError(f"its depth is {depth} beside {count} poses; expected one map per pose")
    return count


@observer(id="import.faces", version=1, kind="file", makes=FaceFeatures, artifact="faces", sets=("lite",))
def faces(path: Path) -> FaceFeatures:
    """Descriptors of faces, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = imports.read_npz_with_frames(path, "vector", FACES)
        vector, frame = imports.finite_float_table(arrays, "vector", FACES), arrays["frame"]
        if (np.diff(frame) < 0).any():
            raise MediaError(f"its frame numbers fall; expected those of faces in their order: {FACES}")
        looked = imports.parse_frame_numbers(np.ravel(arrays.get("looked", frame)), FACES)
        same_face = np.ravel(arrays.get("same", FaceFeatures.same))
        if same_face.dtype.kind not in "iuf" or same_face.shape != (1,) or not -1 <= same_face[0] <= 1:
            raise MediaError(f"its `same` is {same_face[:3]}; expected one cosine: {FACES}")
        maker = imports.one_line_text_or_default(arrays, "maker")
        return FaceFeatures(np.union1d(looked, frame), frame, vector, maker, float(same_face[0]))


@observer(id="import.bodies", version=1, kind="file", makes=BodyFeatures, artifact="bodies", sets=("lite",))
def bodies(path: Path) -> BodyFeatures:
    """Descriptors of the bodies that belong to faces, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = imports.read_npz_arrays(path, ("vector", "face"), BODIES)
        face = imports.parse_frame_numbers(np.ravel(arrays["face"]), BODIES)
        vector = imports.finite_float_table(arrays, "vector", BODIES)
        if len(np.unique(face)) != len(face):
            raise MediaError(f"it has {len(vector)} bodies of {len(np.unique(face))} faces; each face has one body")
        return BodyFeatures(face, vector, imports.one_line_text_or_default(arrays, "maker"))


@observer(id="import.grams", version=1, kind="file", makes=GramDistances, artifact="grams", sets=("lite",))
def grams(path: Path) -> GramDistances:
    """Distances of Gram matrices, from an npz file."""
    with raise_media_errors_naming_file(path):
        names = ("difference", "norm", "other_norm")
        arrays = imports.read_npz_with_frames(path, "difference", GRAMS, "other", *names)
        difference, norm, other_norm = (imports.finite_float_table(arrays, name, GRAMS) for name in names)
        other = imports.parse_frame_numbers(np.ravel(arrays["other"]), GRAMS)
        fold = np.ravel(arrays.get("fold", np.zeros(len(other)))) > 0
        maker = imports.one_line_text_or_default(arrays, "maker")
        return GramDistances(arrays["frame"], other, fold, difference, norm, other_norm, maker)


@observer(
    id="import.clip_features", version=1, kind="file", makes=TextFeatures, artifact="clip_features", sets=("lite",)
)  # fmt: skip
def clip_features(path: Path) -> TextFeatures:
    """Descriptors of frames and captions in one space, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = imports.read_npz_with_frames(path, "image", TEXT, "text", "segment")
        image, text = (imports.finite_float_table(arrays, name, TEXT) for name in ("image", "text"))
        segment = imports.parse_frame_numbers(np.ravel(arrays["segment"]), TEXT)
        if segment.max(initial=-1) >= len(text):
            raise MediaError(f"it has segments up to {segment.max()} and {len(text)} captions; expected {TEXT}")
        cut = bool(np.any(arrays.get("cut", np.array(False))))
        return TextFeatures(
            arrays["frame"], segment, image, text, cut, imports.one_line_text_or_default(arrays, "maker")
        )
