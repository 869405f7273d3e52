"""MobileSAM, the tracker built on it, and U2-Net: masks of things, and where a target is and is not."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import MissingPrerequisite, Target, UsageError
from revisit.observers.mask_tracking import LikeTarget, bounding_box_of_mask, box_iou, centre_most_like_target
from revisit.worlds.failures import generate
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET
from tests.looking import as_frames, look

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'revisit-bench[networks]'")
pytest.importorskip("safetensors", reason="safetensors is not installed")

from safetensors.torch import save_file  # noqa: E402

from revisit.networks import mobile_sam, runtime, u2net  # noqa: E402
from revisit.networks.mobile_sam import MaskDecoder, MobileSam, PromptEncoder, TinyViT  # noqa: E402
from revisit.observers import masks as observers  # noqa: E402
from revisit.observers.mask_tracking import Tracker, segment_things_in_boxes  # noqa: E402
from revisit.suites.memobench.observers.detections import detections_by_look  # noqa: E402

# The network: small and random


@pytest.fixture(scope="module")
def tiny() -> MobileSam:
    """MobileSAM with all its parts at a width of 32, every number random."""
    torch.manual_seed(0)
    encoder = TinyViT(channels=(16, 32, 32, 32), depths=(1, 1, 1, 1), heads=(1, 2, 2, 2), out=32)
    net = MobileSam(encoder, PromptEncoder(32), MaskDecoder(32, heads=4, hidden=64), side=128)
    for part in [*net.parameters(), *net.buffers()]:
        if part.dtype.is_floating_point:
            part.data = part.data + 0.1 * torch.randn(part.shape).abs()
    return net.eval().requires_grad_(False)


def noise(count: int, size: tuple[int, int] = (60, 100)) -> Any:
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(0, 255, (count, 3, *size), dtype=np.uint8))


def test_a_picture_in_a_batch_is_embedded_as_alone(tiny: MobileSam) -> None:
    pictures = noise(3)
    together = tiny.embed(pictures)
    for k, made in enumerate(together):
        assert made.features.shape == (32, 8, 8) and made.features.dtype == torch.float32
        assert made.features_without_padding.shape == (32, 5, 8) and made.scaled == (77, 128)
        torch.testing.assert_close(made.features, tiny.embed(pictures[k : k + 1])[0].features, atol=1e-5, rtol=1e-5)


def test_prompts_answered_together_are_answered_as_alone(tiny: MobileSam) -> None:
    seen = tiny.embed(noise(1))[0]
    boxes = [(0.1 * k, 0.1, 0.1 * k + 0.3, 0.6) for k in range(5)]
    together = tiny.predict_masks(seen, boxes, which="all")
    assert together.logits.shape == (5, 4, 32, 32) and together.iou.shape == (5, 4)
    alone = [tiny.predict_masks(seen, [box], which="all").logits for box in boxes]
    torch.testing.assert_close(together.logits, torch.cat(alone), atol=1e-5, rtol=1e-4)
    assert together.binary_masks_at().shape == (5, 4, 60, 100)
    assert tiny.predict_masks(seen, points=[[(0.5, 0.5)]], which="three").iou.shape == (1, 3)
    assert tiny.predict_masks(seen, boxes[:1], [[(0.2, 0.2)]]).iou.shape == (1, 1)


def test_folded_normalisations_give_the_same_numbers(tiny: MobileSam) -> None:
    folded = deepcopy(tiny)
    folded.image_encoder.fold_batch_norms()
    picture = noise(1)
    torch.testing.assert_close(folded.embed(picture)[0].features, tiny.embed(picture)[0].features, atol=1e-4, rtol=1e-3)


def test_pictures_are_resized_as_pil_does_and_padded_below_and_to_the_right(tiny: MobileSam) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow to compare with")
    picture = noise(1, (90, 50))
    given: list[Any] = []
    handle = tiny.image_encoder.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    tiny.embed(picture)
    handle.remove()
    plain = image.fromarray(picture[0].permute(1, 2, 0).numpy())
    expected = np.asarray(plain.resize((71, 128), image.Resampling.BILINEAR), dtype=np.float64) / 255
    expected = (expected - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(given[0][0, :, :, :71].permute(1, 2, 0).numpy(), expected, atol=1.01 / 255 / 0.224)
    assert not given[0][0, :, :, 71:].any()


def test_the_decoder_answers_as_that_of_transformers() -> None:
    """The same random weights in SamModel of transformers: prompt encoder and mask decoder agree."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(1)
    width = 32
    vision = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 128, "mlp_dim": 16,
        "output_channels": width, "global_attn_indexes": [0], "num_pos_feats": width // 2,
    }  # fmt: skip
    prompt = {"hidden_size": width, "image_size": 128, "patch_size": 16, "image_embedding_size": 8}
    decoder = {"hidden_size": width, "mlp_dim": 64, "num_attention_heads": 4, "iou_head_hidden_dim": width}
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder)
    theirs = transformers.SamModel(config).eval()
    for part in theirs.parameters():
        part.data = part.data + 0.1 * torch.randn(part.shape)
    ours = MobileSam(
        TinyViT((16,) * 4, (1,) * 4, (1,) * 4, width), PromptEncoder(width), MaskDecoder(width, 4, 64), 128
    )
    prompts = _own_names(theirs.prompt_encoder.state_dict())
    waves = "shared_embedding.positional_embedding"
    prompts["pe_layer.positional_encoding_gaussian_matrix"] = prompts.pop(waves)
    ours.prompt_encoder.load_state_dict(prompts)
    ours.mask_decoder.load_state_dict(_own_names(theirs.mask_decoder.state_dict()))
    features = torch.randn(width, 8, 8)
    with torch.no_grad():
        seen = mobile_sam.PictureEmbedding(features, (128, 128), (128, 128))
        box = (0.2, 0.3, 0.7, 0.9)
        answer = ours.predict_masks(seen, [box], which="all")
        corners = torch.tensor([[[edge * 128 for edge in box]]])
        both = [
            theirs(image_embeddings=features[None], input_boxes=corners, multimask_output=several)
            for several in (False, True)
        ]
        point = ours.predict_masks(seen, points=[[(0.4, 0.6)]], which="three")
        clicked = theirs(image_embeddings=features[None], input_points=torch.tensor([[[[0.4 * 128, 0.6 * 128]]]]))
    logits = torch.cat([out.pred_masks[0, 0] for out in both])
    torch.testing.assert_close(answer.logits[0], logits, atol=2e-4, rtol=1e-3)
    torch.testing.assert_close(answer.iou[0], torch.cat([out.iou_scores[0, 0] for out in both]), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(point.logits[0], clicked.pred_masks[0, 0], atol=2e-4, rtol=1e-3)


def _own_names(state: dict[str, Any]) -> dict[str, Any]:
    """Names of transformers' SAM as the published checkpoints have them."""
    pairs = (
        ("mask_embed.conv1", "mask_downscaling.0"), ("mask_embed.layer_norm1", "mask_downscaling.1"),
        ("mask_embed.conv2", "mask_downscaling.3"), ("mask_embed.layer_norm2", "mask_downscaling.4"),
        ("mask_embed.conv3", "mask_downscaling.6"), ("not_a_point_embed", "none"),
        ("point_embed.", "point_embeddings."), ("none", "not_a_point_embed"),
        ("upscale_conv1", "output_upscaling.0"), ("upscale_layer_norm", "output_upscaling.1"),
        ("upscale_conv2", "output_upscaling.3"), ("layer_norm_final_attn", "norm_final_attn"),
        ("layer_norm", "norm"), ("proj_in", "layers.0"), ("proj_out", "layers.2"),
    )  # fmt: skip
    renamed = {}
    for name, value in state.items():
        inner = name.replace(".layers.0.", ".layers.1.") if "_mlps." in name or "iou_prediction" in name else name
        for old, new in pairs:
            inner = inner.replace(old, new)
        renamed[inner] = value
    return renamed


def test_weights_of_something_else_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"conv.weight": torch.zeros(3, 3)}, path)
    with pytest.raises(MissingPrerequisite, match=r"model\.safetensors: this is not a weights file of MobileSam"):
        mobile_sam.load(path)


# Parts of the tracker


def test_the_rule_learns_the_targets_cells() -> None:
    rng = np.random.default_rng(0)
    own, other = rng.normal(1, 0.3, (20, 16)), rng.normal(-1, 0.3, (200, 16))
    rule = LikeTarget(16)
    rule.add_frame(np.r_[own, other], np.r_[np.ones(20), np.zeros(200)])
    assert rule(rng.normal(1, 0.3, (50, 16))).mean() > 0.9
    assert abs(rule(rng.normal(-1, 0.3, (50, 16))).mean()) < 0.1


def test_boxes_overlap_and_enclose() -> None:
    mask = np.zeros((10, 20), bool)
    assert bounding_box_of_mask(mask) == (0, 0, 0, 0)
    mask[2:5, 4:10] = True
    assert bounding_box_of_mask(mask) == (0.2, 0.2, 0.5, 0.5)
    assert box_iou((0, 0, 1, 1), (0, 0, 1, 1)) == 1
    assert box_iou((0, 0, 0.5, 1), (0.25, 0, 0.75, 1)) == pytest.approx(1 / 3)
    assert box_iou((0, 0, 0.2, 0.2), (0.5, 0.5, 1, 1)) == 0


def test_the_most_alike_place_is_the_middle_of_the_thing() -> None:
    grid = np.zeros((20, 40))
    grid[5:9, 10:16] = 1
    grid[15, 35] = 1.0  # a lone cell is no thing of this size
    np.testing.assert_allclose(centre_most_like_target(grid, np.array([6 / 40, 4 / 20])), [13 / 40, 7 / 20], atol=0.03)


def test_an_unknown_target_is_skipped_or_refused() -> None:
    frames = as_frames([np.zeros((40, 60, 3), np.uint8)] * 2, 8.0)
    made = look(detections_by_look, frames, 8.0, target=None, when_unknown="skip")
    assert not len(made.index) and not len(made.frame)
    with pytest.raises(UsageError, match="when_unknown"):
        look(detections_by_look, frames, 8.0, target=None, when_unknown="guess")


# With the published weights


@cache
def filmed(seed: int, place: str, script: str) -> Film:
    return play(make_world(seed, place), script, size=(240, 416))


def looked_at(film: Film, kind: str, frames: list[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pictures of these frames, and the target's true masks."""
    made = [rgb for k, rgb in enumerate(generate(kind, film)) if k in set(frames)]
    true = [film.truth(k).mask == TARGET for k in frames]
    if kind == "vanish":
        true = [mask & (k < film.phases[1]) for k, mask in zip(frames, true, strict=True)]
    return made, true


def shared_part(mask: np.ndarray, true: np.ndarray) -> float:
    """Intersection over union."""
    return float((mask & true).sum() / max(1, (mask | true).sum()))


def followed(film: Film, kind: str, frames: list[int]) -> list[float | None]:
    """Overlap with the truth in each frame (0 where there is no target), None where it was not found."""
    pictures, true = looked_at(film, kind, frames)
    with runtime.inference():
        net = mobile_sam.network()
        seen = observers.cached_embeddings(net, as_frames(pictures))
        tracker = Tracker(net, pictures[0], film.target_box(), seen[0])
        found = [
            tracker.mask,
            *(tracker.next_mask(rgb, made) for rgb, made in zip(pictures[1:], seen[1:], strict=True)),
        ]
    return [None if mask is None else shared_part(mask, truth) for mask, truth in zip(found, true, strict=True)]


@pytest.mark.long
def test_masks_of_photographs_are_what_the_network_is_sure_of(small_weights: Path) -> None:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's photographs")
    with runtime.inference():
        net = mobile_sam.network()
        for photo, at, share, inside, outside in (
            (data.chelsea(), (220, 150), (0.5, 0.8), (150, 220), (20, 20)),
            (data.coffee(), (300, 180), (0.03, 0.5), (180, 300), (20, 20)),
        ):
            height, width = photo.shape[:2]
            seen = net.embed(runtime.channels_first_on_device([np.ascontiguousarray(photo)]))[0]
            answer = net.predict_masks(seen, points=[[(at[0] / width, at[1] / height)]], which="three")
            best = int(answer.iou[0].argmax())
            mask = answer.binary_masks_at()[0, best]
            assert float(answer.iou[0, best]) > 0.93
            assert share[0] < mask.mean() < share[1] and mask[inside] and not mask[outside]


@pytest.mark.slow
@pytest.mark.long
def test_a_rendered_target_is_cut_out(small_weights: Path) -> None:
    film = filmed(1, "yard", "yaw")
    pictures, true = looked_at(film, "perfect", [0])
    with runtime.inference():
        net = mobile_sam.network()
        cut = segment_things_in_boxes(
            net, net.embed(runtime.channels_first_on_device(pictures))[0], [film.target_box()]
        )[0]
    assert shared_part(cut.mask, true[0]) >= 0.85 and cut.expected > 0.9


@pytest.mark.slow
@pytest.mark.long
def test_a_target_is_found_again_a_repainted_one_too_and_a_vanished_one_is_not(small_weights: Path) -> None:
    film = filmed(0, "room", "yaw")
    away, back, last = sum(film.phases) // 2, film.phases[1] + 6, len(film) - 1
    found = followed(film, "perfect", [0, away, back, last])
    assert found[1] is None
    assert all(share is not None and share >= 0.85 for share in (found[0], found[2], found[3]))
    assert followed(film, "vanish", [0, away, back, last])[1:] == [None, None, None]
    painted = followed(film, "texture_drift", [0, away, last])
    assert painted[1] is None and painted[2] is not None and painted[2] >= 0.8


@pytest.mark.slow
@pytest.mark.long
def test_observers_share_their_work(small_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film = filmed(0, "room", "yaw")
    pictures, _ = looked_at(film, "perfect", [0, sum(film.phases) // 2, len(film) - 1])
    clip, target = as_frames(pictures, 16.0), Target("ball", film.target_box())
    masks = look(observers.target_masks, clip, 16.0, target=target)
    assert masks.mask.shape == (3, 240, 416) and list(masks.mask.any((1, 2))) == [True, False, True]
    monkeypatch.setattr(MobileSam, "embed", None)  # the embeddings are there already
    seen = look(detections_by_look, clip, 16.0, target=target)
    assert list(seen.frame) == [0, 2] and list(seen.index) == [0, 1, 2] and seen.prompt == observers.BOX
    assert (seen.score > 0.7).all() and (seen.score <= 1).all()
    np.testing.assert_allclose(seen.coverage, masks.mask[[0, 2]].mean((1, 2)))


@pytest.mark.long
def test_what_is_salient_is_the_thing_in_front(small_weights: Path) -> None:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's photographs")
    astronaut = data.astronaut()
    found = u2net.saliency_map(astronaut)
    assert found.shape == (320, 320) and found.min() == 0 and found.max() == 1
    assert found[60, 140] > 0.9 and found[20, 300] < 0.1  # her face; the wall
    box = u2net.largest_salient_box(astronaut)
    assert box is not None and box_iou(box, (0.0, 0.0, 0.85, 1.0)) > 0.7
    assert u2net.largest_salient_box(np.full((64, 64, 3), 128, np.uint8)) is None


@pytest.mark.slow
@pytest.mark.long
def test_clips_that_share_a_process_do_not_share_what_is_known_of_their_frames(
    small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embeddings are remembered by frame: two things in two clips are followed at the host as by themselves."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's pictures")
    from revisit.core import Clip
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
    from revisit.engine.worker_processes import Local, one_network_task_per_observer
    from revisit.evidence.target import ObjectMasks
    from revisit.media import Limits, clip_digest, encode_mp4

    monkeypatch.setenv("REVISIT_DEVICE", "cpu")
    jobs = []
    for name, picture in {"woman": data.astronaut(), "cat": data.chelsea()}.items():
        path = tmp_path / f"{name}.mp4"
        encode_mp4(path, [np.ascontiguousarray(picture[:256, x : x + 320]) for x in (40, 60)], 4)
        inputs = {"target": Target(name, (0.25, 0.05, 0.85, 0.95))}
        task = ObserverTask(name, "small.masks", "revisit.observers.masks", {"at_most": 2}, inputs)
        jobs.append(ObservingJob((ClipTask(clip_digest(Clip(path)), Clip(path), (task,)),), frozenset()))
    found: dict[tuple[str, str], ObjectMasks] = {}
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    for where, workers in (("here", 0), ("host", 2)):
        cache = EvidenceCache(tmp_path / where)
        for _, outcome in Local(workers)(iter(jobs), cache, Limits(), networks=one_network_task_per_observer(jobs)):
            assert not outcome.failed and not outcome.broken
        found |= {(where, name): cache.load(ObjectMasks, name) for name in ("woman", "cat")}
    for name in ("woman", "cat"):
        alone, served = found["here", name], found["host", name]
        assert alone.mask.any(axis=(1, 2)).all() and np.array_equal(alone.mask, served.mask)
    assert not np.array_equal(found["host", "woman"].mask, found["host", "cat"].mask)
