"""Faces: detectors, alignment, descriptors, bodies, and people kept apart through real clips."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import MissingPrerequisite, Score, Unscored
from revisit.networks import faces as shapes
from revisit.suites.mbench.evidence import FaceFeatures, FoldPairs
from revisit.suites.mbench.metrics.entities import assign_face_tracks, human_appearance, human_identity
from revisit.suites.mbench.observers import people
from tests.conftest import OFFLINE, Cli
from tests.looking import as_frames, driven
from tests.mbench import add_row, row, write_sample

NO_PAIRS = FoldPairs(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 100, "symmetric", "")
SDIST = "face_recognition-1.3.0"
PHOTOS = {
    "obama.jpg": "0930e3aa8cae5920329c0c8cbc6a2ab70f47b0e67b432875beaa95cbf7e741f6",
    "obama2.jpg": "a7efcc907375274796f39646510704aa86672d59f6d5469d69af3c85590976a6",
    "obama3.jpg": "76ac6bf97c36dc2da0ad16a537d6a5ac1b10f48d49aac29a0cca9a17cdbc3ca3",
    "biden.jpg": "3c17508bb91554c637a2eabddfae790e5bb1caba93130814fc2ac50be9760c4c",
}


@pytest.fixture(autouse=True)
def own_faces() -> None:
    """Tests differ in their weights, so none may find the faces of another."""
    people._known.clear()


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Three photos of one man and one of another, out of an archive of a package registry, by digest."""
    import cv2
    import yaml

    from revisit.weights.pull import pull_weights

    root = tmp_path_factory.mktemp("photos")
    lock = {
        "version": 1,
        "weights": {
            "photos": {
                "title": "photos of two people",
                "licence": "MIT",
                "files": [{"name": name, "sha256": digest} for name, digest in PHOTOS.items()],
                "sources": [
                    {
                        "pypi": "face_recognition==1.3.0",
                        "archive": f"{SDIST}.tar.gz",
                        "sha256": "5e5efdd1686aa566af0d3cc1313b131e4b197657a8ffd03669e6d3fad92705ec",
                        "size": 3182249,
                        "take": {name: f"{SDIST}/tests/test_images/{name}" for name in PHOTOS},
                    }
                ],
            }
        },
    }
    (root / "lock.yaml").write_text(yaml.safe_dump(lock))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVISIT_WEIGHTS", str(root))
        patch.setenv("REVISIT_WEIGHTS_LOCK", str(root / "lock.yaml"))
        failed = [one.said for one in pull_weights(["photos"], offline=OFFLINE) if one.state == "failed"]
    if failed:
        pytest.skip(f"needs four photos from a package registry, which does not give them: {failed[0]}")
    found = {}
    for name in PHOTOS:
        picture = cv2.imread(str(root / "photos" / name))
        assert picture is not None
        scale = 720 / max(picture.shape[:2])  # as large as a frame of a clip
        small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        found[Path(name).stem] = np.ascontiguousarray(small[..., ::-1])
    return found


@pytest.fixture(scope="session")
def astronaut() -> np.ndarray:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's photos")
    return np.asarray(data.astronaut())


def mtcnn_stages(folder: Path) -> tuple[Path, Path, Path]:
    here = folder / "mtcnn"
    return here / "pnet.onnx", here / "rnet.onnx", here / "onet.onnx"


def surest(box: Any, score: Any, most: float, of_smaller: bool = False) -> list[int]:
    """Rows of boxes without those that overlap a surer one, one by one."""

    def overlap(a: np.ndarray, b: np.ndarray) -> float:
        sides = [min(a[2 + k], b[2 + k]) - max(a[k], b[k]) for k in range(2)]
        common = max(sides[0], 0) * max(sides[1], 0)
        areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
        return float(common / (min(areas) if of_smaller else sum(areas) - common))

    kept: list[int] = []
    for k in sorted(range(len(box)), key=lambda k: (-score[k], k)):
        if all(overlap(box[k], box[j]) <= most for j in kept):
            kept.append(k)
    return kept


# Alignment and overlaps


def test_the_similarity_is_that_of_scikit_image() -> None:
    transform = pytest.importorskip("skimage.transform")
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.normal(0, 30, (5, 2)) + rng.uniform(0, 500, 2)
        ours = shapes.fit_similarity_transform(points, shapes.TEMPLATE)
        if hasattr(transform.SimilarityTransform, "from_estimate"):
            theirs = transform.SimilarityTransform.from_estimate(points, shapes.TEMPLATE)
        else:
            theirs = transform.SimilarityTransform()
            theirs.estimate(points, shapes.TEMPLATE)
        turn = ours[:, :2] / math.sqrt(np.linalg.det(ours[:, :2]))
        assert np.linalg.det(turn) == pytest.approx(1) and turn @ turn.T == pytest.approx(np.eye(2))
        assert np.abs(ours - theirs.params[:2]).max() < 1e-6


def test_a_face_that_lies_at_its_place_is_not_moved() -> None:
    picture = np.random.default_rng(1).integers(0, 255, (112, 112, 3), dtype=np.uint8)
    assert np.abs(shapes.align_face(picture, shapes.TEMPLATE).astype(int) - picture).max() <= 1
    turned = np.rot90(picture).copy()  # (x, y) -> (y, 111 - x)
    points = np.stack([shapes.TEMPLATE[:, 1], 111 - shapes.TEMPLATE[:, 0]], axis=1)
    assert np.abs(shapes.align_face(turned, points).astype(int) - picture).max() <= 1


@pytest.mark.parametrize("of_smaller", [False, True])
def test_of_boxes_that_overlap_the_surest_stays(of_smaller: bool) -> None:
    rng = np.random.default_rng(2)
    corner = rng.uniform(0, 60, (60, 2))
    box, score = np.hstack([corner, corner + rng.uniform(10, 40, (60, 2))]), rng.uniform(size=60).round(1)

    kept = surest(box, score, 0.4, of_smaller)
    assert (
        shapes.non_maximum_suppression(box, score, 0.4, relative_to_smaller=of_smaller).tolist() == kept
        and 5 < len(kept) < 50
    )
    assert len(shapes.non_maximum_suppression(np.zeros((0, 4)), np.zeros(0), 0.5)) == 0


# MTCNN and SFace, with their real weights


def test_the_pyramid_begins_at_the_smallest_face_and_ends_at_the_picture() -> None:
    from revisit.networks import mtcnn

    found = mtcnn.pyramid_scales(360, 640, 24)
    assert found[0] == 0.5 and found[-1] * 360 >= 12 > found[-1] * mtcnn.STEP * 360
    assert mtcnn.pyramid_scales(20, 20, 24) == []


def test_mtcnn_finds_the_face_at_any_size_and_mirrored(small_weights: Path, astronaut: np.ndarray) -> None:
    import cv2

    from revisit.networks import mtcnn, sface

    stages, embedder = mtcnn_stages(small_weights), small_weights / "sface/sface.onnx"
    found = mtcnn.detect_faces(stages, astronaut, min_face_px=24)
    assert len(found) == 1 and found.score[0] > 0.99
    by_eye = [[202, 101], [247, 103], [225, 129], [202, 139], [244, 141]]
    assert np.abs(found.points[0] - by_eye).max() < 4

    def described(picture: np.ndarray) -> tuple[np.ndarray, float, shapes.Faces]:
        seen = mtcnn.detect_faces(stages, picture, min_face_px=24)
        assert len(seen) == 1
        vector, length = sface.unit_face_embeddings_and_norms(embedder, [shapes.align_face(picture, seen.points[0])])
        assert vector.dtype == np.float32 and np.linalg.norm(vector) == pytest.approx(1)
        return vector[0], float(length[0]), seen

    first, clear, _ = described(astronaut)
    mirrored, _, seen = described(np.ascontiguousarray(astronaut[:, ::-1]))
    order = found.points[0][[1, 0, 2, 4, 3]]
    assert np.abs(seen.points[0] - np.stack([511 - order[:, 0], order[:, 1]], axis=1)).max() < 5
    small, _, _ = described(cv2.resize(astronaut, (200, 200), interpolation=cv2.INTER_AREA))
    soft, less, _ = described(cv2.GaussianBlur(astronaut, (0, 0), 3))
    softer, least, _ = described(cv2.GaussianBlur(astronaut, (0, 0), 5))
    cosines = [float(first @ other) for other in (first, small, soft, softer)]
    assert first @ mirrored > 0.75 and cosines[1] > 0.9 and cosines == sorted(cosines, reverse=True)
    assert clear > less > least, "the length of a descriptor falls with what can be seen of the face"


def test_photos_without_people_have_no_face(small_weights: Path) -> None:
    data = pytest.importorskip("skimage.data")
    from revisit.suites.mbench.observers.people import find_faces_by_mtcnn

    for picture in (data.coffee(), data.chelsea(), data.rocket(), np.dstack([data.brick()] * 3)):
        assert len(find_faces_by_mtcnn(np.ascontiguousarray(picture)).box) == 0


def test_descriptors_keep_one_man_together_and_two_apart(
    small_weights: Path, photos: dict[str, np.ndarray], astronaut: np.ndarray
) -> None:
    from revisit.suites.mbench.observers.people import SAME, find_faces_by_mtcnn

    found = {name: find_faces_by_mtcnn(picture).vector for name, picture in {**photos, "astronaut": astronaut}.items()}
    assert all(len(vector) == 1 for vector in found.values()), "one face in each photo"
    one = [found[name][0] for name in ("obama", "obama2", "obama3")]
    same = [float(one[i] @ one[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    others = [found["biden"][0], found["astronaut"][0]]
    different = [float(a @ b) for a in one for b in others] + [float(others[0] @ others[1])]
    assert min(same) > 0.65 > SAME > max(different), (same, different)


def test_what_is_no_such_network_is_named(small_weights: Path, tmp_path: Path) -> None:
    from revisit.networks import mtcnn, sface

    swapped = mtcnn_stages(small_weights)
    with pytest.raises(MissingPrerequisite, match=r"onet\.onnx: this is a different network"):
        mtcnn.detect_faces((swapped[0], swapped[2], swapped[1]), np.zeros((48, 48, 3), np.uint8), min_face_px=24)
    with pytest.raises(MissingPrerequisite, match=r"pnet\.onnx: this is a different network: its inputs"):
        sface.unit_face_embeddings_and_norms(swapped[0], [])
    (tmp_path / "torn.onnx").write_bytes(swapped[2].read_bytes()[:5000])
    with pytest.raises(MissingPrerequisite, match=r"torn\.onnx: onnxruntime cannot read this file"):
        sface.unit_face_embeddings_and_norms(tmp_path / "torn.onnx", [])


# Which frames, and bodies


def test_frames_are_spread_over_the_clip_or_over_each_part() -> None:
    chosen = people.frames_searched_for_faces(275, 30, {})
    assert len(chosen) == 32 and chosen[0] == 0 and chosen[-1] == 274 and set(np.diff(chosen)) == {8, 9}
    parts = people.frames_searched_for_faces(400, 24, {"setting": "T", "segments": ["a", "b", "c", "d"]})
    assert len(parts) == 128 and all(((parts >= k) & (parts < k + 100)).sum() == 32 for k in range(0, 400, 100))
    assert people.frames_searched_for_faces(5, 24, {"setting": "A"}).tolist() == [0, 1, 2, 3, 4]
    assert len(people.frames_searched_for_faces(0, 24, {})) == 0


def test_the_body_lies_below_the_face() -> None:
    face = np.array([[100.0, 50, 120, 80], [0, 300, 40, 350]])
    box = people.body_boxes_of_faces(face, 360, 640)
    assert box.tolist() == [[80, 50, 140, 260], [0, 300, 80, 360]]
    assert people.face_and_chest_points(face, box, 360, 640)[0] == [(110 / 640, 65 / 360), (110 / 640, 116 / 360)]
    assert people.face_and_chest_points(face, box, 360, 640)[1][1][1] == pytest.approx(355 / 360), (
        "no chest in the frame"
    )
    mask = np.zeros((360, 640), bool)
    mask[60:200, 90:130] = True
    assert people.is_body_mask(mask, face[0]) and not people.is_body_mask(mask, face[1])
    assert not people.is_body_mask(mask & (np.arange(360)[:, None] > 90), face[0]), "somebody without this face"
    mask[300:, 300:] = True
    found = people.body_masks_by_face(np.stack([mask, mask]), face, box)
    assert list(found) == [0] and found[0].sum() == 140 * 40, "what lies outside of the box is not of this body"


def test_bodies_name_the_rows_of_their_faces(small_weights: Path) -> None:
    """Both observers number the faces of all frames alike, also of frames whose bodies are not looked at."""
    pictures = [np.full((40, 40, 3), k, np.uint8) for k in range(4)]
    calls: list[int] = []

    def find(picture: np.ndarray) -> people.DetectedFaces:
        calls.append(int(picture[0, 0, 0]))
        count = int(picture[0, 0, 0])
        return people.DetectedFaces(np.zeros((count, 4)), np.full((count, 3), count, np.float32))

    def describe(picture: np.ndarray, face: np.ndarray) -> tuple[list[int], np.ndarray]:
        which = list(range(1, len(face)))
        return which, np.full((len(which), 5), len(face), np.float32)

    frames = as_frames(pictures, 30)
    seen = driven(people.collect_face_descriptors(find, 3, "a net", 0.4), frames)
    assert seen.frame.tolist() == [1, 2, 2, 3, 3, 3] and seen.index.tolist() == [0, 1, 2, 3] and seen.same == 0.4
    bodies = driven(people.collect_body_descriptors(find, describe, "another", np.array([0, 3])), frames)
    assert bodies.face.tolist() == [4, 5] and bodies.vector.shape == (2, 5)
    assert calls == [0, 1, 2, 3], "each frame is searched once"
    nothing = driven(people.collect_body_descriptors(find, describe, "another", np.zeros(0, int)), frames[:1])
    assert nothing.vector.shape == (0, 0)


def test_a_clip_without_faces_is_unscored_with_a_sentence(small_weights: Path) -> None:
    from revisit.suites.mbench.observers.people import bodies_by_mobile_sam, faces_by_mtcnn

    wall = np.random.default_rng(0).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    shown = [np.roll(wall, k, 1) for k in range(3)]
    seen = faces_by_mtcnn(shown)
    assert isinstance(seen, FaceFeatures) and seen.vector.shape == (0, 128)
    none = bodies_by_mobile_sam(shown)
    identity, appearance = human_identity.fn(seen, NO_PAIRS), human_appearance.fn(seen, none, NO_PAIRS)
    assert isinstance(identity, Unscored) and identity.kind == "not_seen"
    assert isinstance(appearance, Unscored) and appearance.reason == identity.reason


def test_looks_of_bodies_are_unit_vectors_of_cloth_and_kind(small_weights: Path) -> None:
    picture = np.random.default_rng(1).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    mask = np.zeros((96, 128), bool)
    mask[10:80, 30:70] = True
    [seen] = people.describe_masked_regions(picture, [mask])
    assert seen.shape == (people.CHANNELS,) and np.linalg.norm(seen) == pytest.approx(1)
    assert np.linalg.norm(seen[:24]) == pytest.approx(np.sqrt(0.5)), "both parts count alike"


@pytest.mark.long
def test_a_body_is_the_person_below_the_face(small_weights: Path, astronaut: np.ndarray) -> None:
    seen = people.find_faces_by_mtcnn(astronaut)
    mirrored = np.ascontiguousarray(astronaut[:, ::-1])
    which, first = people.describe_bodies_by_mobile_sam(astronaut, seen.box)
    _, mirror = people.describe_bodies_by_mobile_sam(mirrored, people.find_faces_by_mtcnn(mirrored).box)
    assert which == [0] and first.shape == (1, people.CHANNELS) and np.linalg.norm(first) == pytest.approx(1)

    mask = np.zeros(astronaut.shape[:2], bool)
    mask[60:500, 100:380] = True
    shown = {
        "darker": (astronaut * 0.8).astype(np.uint8),
        "blue": np.where(np.arange(512)[:, None, None] > 190, astronaut[..., ::-1], astronaut),  # of an orange suit
        "grey": np.where(np.arange(512)[:, None, None] > 190, astronaut.mean(-1, keepdims=True), astronaut),
    }
    [as_is] = people.describe_masked_regions(astronaut, [mask])
    other = {
        name: float(people.describe_masked_regions(picture.astype(np.uint8), [mask])[0] @ as_is)
        for name, picture in shown.items()
    }
    assert min(float(first[0] @ mirror[0]), other["darker"]) > 0.93 > 0.9 > max(other["blue"], other["grey"]), other


# The papers' networks, from files of the published interface


def random_scrfd(path: Path) -> None:
    """A network with the inputs and outputs of det_10g, and random convolutions inside."""
    onnx = pytest.importorskip("onnx", reason="needs onnx to write a network")
    rng = np.random.default_rng(0)
    nodes, outputs, tensors = [], [], []
    for part, (kind, width) in enumerate((("score", 1), ("box", 4), ("points", 10))):
        for stride in (8, 16, 32):
            name = f"{kind}{stride}"
            weight = rng.normal(0, (1.0, 0.2, 0.2)[part] / stride, (2 * width, 3, stride, stride)).astype(np.float32)
            bias = np.full(2 * width, (-1.7, 2.0, 0.0)[part], np.float32)  # few faces, boxes with sides above 0
            tensors += [
                onnx.numpy_helper.from_array(weight, name + "w"),
                onnx.numpy_helper.from_array(bias, name + "b"),
            ]
            tensors.append(onnx.numpy_helper.from_array(np.array([-1, width], np.int64), name + "s"))
            make = onnx.helper.make_node
            nodes += [
                make("Conv", ["input.1", name + "w", name + "b"], [name + "c"], strides=[stride, stride]),
                make("Transpose", [name + "c"], [name + "t"], perm=[0, 2, 3, 1]),
                make("Reshape", [name + "t", name + "s"], [name + "r"]),
                make("Sigmoid" if kind == "score" else "Identity", [name + "r"], [name]),
            ]
            outputs.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [f"n{stride}", width]))
    write_graph(path, nodes, [1, 3, "height", "width"], outputs, tensors)


def random_arcface(path: Path, width: int = 512) -> np.ndarray:
    """A network with the inputs and outputs of w600k_r50: means of 28 x 28 cells, and one random layer."""
    onnx = pytest.importorskip("onnx", reason="needs onnx to write a network")
    weight = np.random.default_rng(1).normal(size=(48, width)).astype(np.float32)
    make = onnx.helper.make_node
    nodes = [
        make("AveragePool", ["input.1"], ["pooled"], kernel_shape=[28, 28], strides=[28, 28]),
        make("Flatten", ["pooled"], ["flat"]),
        make("MatMul", ["flat", "weight"], ["683"]),
    ]
    output = onnx.helper.make_tensor_value_info("683", onnx.TensorProto.FLOAT, ["n", width])
    write_graph(path, nodes, ["n", 3, 112, 112], [output], [onnx.numpy_helper.from_array(weight, "weight")])
    return weight


def write_graph(path: Path, nodes: list[Any], shape: list[Any], outputs: list[Any], tensors: list[Any]) -> None:
    import onnx

    source = onnx.helper.make_tensor_value_info("input.1", onnx.TensorProto.FLOAT, shape)
    graph = onnx.helper.make_graph(nodes, "random", [source], outputs, tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 8
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


@pytest.fixture
def buffalo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both networks of the paper set with random weights, put there by hand."""
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'revisit-bench[networks]'")
    random_scrfd(tmp_path / "weights/buffalo-detector/det_10g.onnx")
    random_arcface(tmp_path / "weights/buffalo-arcface/w600k_r50.onnx")
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


def test_scrfd_is_decoded_as_its_grids_say(buffalo: Path) -> None:
    """Against a decoder that goes place by place, on the outputs of a network in the published interface."""
    import cv2

    from revisit.networks import onnx, scrfd

    path = buffalo / "buffalo-detector/det_10g.onnx"
    rgb = np.random.default_rng(3).integers(0, 255, (160, 160, 3), dtype=np.uint8)
    square = cv2.resize(rgb, (640, 640), interpolation=cv2.INTER_LINEAR)
    outputs = onnx.run(path, ((square / 255 - 0.5) * 255 / 128).transpose(2, 0, 1)[None])
    found = []
    for k, stride in enumerate((8, 16, 32)):
        columns = 640 // stride
        for n, (score,) in enumerate(outputs[k]):
            if score >= 0.5:
                x, y = n // 2 % columns * stride, n // 2 // columns * stride
                left, top, right, bottom = outputs[3 + k][n] * stride
                points = outputs[6 + k][n].reshape(5, 2) * stride + (x, y)
                found.append((float(score), [x - left, y - top, x + right, y + bottom], points))
    kept = surest([box for _, box, _ in found], [score for score, _, _ in found], 0.4)
    seen = scrfd.detect_faces(path, rgb)
    assert 10 < len(seen) == len(kept) < len(found)
    for place, (score, box, points) in enumerate(found[k] for k in kept):
        assert seen.score[place] == pytest.approx(score) and np.abs(seen.box[place] - np.array(box) / 4).max() < 1e-3
        assert np.abs(seen.points[place] - points / 4).max() < 1e-3


@pytest.mark.parametrize(
    ("size", "inside"), [((720, 1280), (360, 640)), ((1280, 720), (640, 360)), ((64, 64), (640, 640))]
)
def test_a_picture_lies_in_the_upper_left_corner_of_the_square(size: tuple[int, int], inside: tuple[int, int]) -> None:
    from revisit.networks.scrfd import letterbox_with_scale

    square, scale = letterbox_with_scale(np.full((*size, 3), 200, np.uint8))
    assert scale == pytest.approx(640 / max(size))
    assert (square[: inside[0], : inside[1]] == 200).all() and square.sum() == 200 * 3 * inside[0] * inside[1]


def test_the_paper_set_describes_faces_as_its_files_say(buffalo: Path) -> None:
    from revisit import weights
    from revisit.networks import arcface
    from revisit.suites.mbench.observers.people import faces_by_buffalo as faces
    from revisit.suites.mbench.observers.people import find_faces_by_buffalo as find

    path = weights.file("buffalo-arcface")
    weight = random_arcface(path)
    picture = np.random.default_rng(4).integers(0, 255, (112, 112, 3), dtype=np.uint8)
    pooled = ((picture - 127.5) / 127.5).reshape(4, 28, 4, 28, 3).mean(axis=(1, 3)).transpose(2, 0, 1).ravel()
    expected = pooled @ weight
    made = arcface.unit_face_embeddings(path, [picture, picture])
    assert made.shape == (2, 512) and np.abs(made - expected / np.linalg.norm(expected)).max() < 1e-5
    assert arcface.unit_face_embeddings(path, []).shape == (0, 512)

    rgb = np.random.default_rng(3).integers(0, 255, (160, 160, 3), dtype=np.uint8)
    seen = faces([rgb, rgb])
    assert seen.same == 0.15 and seen.maker == "buffalo_l" and seen.vector.shape == (2 * len(find(rgb).box), 512)


def test_bodies_of_the_paper_set_belong_to_its_faces(buffalo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With networks that know nothing: SAM answers once for each face, and its masks are taken to be all of the box."""
    pytest.importorskip("transformers", reason="needs transformers: pip install 'revisit-bench[networks]'")
    from revisit.networks import runtime, sam2, scrfd
    from revisit.suites.mbench.observers.people import bodies_by_dino as bodies
    from revisit.suites.mbench.observers.people import faces_by_buffalo as faces
    from revisit.suites.mbench.observers.people import find_faces_by_buffalo as find
    from tests.networks.test_networks_detections import save_dinov2, save_sam2

    save_sam2(buffalo / "sam2.1-hiera-tiny")
    save_dinov2(buffalo / "dinov2-base")
    runtime.forget_cached_networks()
    rgb = np.random.default_rng(3).integers(0, 255, (160, 160, 3), dtype=np.uint8)
    frames = [rgb, np.ascontiguousarray(rgb[::-1])]
    monkeypatch.setattr(sam2, "masks_at", lambda logits, size: np.ones((len(logits), *size), bool))
    monkeypatch.setattr(people, "is_body_mask", lambda mask, face: face[0] > 8)
    monkeypatch.setattr(scrfd, "SURE", 0.6)
    seen = faces(frames)
    made = bodies(frames)
    assert made.maker == "dinov2-base on masks by sam2.1-hiera-tiny"
    box = np.concatenate([find(picture).box for picture in frames])
    assert len(box) == len(seen.frame) and made.face.tolist() == np.flatnonzero(box[:, 0] > 8).tolist()
    assert made.vector.shape == (len(made.face), 64) and len(made.face) > 2
    alone = bodies(frames[:1])
    first = made.face < len(find(rgb).box)
    assert alone.face.tolist() == made.face[first].tolist() and np.abs(alone.vector - made.vector[first]).max() < 1e-5
    runtime.forget_cached_networks()


def test_another_network_in_its_place_is_named(buffalo: Path) -> None:
    from revisit.networks import arcface, scrfd

    detector, embedder = (
        buffalo / name for name in ("buffalo-detector/det_10g.onnx", "buffalo-arcface/w600k_r50.onnx")
    )
    with pytest.raises(MissingPrerequisite, match=r"det_10g\.onnx: this is a different network"):
        arcface.unit_face_embeddings(detector, [])
    with pytest.raises(MissingPrerequisite, match=r"w600k_r50\.onnx: this is a different network"):
        scrfd.detect_faces(embedder, np.zeros((48, 48, 3), np.uint8))
    random_arcface(buffalo / "narrow.onnx", 128)
    with pytest.raises(MissingPrerequisite, match=r"narrow\.onnx.*512"):
        arcface.unit_face_embeddings(buffalo / "narrow.onnx", [])


# People in real clips


def tracks_of(clip: Path) -> tuple[FaceFeatures, Score]:
    from revisit.core import Clip
    from revisit.media import Limits, open_clip
    from revisit.suites.mbench.observers.people import faces_by_mtcnn

    with open_clip(
        Clip(clip), Limits(), wanted=lambda count, fps: people.frames_searched_for_faces(count, fps, {})
    ) as stream:
        seen = faces_by_mtcnn(stream)
    made = human_identity.fn(seen, replace(NO_PAIRS, turnaround=stream.info.count // 2))
    assert isinstance(made, Score)
    return seen, made


@pytest.mark.long
def test_people_on_a_stage_keep_one_track_each_through_shot_changes(small_weights: Path, shared: Path) -> None:
    """Three shots: a singer far away, then near; five people in all whose faces are seen in four frames or more.

    The pianist shows his face in three frames of 32, 25 pixels wide, then his profile: too little to count.
    """
    seen, made = tracks_of(shared / "clips/hamilton.mp4")
    assert made.facts["tracks"] == 5 and sorted(made.facts["track_lengths"]) == [8, 8, 8, 8, 17]
    track = assign_face_tracks(seen.frame, seen.vector, seen.same)
    singer = seen.frame[track == track[seen.frame == 150][0]]
    assert (singer < 20).sum() == 3 and ((singer > 85) & (singer < 205)).sum() == 14, "both of his shots, and no other"
    for number in np.unique(track):
        frames = seen.frame[track == number]
        assert len(np.unique(frames)) == len(frames), "nobody is twice in a frame"
        assert number == track[seen.frame == 150][0] or (frames > 210).all() or len(frames) < 4
    assert 0.8 < made.value < 1


@pytest.mark.long
def test_one_woman_is_one_track(small_weights: Path, shared: Path) -> None:
    _, made = tracks_of(shared / "clips/lp_s18.mp4")
    assert made.facts["track_lengths"] == [32] and made.facts["left_out"] == 0 and made.value > 0.95
    assert made.facts["described_by"] == "mtcnn + sface" and made.facts["same_face"] == 0.363


@pytest.mark.slow
@pytest.mark.long
def test_a_dataset_of_people_is_scored_with_the_small_set(
    small_weights: Path, astronaut: np.ndarray, revisit: Cli, tmp_path: Path
) -> None:
    """From the command to the numbers: a camera that turns from a woman and back, and a wall without anybody."""
    import json

    from revisit.media import encode_mp4

    data = tmp_path / "data"
    clips = {
        "woman": [np.ascontiguousarray(astronaut[:384, x : x + 384]) for x in (0, 60, 0)],
        "wall": [np.ascontiguousarray(astronaut[384:, x : x + 128]) for x in (0, 9, 0)],
    }
    for sample, frames in clips.items():
        write_sample(data, "human", sample)
        place = f"outputs/human/{sample}/left_then_right_3s/video.mp4"
        encode_mp4_at(data / "models/one" / place, frames, encode_mp4)
        add_row(data, "one", row("one", "human", sample, "left_then_right_3s", "A", place))
    (data / "dataset.yaml").write_text("dataset_id: mbencha\nversion: '1.0'\n")
    asked = ("-m", "mb_human_identity", "-m", "mb_human_appearance", "--workers", "1", "--no-report")
    revisit("eval", data, "--set", "small", *asked, "--out", tmp_path / "run", env={"OMP_NUM_THREADS": "1"})
    lines = (tmp_path / "run/records.jsonl").read_text().splitlines()
    records = {(one["case"].split(":")[1], one["metric"]): one for one in map(json.loads, lines) if "metric" in one}
    for metric in ("mb_human_identity", "mb_human_appearance"):
        assert records["woman", metric]["score"] > 0.9 and records["woman", metric]["facts"]["track_lengths"] == [3]
        assert records["wall", metric]["reason"]["kind"] == "not_seen"


def encode_mp4_at(path: Path, frames: list[np.ndarray], encode: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    encode(path, frames, fps=8)
