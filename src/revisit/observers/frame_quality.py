"""Ratings of single frames by networks: beauty and technical quality (docs/networks.md)."""

from __future__ import annotations

from revisit.core import Batch, observer
from revisit.evidence.appearance import AestheticQuality, ImagingQuality

MIND_SIZE = 720, 1280
CLIP = "clip-vit-l-14-openai"


@observer(
    id="paper.aesthetic_mind", version=2, kind="frame", makes=AestheticQuality, weights=(CLIP, "laion-aesthetic-v1")
)
def aesthetic_quality_as_mind(batch: Batch) -> AestheticQuality:
    """Beauty of every frame by LAION's linear predictor, over 10."""
    from revisit.networks import aesthetic, clip, runtime
    from revisit.networks.preprocessing import resize_to_cover_and_crop

    head, net = runtime.network("laion-aesthetic-v1", aesthetic.load_aesthetic_head), clip.network(CLIP)
    with runtime.inference(clip.HALF):
        pictures = resize_to_cover_and_crop(runtime.channels_first_on_device(batch.rgb), MIND_SIZE)
        vectors = net.embed_preprocessed(aesthetic.preprocess_for_clip_without_antialias(pictures, net.side))
    with runtime.inference():
        value = aesthetic.aesthetic_scores(head, vectors)
    return AestheticQuality(batch.index, runtime.to_numpy(value) / 10, "laion-aesthetic-v1")


@observer(id="paper.imaging", version=2, kind="frame", makes=ImagingQuality, weights=("musiq-spaq",))
def imaging_quality_by_musiq(batch: Batch) -> ImagingQuality:
    """Technical quality of every frame by MUSIQ, 0 to 1."""
    from revisit.networks import musiq, runtime
    from revisit.networks.preprocessing import resize_to_cover_and_crop

    net = runtime.network("musiq-spaq", musiq.load)
    with runtime.inference():
        value = net(resize_to_cover_and_crop(runtime.channels_first_on_device(batch.rgb), MIND_SIZE) / 255)
    return ImagingQuality(batch.index, runtime.to_numpy(value) / 100, "musiq-spaq")
