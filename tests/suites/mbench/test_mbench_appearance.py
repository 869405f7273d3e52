"""Object geometry, light, style, entities and prompts of MBench: bounds, faults and files of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Batch, InvalidEvidence, MediaError, Reason, Score, Unscored
from revisit.evidence.appearance import LabStats
from revisit.evidence.target import HIDDEN, RETURNED, VISIBLE, ObjectFeatures, ObjectMasks, TargetPhases
from revisit.media import save_npz
from revisit.observers.color_texture import lab_stats
from revisit.observers.imports import import_masks, import_object_features
from revisit.suites.mbench import imports
from revisit.suites.mbench.evidence import (
    BodyFeatures,
    FaceFeatures,
    FoldPairs,
    GramDistances,
    ObjectRegion,
    TextFeatures,
    WarpedViews,
)
from revisit.suites.mbench.metrics.entities import (
    assign_face_tracks,
    cosines_with_mean_vector,
    human_appearance,
    human_identity,
    object_texture,
)
from revisit.suites.mbench.metrics.objects import (
    erode_mask,
    mean_ssim_inside_mask,
    mean_ssim_with_zeroed_background,
    object_geometry,
    ssim_of_grey_pictures,
    target_region_from_masks_or_boxes,
)
from revisit.suites.mbench.metrics.prompt import prompt_interaction
from revisit.suites.mbench.metrics.rendering import rendering_lighting, rendering_style
from revisit.suites.mbench.observers.returned_pairs import warped_views
from tests.looking import as_frames, look
from tests.mbench_world import case, exact_region, failing, room, write_npz

PAIRS = FoldPairs(np.array([0, 1, 2]), np.array([10, 9, 8]), np.zeros(3), 5, "fold", "")


def score(metric: Callable[..., Score | Unscored], *evidence: Any, **params: Any) -> Score:
    made = metric(*evidence, **params)
    assert isinstance(made, Score), made
    return made


def reason(metric: Callable[..., Score | Unscored], *evidence: Any, **params: Any) -> Reason:
    made = metric(*evidence, **params)
    assert isinstance(made, Unscored), made
    return made.reason


# Object geometry


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_npz(tmp_path_factory.mktemp("room") / "results.npz", "w2c_opencv")


def warped(file: Path, frames: Any) -> WarpedViews:
    found: WarpedViews = look(warped_views, as_frames(frames), da3=file, annotations={"setting": "A"})
    return found


def test_a_remembered_object_seen_from_another_place_scores_one(file: Path) -> None:
    views = warped(file, room().rgb)
    made = score(object_geometry, views, exact_region())
    assert made.value > 0.97, "all that is missing is what interpolation blurs"
    assert made.facts["return_visible"] and made.facts["shared"] > 0.9
    unwarped = replace(views, warped=np.stack([_grey(room().rgb[k]) for k in views.other]))
    assert score(object_geometry, unwarped, exact_region()).value < made.value - 0.2, "the place is not the same"


@pytest.mark.parametrize(("fault", "strengths"), [("texture_drift", (0, 0.4, 1)), ("shape_drift", (0, 0.05, 0.3))])
def test_it_falls_with_the_change_and_zero_padding_hides_it(
    file: Path, fault: str, strengths: tuple[float, ...]
) -> None:
    made = [score(object_geometry, warped(file, failing(fault, s)), exact_region()) for s in strengths]
    inside, padded = ([m.facts[name] for m in made] for name in ("inside", "zero_padded"))
    assert inside[0] > 0.97 and inside[0] > inside[1] + 0.1 and inside[1] > inside[2] + 0.05
    assert min(padded) > 0.9, "zeros around the target agree whatever becomes of it"
    assert padded[0] - padded[2] < 0.2 * (inside[0] - inside[2])
    paper = score(object_geometry, warped(file, failing(fault, strengths[2])), exact_region(), rule="paper")
    assert paper.value == pytest.approx(padded[2])


def test_a_box_stands_in_for_a_mask_and_says_so(file: Path) -> None:
    views = warped(file, room().rgb)
    n = len(room().rgb)
    seen = room().mask.any((1, 2))
    box = np.tile(np.array(room().film.target_box()), (n, 1))
    state = np.where(seen, np.where(np.arange(n) > n // 2, RETURNED, VISIBLE), HIDDEN)
    phases = TargetPhases(np.arange(n), np.arange(n) / 16, state, seen, box, np.ones(n))
    region = target_region_from_masks_or_boxes.fn(case(), None, phases)
    made = score(object_geometry, views, region)
    assert made.value > 0.95 and made.facts["target_from"] == "box of the followed target"
    masks = target_region_from_masks_or_boxes.fn(case(), ObjectMasks(np.arange(n), room().mask, "a segmenter"), phases)
    assert masks.source == "masks by a segmenter" and (masks.visible == seen).all()
    assert np.allclose(masks.box[0], room().film.target_box(), atol=1e-3)
    assert isinstance(target_region_from_masks_or_boxes.fn(case(), None, None), Unscored)


def test_ssim_agrees_with_an_independent_one() -> None:
    from skimage.metrics import structural_similarity

    rng = np.random.default_rng(0)
    first = rng.integers(0, 256, (60, 80)).astype(np.uint8)
    second = np.clip(first + rng.normal(0, 30, first.shape), 0, 255).astype(np.uint8)
    _, known = structural_similarity(
        first, second, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255, full=True
    )
    assert np.allclose(ssim_of_grey_pictures(first, second)[5:-5, 5:-5], known[5:-5, 5:-5], atol=1e-7)
    assert np.allclose(ssim_of_grey_pictures(first, first), 1)
    mask = np.zeros(first.shape, bool)
    mask[10:40, 50:79] = True
    assert mean_ssim_inside_mask(first, second, erode_mask(mask)) == pytest.approx(known[erode_mask(mask)].mean())
    assert mean_ssim_with_zeroed_background(first, second, mask) == pytest.approx(
        ssim_of_grey_pictures(first * mask, second * mask).mean()
    )


def test_erosion_keeps_pixels_whose_neighbours_are_inside() -> None:
    import cv2

    mask = np.random.default_rng(1).random((50, 60)) > 0.02
    known = cv2.erode(mask.astype(np.uint8), np.ones((11, 11), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    assert (erode_mask(mask) == (known > 0)).all()


def test_what_shows_too_little_of_the_target_is_unscored(file: Path) -> None:
    views, region = warped(file, room().rgb), exact_region()
    unseen = replace(region, visible=np.zeros(len(region.index), bool))
    assert reason(object_geometry, views, unseen).kind == "not_seen"
    hidden = replace(views, visible=np.zeros_like(views.visible))
    assert reason(object_geometry, hidden, region).kind == "not_seen"
    none = replace(
        views, frame=views.frame[:0], other=views.other[:0], picture=views.picture[:0], warped=views.warped[:0],
        visible=views.visible[:0],
    )  # fmt: skip
    assert reason(object_geometry, none, region).kind == "no_overlap"
    with pytest.raises(InvalidEvidence, match="P, height, width"):
        object_geometry(replace(views, warped=views.warped[:1]), region)
    with pytest.raises(InvalidEvidence, match="N, 4"):
        object_geometry(views, ObjectRegion(region.index, region.visible, np.zeros((1, 4)), region.mask, ""))


def _grey(rgb: np.ndarray) -> np.ndarray:
    import cv2

    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))


# Light


def _lab(mean: np.ndarray) -> LabStats:
    return LabStats(np.arange(len(mean)), mean.astype(np.float32), np.zeros_like(mean, dtype=np.float32))


def test_light_that_returns_scores_one_and_a_known_change_its_closed_form() -> None:
    mean = np.tile([50.0, 3.0, -4.0], (11, 1))
    assert score(rendering_lighting, case(), _lab(mean), PAIRS).value == 1
    changed = mean.copy()
    changed[6:] += [8.0, 3.0, 4.0]
    made = score(rendering_lighting, case(), _lab(changed), PAIRS, alpha=0.5, tau=10.0)
    assert made.raw == pytest.approx(0.5 * 8 + 0.5 * 5) and made.value == pytest.approx(np.exp(-0.65), rel=1e-5)
    assert made.facts["lightness"] == pytest.approx(8)
    text = score(rendering_lighting, case(setting="T"), _lab(changed), PAIRS)
    assert text.raw == pytest.approx(6.5) and text.facts["pairs_chosen_by"] == "first and last fifth"


def test_the_rooms_light_falls_when_the_clip_grows_darker(file: Path) -> None:
    pictures = list(room().rgb)
    darker = [p if k < 5 else (p * 0.7).astype(np.uint8) for k, p in enumerate(pictures)]
    pairs = FoldPairs(np.array([0, 1]), np.array([8, 7]), np.zeros(2), 4, "fold", "")
    number, seconds = np.arange(len(pictures)), np.arange(len(pictures)) / 16
    same, less = (
        score(rendering_lighting, case(), lab_stats.fn(Batch(number, seconds, shown)), pairs).value
        for shown in (pictures, darker)
    )
    assert same > 0.8 > less


def test_light_without_pairs_is_unscored() -> None:
    none = replace(PAIRS, frame=PAIRS.frame[:0], other=PAIRS.other[:0], distance=PAIRS.distance[:0], note="too short")
    assert "too short" in reason(rendering_lighting, case(), _lab(np.ones((11, 3))), none).sentence, "the note is shown"
    assert reason(rendering_lighting, case(), _lab(np.ones((1, 3))), PAIRS).kind == "too_short"
    assert reason(rendering_lighting, case(setting="T"), _lab(np.ones((3, 3))), PAIRS).kind == "too_short"
    with pytest.raises(InvalidEvidence):
        rendering_lighting(case(), replace(_lab(np.ones((11, 3))), mean=np.ones((4, 3))), PAIRS)


# Style


def _grams(matrices: np.ndarray, folds: list[tuple[int, int]]) -> GramDistances:
    """Distances of Gram matrices (frames, layers, c, c), next to each other and of pairs out and back."""
    pairs = [(k, k - 1) for k in range(1, len(matrices))] + [(j, i) for i, j in folds]
    later, earlier = (np.array([pair[k] for pair in pairs]) for k in (0, 1))

    def norm(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(values, axis=(2, 3)))

    fold = np.arange(len(pairs)) >= len(matrices) - 1
    difference = norm(matrices[later] - matrices[earlier])
    return GramDistances(later, earlier, fold, difference, norm(matrices[later]), norm(matrices[earlier]), "vgg19")


def test_style_is_one_when_nothing_changes_and_between_the_bounds_otherwise() -> None:
    rng = np.random.default_rng(0)
    same = np.tile(rng.random((1, 5, 4, 4)), (6, 1, 1, 1))
    made = score(rendering_style, _grams(same, [(0, 5)]))
    assert made.value == 1 and made.facts["return_score"] == 1
    for rule in ("corrected", "paper"):
        assert 0 <= score(rendering_style, _grams(100 * rng.random((6, 5, 4, 4)), []), rule=rule).value <= 1
    drift = same * np.linspace(1, 2, 6)[:, None, None, None]
    made = score(rendering_style, _grams(drift, [(0, 5)]))
    assert made.facts["return_score"] == pytest.approx(1 - 1 / 3), "|2 - 1| / (2 + 1)"
    assert made.value > made.facts["return_score"], "neighbours hide a slow drift"
    assert score(rendering_style, _grams(3 * drift, [])).value == pytest.approx(made.value), "scale cancels"
    folds = replace(_grams(same, [(0, 5)]), fold=np.ones(6, bool))
    assert reason(rendering_style, folds).kind == "not_observed"
    with pytest.raises(InvalidEvidence, match="P, layers"):
        rendering_style(replace(_grams(same, []), norm=np.ones((2, 5))))


# Entities


def _about(direction: np.ndarray, count: int, spread: float, seed: int) -> np.ndarray:
    return direction + np.random.default_rng(seed).normal(0, spread, (count, len(direction)))


AXES = np.eye(8)


def test_equal_descriptors_score_one_and_two_halves_at_a_right_angle_their_known_cosine() -> None:
    frame = np.arange(10)
    same = ObjectFeatures(frame, frame, np.tile(AXES[0], (10, 1)), "a net")
    made = score(object_texture, same, PAIRS)
    assert made.value == 1 and made.facts["return_score"] == pytest.approx(1)
    halves = replace(same, vector=AXES[[0] * 6 + [1] * 4])
    made = score(object_texture, halves, PAIRS)
    a, b = 6 / np.hypot(6, 4), 4 / np.hypot(6, 4)
    assert made.value == pytest.approx(0.6 * a + 0.4 * b) and made.facts["return_score"] == pytest.approx(0)
    assert cosines_with_mean_vector(AXES[:2]) == pytest.approx([np.sqrt(0.5)] * 2)


def test_an_object_that_never_returns_is_unscored() -> None:
    seen = ObjectFeatures(np.arange(10), np.arange(4), np.tile(AXES[0], (4, 1)), "a net")
    assert reason(object_texture, seen, PAIRS).kind == "not_seen"
    assert score(object_texture, seen, PAIRS, rule="paper").value == 1, "the paper rewards it"
    once = replace(seen, frame=np.arange(1), vector=AXES[:1])
    assert "1 of 10 frames" in reason(object_texture, once, PAIRS).sentence
    with pytest.raises(InvalidEvidence, match="N, D"):
        object_texture(replace(seen, frame=np.arange(3)), PAIRS)


def test_two_people_make_two_tracks_whoever_comes_first() -> None:
    one, two = _about(AXES[0], 12, 0.05, 1), _about(AXES[1], 12, 0.05, 2)
    frame = np.repeat(np.arange(12), 2)
    vectors = np.empty((24, 8))
    vectors[0::2], vectors[1::2] = one, two
    vectors[10:12] = vectors[[11, 10]]  # they swap sides in frame 5
    track = assign_face_tracks(frame, vectors)
    assert len(np.unique(track)) == 2 and track[10] == track[1] and track[11] == track[0]
    made = score(human_identity, FaceFeatures(np.arange(12), frame, vectors, "arcface"), PAIRS)
    assert made.value > 0.97 and made.facts["track_lengths"] == [12, 12]


def test_a_gap_does_not_break_a_track_and_another_face_begins_one() -> None:
    frame = np.array([0, 1, 2, 9, 10, 11])
    vectors = np.vstack([_about(AXES[0], 3, 0.02, 1), _about(AXES[0], 3, 0.02, 2)])
    assert len(np.unique(assign_face_tracks(frame, vectors))) == 1, "shots may change in between"
    other = np.vstack([_about(AXES[0], 3, 0.02, 1), _about(AXES[3], 3, 0.02, 2)])
    assert assign_face_tracks(frame, other).tolist() == [0, 0, 0, 1, 1, 1]


def test_each_network_brings_its_own_threshold() -> None:
    """Cosines of 0.3 are one person's by ArcFace and two people's by a network that says so."""
    lean = np.array([np.r_[np.sqrt(0.3), row] for row in np.sqrt(0.7) * np.eye(4)])
    seen = FaceFeatures(np.arange(4), np.arange(4), lean, "arcface")
    assert score(human_identity, seen, PAIRS).facts["track_lengths"] == [4]
    brief = reason(human_identity, replace(seen, maker="sface", same=0.363), PAIRS)
    assert brief.kind == "not_seen" and "4 were seen more briefly" in brief.sentence
    assert score(human_identity, replace(seen, same=0.363), PAIRS, same_face=0.2).facts["same_face"] == 0.2


def test_singletons_do_not_count_and_no_track_is_unscored() -> None:
    frame = np.array([0, 1, 2, 3, 4])
    vectors = np.vstack([AXES[0], AXES[0], AXES[0], AXES[0], AXES[5]])
    seen = FaceFeatures(np.arange(5), frame, vectors, "arcface")
    made = score(human_identity, seen, PAIRS)
    assert made.facts["tracks"] == 1 and made.facts["left_out"] == 1 and made.value == pytest.approx(1)
    alone = FaceFeatures(np.arange(5), np.array([0, 1]), AXES[:2], "arcface")
    assert reason(human_identity, alone, PAIRS).kind == "not_seen"
    assert score(human_identity, alone, PAIRS, rule="paper").value == 1, "the paper's formula rewards single faces"
    nobody = FaceFeatures(np.arange(5), np.zeros(0, int), np.zeros((0, 8)), "arcface")
    assert "no face was found in 5 frames" in reason(human_identity, nobody, PAIRS).sentence


def test_bodies_follow_the_tracks_of_faces() -> None:
    frame = np.repeat(np.arange(6), 2)
    faces = FaceFeatures(np.arange(6), frame, AXES[[0, 1] * 6], "arcface")
    bodies = BodyFeatures(np.arange(12), AXES[[2, 3] * 6], "dino")
    assert score(human_appearance, faces, bodies, PAIRS).value == pytest.approx(1)
    undressed = replace(bodies, vector=AXES[[2, 3] * 3 + [4, 3] * 3])
    made = score(human_appearance, faces, undressed, replace(PAIRS, turnaround=2))
    assert made.value == pytest.approx((np.sqrt(0.5) + 1) / 2) and made.facts["return_score"] == pytest.approx(0.5)
    with pytest.raises(InvalidEvidence, match="names face 99"):
        human_appearance(faces, BodyFeatures(np.array([99]), AXES[:1], "dino"), PAIRS)
    bodiless = BodyFeatures(np.zeros(0, int), np.zeros((0, 8)), "dino")
    assert reason(human_appearance, faces, bodiless, PAIRS).kind == "not_seen"


def test_who_counts_is_said_by_faces_and_two_bodies_are_enough() -> None:
    faces = FaceFeatures(np.arange(40), np.r_[np.arange(39), 39], AXES[[0] * 39 + [1]], "arcface")
    two = BodyFeatures(np.array([0, 30, 39]), AXES[[2, 2, 3]], "dino")
    made = score(human_appearance, faces, two, PAIRS)
    assert made.value == pytest.approx(1) and made.facts["track_lengths"] == [2] and made.facts["left_out"] == 1
    once = BodyFeatures(np.array([0, 39]), AXES[:2], "dino")
    assert reason(human_appearance, faces, once, PAIRS).kind == "not_seen"
    assert score(human_appearance, faces, two, PAIRS, rule="paper").facts["tracks"] == 2


# Prompts


def test_prompts_are_averaged_over_segments_and_not_over_frames() -> None:
    segment = np.array([0, 0, 0, 1])
    seen = TextFeatures(np.arange(4), segment, AXES[[0, 0, 0, 2]], AXES[[0, 1]], False, "clip")
    made = score(prompt_interaction, case(setting="T", segments=["a", "b"]), seen)
    assert made.value == pytest.approx(0.5) and made.facts["of_each_segment"] == pytest.approx([1, 0])
    assert reason(prompt_interaction, case(segments=["a", "b", "c"]), seen).kind == "mismatch"
    assert reason(prompt_interaction, case(), replace(seen, segment=np.zeros(4, int))).kind == "not_observed"
    with pytest.raises(InvalidEvidence, match="from 0 to 1"):
        prompt_interaction(case(), replace(seen, segment=np.array([0, 0, 0, 7])))


# Files


def test_files_of_features_are_read_and_refused_with_a_sentence(tmp_path: Path) -> None:
    def made(**arrays: Any) -> Path:
        save_npz(tmp_path / "file.npz", {name: np.asarray(array) for name, array in arrays.items()})
        return tmp_path / "file.npz"

    thing = import_object_features.fn(made(vector=AXES[:3], frame=[4, 0, 2], looked=range(6), maker="dinov2"))
    assert thing.frame.tolist() == [0, 2, 4] and len(thing.index) == 6 and thing.maker == "dinov2"
    assert len(imports.faces.fn(made(vector=AXES[:3], frame=[0, 0, 1])).frame) == 3
    assert imports.bodies.fn(made(vector=AXES[:2], face=[2, 0])).face.tolist() == [2, 0]
    assert import_masks.fn(made(mask=np.ones((2, 4, 5)), frame=[3, 1])).index.tolist() == [1, 3]
    text = imports.clip_features.fn(made(image=AXES[:3], text=AXES[:2], segment=[0, 1, 1], frame=[0, 5, 9], cut=True))
    assert text.cut and text.text.shape == (2, 8)
    gram = {"difference": np.ones((2, 5)), "norm": np.ones((2, 5)), "other_norm": np.ones((2, 5))}
    assert imports.grams.fn(made(**gram, frame=[1, 2], other=[0, 1])).fold.tolist() == [False, False]
    for read, arrays, sentence in (
        (import_object_features, {"vector": np.full((2, 3), np.nan), "frame": [0, 1]}, "not finite"),
        (import_object_features, {"vector": AXES[:2], "frame": [1, 1]}, "frame 1 occurs twice"),
        (imports.faces, {"vector": AXES[:2], "frame": [1, 0]}, "frame numbers fall"),
        (imports.faces, {"vector": AXES[:2], "frame": [0, 1], "same": [3.0]}, "expected one cosine"),
        (imports.bodies, {"vector": AXES[:2]}, "expected an npz with vector"),
        (imports.bodies, {"vector": AXES[:2], "face": [1, 1]}, "each face has one body"),
        (import_masks, {"mask": np.ones((2, 4))}, "expected an npz with mask"),
        (
            imports.clip_features,
            {"image": AXES[:2], "text": AXES[:2, :3], "segment": [0, 1]},
            "TextFeatures.text has shape",
        ),
        (imports.clip_features, {"image": AXES[:2], "text": AXES[:1], "segment": [0, 1]}, "1 captions"),
        (imports.grams, {**gram, "frame": [1, 2], "other": [0]}, "GramDistances"),
    ):
        with pytest.raises(MediaError, match=sentence):
            read.fn(made(**arrays))
