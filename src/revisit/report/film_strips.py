"""Film strips: pictures of a clip's frames, taken as they lie in the evidence cache; nothing is decoded here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from revisit.core import EVIDENCE, Clip, MediaError
from revisit.engine.cache import EvidenceCache
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.report.videos import Videos

SHOTS = 12
JUDGES = ("judge_answers", "probe_answers", "trigger_answer", "progress_ratings", "judgeability")
SHOWN = {
    *("thumbnails", "frame_facts", "target_track", "object_region", "object_masks", "pair_matches", "geometry_track"),
    *("judge_frames", *JUDGES),
}  # all evidence that a scene is made from; `incremental` checks that it is there
GONE = "The small pictures of this clip are no longer in the evidence cache; run the same eval command again."


@dataclass(frozen=True)
class FilmStrip:
    """The pictures there are of one clip, and where the report keeps those it shows."""

    pictures: Thumbnails
    name: str  # of the folder with its pictures

    def evenly_spread_frames(self) -> list[int]:
        """Frame numbers of about a dozen pictures from the first frame to the last."""
        at = np.linspace(0, len(self.pictures.index) - 1, min(SHOTS, len(self.pictures.index)))
        return [int(self.pictures.index[k]) for k in np.round(at).astype(int)]

    def nearest_pictured_frame(self, frame: int) -> int:
        """The frame nearest to `frame` of which there is a picture."""
        return int(self.pictures.index[self._row_nearest_to(frame)])

    def frame_at_share(self, share: float) -> int:
        """The frame at a share of the clip's length, as far as there are pictures."""
        return round(share * int(self.pictures.index[-1]))

    def picture_address(self, frame: int) -> str:
        """Where the picture of a frame lies, relative to the report."""
        return f"frames/{self.name}/{frame:06d}.jpg"

    def write_pictures(self, frames: Iterable[int], videos: Videos) -> None:
        """Keep the pictures of these frames as JPEG files, once each."""
        for frame in frames:
            picture = partial(self.pictures.picture, self._row_nearest_to(frame))
            videos.keep_picture(self.picture_address(frame), picture)

    def _row_nearest_to(self, frame: int) -> int:
        return int(np.abs(self.pictures.index - frame).argmin())


Clock = dict[str, Any]  # `frames`, `fps` and `size` (width, height) of a clip


def load_film_strip(evidence: Mapping[str, str], cache: EvidenceCache) -> FilmStrip | None:
    """The film of a clip or reference by the keys of its evidence; None where the cache has lost it, or it has none."""
    pictures: Thumbnails | None = load_evidence_or_none("thumbnails", evidence, cache)
    return FilmStrip(pictures, evidence["thumbnails"][:16]) if pictures is not None and len(pictures.index) else None


def load_clip_clock(evidence: Mapping[str, str], cache: EvidenceCache) -> Clock | None:
    """Number of frames, frame rate and size of a clip, if its facts are in the cache."""
    facts: FrameFacts | None = load_evidence_or_none("frame_facts", evidence, cache)
    if facts is None or not len(facts.index):
        return None
    return _make_clock(facts.frame_count, float(facts.fps), int(facts.width), int(facts.height))


@lru_cache(maxsize=4096)
def read_file_clock(clip: Clip) -> Clock | None:
    """The same from the file itself, of which no frame is decoded; None where it cannot be read."""
    from revisit.media import read_clip_info

    try:
        info = read_clip_info(clip)
    except (MediaError, OSError):
        return None
    return _make_clock(info.count, info.fps, info.width, info.height) if info.count else None


def _make_clock(frames: int, fps: float, width: int, height: int) -> Clock:
    return {"frames": frames, "fps": round(fps, 3), "size": [width, height]}


def safe_evidence_key(evidence: Mapping[str, str], kind: str) -> str | None:
    """The address of a piece of evidence; anything that is not a plain hash would lead out of the cache."""
    key = evidence.get(kind)
    return key if isinstance(key, str) and key.isascii() and key.isalnum() else None


def load_evidence_or_none(kind: str, evidence: Mapping[str, str], cache: EvidenceCache) -> Any:
    """The evidence of a kind, which a benchmark may have brought; None where there is none."""
    assert kind in SHOWN
    key = safe_evidence_key(evidence, kind)
    return cache.load(EVIDENCE[kind], key) if key and kind in EVIDENCE else None
