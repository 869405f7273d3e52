"""Global memory of the geometry of a whole clip, and how good it looks: both from files of the networks.

global    points of every frame in every other: their distance to what is reconstructed there, in median depths;
          100 / (1 + median / 0.05), and a model's is that of the mean of its clips' medians
quality   100 (x - 1) / 4 of OneAlign's rating x from 1 to 5
"""

from __future__ import annotations

import math

from revisit.core import Metric, PublishedMaker, Score, Series, Unscored, metric
from revisit.suites.worldmark.evidence import GeometryError, VideoRating
from revisit.suites.worldmark.metrics.control import CARD

SCALE = 0.05  # of the median depth
VGGT = PublishedMaker("VGGT-Omega", "geometry_by", ("vggt-omega", "vggtomega"))
ONE_ALIGN = PublishedMaker("OneAlign", "rated_by", ("onealign", "one-align", "q-align", "qalign"))


@metric(
    id="worldmark_global", version=1, title="Global memory", needs=(GeometryError,), upstream="Global",
    published_by=(VGGT,), responds_to=("geometry that changes", "another place"),
    blind_to=("frozen camera", "colour"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def global_memory_score(geometry: GeometryError) -> Score | Unscored:
    """100 / (1 + e / 0.05), e the median distance of points to what other frames reconstruct there."""
    facts = {"error": geometry.median, "shared": geometry.shared, "geometry_by": geometry.maker}
    if not math.isfinite(geometry.median):
        return Unscored("no_overlap", "no point is seen by two frames", {**facts, "error": None, "shared": 0.0})
    rows = [k for k, error in enumerate(geometry.error.tolist()) if math.isfinite(error)]
    units = Series(frame=geometry.index[rows], value=geometry.error[rows])
    return Score(100 / (1 + geometry.median / SCALE), raw=geometry.median, units=units, facts=facts)


def register_rating_metric(part: str, title: str, column: str) -> Metric:
    """The metric of one of the two ratings."""

    def score_rating(rating: VideoRating) -> Score | Unscored:
        value = float(getattr(rating, part))
        if not math.isfinite(value):
            return Unscored("unreadable", f"the rating of {part} is no number")
        return Score(min(max(25 * (value - 1), 0.0), 100.0), raw=value, facts={"rated_by": rating.maker})

    return metric(
        id=f"worldmark_{part}", version=1, title=title, needs=(VideoRating,), upstream=column,
        published_by=(ONE_ALIGN,), **CARD,
        responds_to=("blur", "noise", "ugly frames"), blind_to=("memory", "camera"),
        doc="100 (x - 1) / 4 of OneAlign's rating x of one frame a second.",
    )(score_rating)  # fmt: skip


quality = register_rating_metric("quality", "Perceptual quality", "QA_q")
aesthetic = register_rating_metric("aesthetic", "Aesthetic quality", "QA_a")
