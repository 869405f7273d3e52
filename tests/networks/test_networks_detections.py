"""SAM 2, SAM 3 and Grounding DINO: small random networks of the real architectures, saved and loaded as users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import MissingPrerequisite, Target
from tests.later import later
from tests.looking import as_frames, look
from tests.tiny_networks import save_dinov2, save_grounding_dino, save_sam2, save_sam3

torch = pytest.importorskip("torch", reason="needs torch")
transformers = later("transformers", reason="needs transformers")

from revisit.networks import grounding_dino, hub, runtime, sam2, sam3  # noqa: E402
from revisit.observers.masks import object_features_by_dino, target_masks_by_sam2  # noqa: E402
from revisit.suites.memobench.observers import detections as asking  # noqa: E402


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights with a small random checkpoint of each network in the published format."""
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("weights")
    save_sam2(root / "sam2.1-hiera-tiny")
    save_sam3(root / "sam3")
    save_grounding_dino(root / "grounding-dino-tiny")
    save_dinov2(root / "dinov2-base")
    return root


@pytest.fixture
def weights(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(home))
    monkeypatch.setenv("REVISIT_DEVICE", "cpu")
    return home


def pictures(count: int = 2, size: tuple[int, int] = (60, 100)) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, 255, (*size, 3), dtype=np.uint8) for _ in range(count)]


def on_device(frames: list[np.ndarray]) -> Any:
    return runtime.channels_first_on_device(frames)


def test_sam2_follows_a_box_and_answers_for_every_frame(weights: Path) -> None:
    frames = pictures(4)
    with runtime.inference():
        net = sam2.network("sam2.1-hiera-tiny")
        following = sam2.Sam2Tracker(net, on_device(frames[:1]), [(0.2, 0.2, 0.6, 0.7)])
        answers = [following.first, *(following.next_logits(on_device([frame])) for frame in frames[1:])]
    for logits in answers:
        assert logits.shape[0] == 1 and logits.dtype == torch.float32
        assert sam2.masks_at(logits, (60, 100)).shape == (1, 60, 100)
    assert not following.session.processed_frames  # memory does not grow with the frames of the clip


def test_sam2_answers_as_the_processor_and_a_whole_video_would(weights: Path) -> None:
    """The same session filled as transformers documents it: a video given whole, and its own propagation."""
    frames = pictures(3)
    box = (0.2, 0.25, 0.6, 0.75)
    with runtime.inference():
        net = sam2.network("sam2.1-hiera-tiny")
        following = sam2.Sam2Tracker(net, on_device(frames[:1]), [box])
        ours = [
            following.first,
            *(following.next_logits(on_device([frame])) for frame in frames[1:]),
        ]
        video = torch.cat([net.preprocess(on_device([frame])) for frame in frames])
        session = transformers.Sam2VideoInferenceSession(
            video=video, video_height=60, video_width=100, dtype=torch.float32
        )
        row = session.obj_id_to_idx(0)
        corners = torch.tensor([[[[0.2 * 128, 0.25 * 128], [0.6 * 128, 0.75 * 128]]]])
        session.add_point_inputs(row, 0, {"point_coords": corners, "point_labels": torch.tensor([[[2, 3]]])})
        session.obj_with_new_inputs = [0]
        theirs = [out.pred_masks[:, 0] for out in net.model.propagate_in_video_iterator(session, start_frame_idx=0)]
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.float(), atol=1e-4, rtol=1e-4)


def test_pixels_are_what_pil_makes_of_a_frame(weights: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow to compare with")
    frame = pictures(1, (90, 50))[0]
    for net, mean, std in (
        (sam2.network("sam2.1-hiera-tiny"), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        (sam3.network("sam3"), [0.5] * 3, [0.5] * 3),
    ):
        side = net.side
        resized = np.asarray(image.fromarray(frame).resize((side, side), image.Resampling.BILINEAR), dtype=np.float64)
        expected = ((resized / 255 - mean) / std).transpose(2, 0, 1)
        np.testing.assert_allclose(net.preprocess(on_device([frame]))[0].numpy(), expected, atol=1.01 / 255 / min(std))


def test_sam3_scores_masks_for_words_and_batches_change_nothing(weights: Path) -> None:
    frames = pictures(3)
    with runtime.inference():
        net = sam3.network("sam3")
        together = net.detect_named_objects(on_device(frames), "a red cup")
        alone = [net.detect_named_objects(on_device([frame]), "a red cup")[0] for frame in frames]
        other = net.detect_named_objects(on_device(frames), "cat")
    for a, b in zip(together, alone, strict=True):
        assert a.score.shape == a.coverage.shape == (12,) and a.box.shape == (12, 4)
        assert ((a.score > 0) & (a.score < 1)).all()
        np.testing.assert_allclose(a.score, b.score, atol=1e-5)
        np.testing.assert_allclose(a.coverage, b.coverage, atol=1e-3)
    assert not np.allclose(together[0].score, other[0].score, atol=1e-7)  # the words matter


def test_sam3_scores_are_logit_times_presence(weights: Path) -> None:
    frame = pictures(1)
    with runtime.inference():
        net = sam3.network("sam3")
        tokens, counting = net.tokenize_with_mask("a cat")
        out = net.model(pixel_values=net.preprocess(on_device(frame)), input_ids=tokens, attention_mask=counting)
        found = net.detect_named_objects(on_device(frame), "a cat")[0]
    expected = (1 / (1 + np.exp(-out.pred_logits[0].numpy()))) * (1 / (1 + np.exp(-out.presence_logits[0].numpy())))
    np.testing.assert_allclose(found.score, expected, atol=1e-6)
    masks = torch.nn.functional.interpolate(out.pred_masks, (60, 100), mode="bilinear", align_corners=False)[0] > 0
    np.testing.assert_allclose(found.coverage, masks.float().mean((1, 2)).numpy(), atol=1e-6)
    assert tokens.shape == (1, sam3.WORDS)


@pytest.mark.parametrize("size", [(480, 832), (1080, 1920), (832, 480), (800, 1000), (300, 1200)])
def test_grounding_dino_has_the_size_of_its_own_processor(size: tuple[int, int]) -> None:
    pil = pytest.importorskip("transformers.models.grounding_dino.image_processing_pil_grounding_dino")
    processor = pil.GroundingDinoImageProcessorPil()
    made = processor(images=np.zeros((*size, 3), np.uint8), return_tensors="np")["pixel_values"]
    assert made.shape[-2:] == grounding_dino.size_with_limited_sides(size)


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grounding DINO sees pictures of less than a hundredth of its size."""
    monkeypatch.setattr(grounding_dino, "SHORT", 64)
    monkeypatch.setattr(grounding_dino, "LONG", 128)


@pytest.mark.usefixtures("small_pictures")
def test_grounding_dino_finds_boxes_for_words_and_batches_change_nothing(weights: Path) -> None:
    frames = pictures(2, (64, 96))
    with runtime.inference():
        net = grounding_dino.network("grounding-dino-tiny")
        together = net.detect_scores_and_boxes(on_device(frames), "A red cup", threshold=0.0)
        alone = [net.detect_scores_and_boxes(on_device([frame]), "a red cup.", threshold=0.0)[0] for frame in frames]
        none = net.detect_scores_and_boxes(on_device(frames), "a red cup", threshold=1.0)
    for (score, boxes), (score_alone, boxes_alone) in zip(together, alone, strict=True):
        assert boxes.shape == (len(score), 4) and bool((boxes >= 0).all() and (boxes <= 1).all())
        assert bool((score[:-1] >= score[1:]).all())
        torch.testing.assert_close(score, score_alone, atol=1e-5, rtol=0)
        torch.testing.assert_close(boxes, boxes_alone, atol=1e-4, rtol=0)
    assert all(len(score) == 0 for score, _ in none)


def test_words_end_in_one_stop_and_have_no_capitals() -> None:
    assert grounding_dino.format_prompt(" A red Cup. ") == "a red cup."


@pytest.mark.usefixtures("small_pictures")
def test_observers_of_the_paper_set_fill_their_evidence(weights: Path) -> None:
    clip = as_frames(pictures(5), 8.0)
    target = Target("cup", (0.2, 0.2, 0.6, 0.7))
    made = look(target_masks_by_sam2[0], clip, 8.0, target=target)
    assert made.mask.shape == (5, 60, 100) and made.maker == "sam2.1-hiera-tiny from a box in the first frame"
    words = {"ors_prompts": {"corrected": "a red cup"}}
    seen = look(asking.detections_by_sam3, clip, 8.0, annotations=words, target=None)
    assert seen.prompt == "a red cup" and len(seen.frame) == len(seen.score) == len(seen.coverage) == 60
    assert set(seen.index) == set(range(5)) and seen.maker == "sam3"
    boxed = look(asking.detections_by_grounding_dino, clip, 8.0, annotations={}, target=target, threshold=0.0)
    assert boxed.prompt == "cup" and (boxed.coverage >= 0).all() and boxed.maker != seen.maker
    features = look(object_features_by_dino, clip, 8.0, target=target)
    assert len(features.index) == 5 and len(features.vector) == len(features.frame)


def test_without_words_nothing_is_asked(weights: Path) -> None:
    seen = look(asking.detections_by_sam3, as_frames(pictures(2), 8.0), 8.0, annotations={}, target=None)
    assert seen.prompt == "" and not len(seen.index)


@pytest.mark.usefixtures("small_pictures")
def test_a_named_target_is_looked_for_in_the_first_frame(weights: Path) -> None:
    """Grounding DINO's surest box is what SAM 2 follows; where it finds nothing, masks are empty and say so."""
    frames = pictures(3)
    clip = as_frames(frames, 8.0)
    net = grounding_dino.network("grounding-dino-tiny")
    made = look(target_masks_by_sam2[0], clip, 8.0, target="red cup", threshold=0.0)
    with runtime.inference():
        boxes = net.detect_scores_and_boxes(on_device(frames[:1]), "red cup", threshold=0.0)[0][1]
        following = sam2.Sam2Tracker(
            sam2.network("sam2.1-hiera-tiny"), on_device(frames[:1]), [tuple(boxes[0].tolist())]
        )
        expected = [
            following.first,
            *(following.next_logits(on_device([frame])) for frame in frames[1:]),
        ]
    assert np.array_equal(made.mask, [sam2.masks_at(logits, (60, 100))[0] for logits in expected])
    assert made.maker == "sam2.1-hiera-tiny from a name, found by grounding-dino-tiny in the first frame"
    none = look(target_masks_by_sam2[0], clip, 8.0, target="red cup", threshold=1.0)
    assert not none.mask.any() and list(none.index) == [0, 1, 2] and "found no 'red cup'" in none.maker
    seen = look(object_features_by_dino, clip, 8.0, target="red cup", threshold=1.0)
    assert len(seen.index) == 3 and not len(seen.frame) and "found no 'red cup'" in seen.maker


def test_a_click_is_a_point_for_sam2(weights: Path) -> None:
    """As transformers documents it: one point with label 1, in pixels of the network's square."""
    frames = pictures(2)
    target = Target("cup", (0.2, 0.2, 0.6, 0.7), (0.31, 0.47))
    made = look(target_masks_by_sam2[0], as_frames(frames, 8.0), 8.0, target=target)
    with runtime.inference():
        net = sam2.network("sam2.1-hiera-tiny")
        video = torch.cat([net.preprocess(on_device([frame])) for frame in frames])
        session = transformers.Sam2VideoInferenceSession(
            video=video, video_height=60, video_width=100, dtype=torch.float32
        )
        given = {"point_coords": torch.tensor([[[[0.31 * 128, 0.47 * 128]]]]), "point_labels": torch.tensor([[[1]]])}
        session.add_point_inputs(session.obj_id_to_idx(0), 0, given)
        session.obj_with_new_inputs = [0]
        theirs = [out.pred_masks[:, 0] for out in net.model.propagate_in_video_iterator(session, start_frame_idx=0)]
        boxed = sam2.Sam2Tracker(net, on_device(frames[:1]), [target.box]).first
    assert np.array_equal(made.mask, [sam2.masks_at(logits, (60, 100))[0] for logits in theirs])
    assert made.maker == "sam2.1-hiera-tiny from a point in the first frame"
    assert not torch.allclose(theirs[0].float(), boxed), "a point is no box"


def test_a_checkpoint_of_another_network_is_named(home: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite, match=r"model_type is 'sam2_video'"):
        sam3.build(home / "sam2.1-hiera-tiny" / "model.safetensors")
    (tmp_path / "config.json").write_text((home / "sam3/config.json").read_text(), encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes((home / "sam2.1-hiera-tiny/model.safetensors").read_bytes())
    with pytest.raises(MissingPrerequisite, match="not a weights file of Sam3Model"):
        hub.load_model(tmp_path, model_types=sam3.TYPES)
