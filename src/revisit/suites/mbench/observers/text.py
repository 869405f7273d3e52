"""Frames and captions in one space, for the prompt interaction of MBench.

The clip is cut into as many equal segments as it has captions (one, its prompt, where it has none), and eight frames
of each are compared with its caption. MBench names OpenCLIP without a size: ViT-B/32 of LAION-2B is ours, and two more
are there to be named in a set of your own.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, register_observer_per_network
from revisit.geometry.fold_pairs import segment_bounds
from revisit.observers.pictures import feed_frames_in_groups
from revisit.suites.mbench.evidence import CaseAnnotations, TextFeatures

AT_ONCE = 16  # frames


def captions_of_segments(annotations: CaseAnnotations, prompt: str) -> list[str]:
    """The caption of each segment of a clip."""
    return [str(text) for text in annotations.get("segments") or ()] or ([prompt] if prompt.strip() else [])


def segment_by_sampled_frame(count: int, segments: int, per_segment: int) -> dict[int, int]:
    """Frame number → segment, so many frames of each segment."""
    bounds = segment_bounds(count, segments) if segments else np.zeros(1, int)
    return {
        int(frame): segment
        for segment, (start, end) in enumerate(pairwise(bounds.tolist()))
        if end > start
        for frame in np.linspace(start, end - 1, per_segment).round()
    }


def _sampled_frames_of_segments(
    count: int, fps: float, annotations: CaseAnnotations, prompt: str, *, per_segment: int
) -> np.ndarray:
    segments = len(captions_of_segments(annotations, prompt))
    return np.array(list(segment_by_sampled_frame(count, segments, per_segment)), dtype=np.int64)


@register_observer_per_network(
    {
        "paper.text": ("clip-vit-b-32-laion2b", "clip-vocabulary"),
        "paper.text_large": ("clip-vit-l-14-openai", "clip-vocabulary"),
        "paper.text_siglip": "siglip-base",
    },
    version=1, kind="sequence", makes=TextFeatures, inputs=("annotations", "prompt"),
    choose=_sampled_frames_of_segments,
)  # fmt: skip
def text_features(
    network: str, clip: ClipInfo, annotations: CaseAnnotations, prompt: str, *, per_segment: int = 8
) -> FrameStream:
    """Vectors of frames and of the captions of their segments by {network}."""
    from revisit.networks import clip as openclip
    from revisit.networks import runtime, siglip

    networks = siglip if network.startswith("siglip") else openclip
    captions = captions_of_segments(annotations, prompt)
    net = networks.network(network)
    belongs = segment_by_sampled_frame(clip.count, len(captions), per_segment)
    frames: list[int] = []
    vectors: list[np.ndarray] = []

    def describe_frames(batch: list[Frame]) -> None:
        frames.extend(frame.index for frame in batch)
        with runtime.inference(networks.HALF):
            pictures = runtime.channels_first_on_device([frame.rgb for frame in batch])
            vectors.append(runtime.to_numpy(net.images(pictures)))

    yield from feed_frames_in_groups(AT_ONCE, describe_frames)
    text, cut = np.zeros((0, 1), np.float32), False
    if captions:
        with runtime.inference(networks.HALF):
            text_vectors, cut = net.texts(captions)
        text = runtime.to_numpy(text_vectors)
    return TextFeatures(
        frame=np.array(frames, dtype=np.int64),
        segment=np.array([belongs[number] for number in frames], dtype=np.int64),
        image=np.concatenate([np.zeros((0, text.shape[1]), np.float32), *vectors]),
        text=text,
        cut=cut,
        maker=network,
    )
