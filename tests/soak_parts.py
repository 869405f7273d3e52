"""A metric with a small network, for the soak: a plugin, which workers and the host of the networks import, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np

from revisit.core import Batch, Score, evidence, metric, observer


@evidence(id="soak_levels")
@dataclass(frozen=True)
class SoakLevels:
    """What a network of one weight for each colour says of frames."""

    index: Annotated[np.ndarray, "N; rising"]
    level: Annotated[np.ndarray, "N; finite"]


@cache
def _network() -> Any:
    from revisit import weights
    from revisit.networks import runtime

    return weights.tensors(weights.file("soak"))["colours"].to(runtime.device())


@observer(id="soak.levels", version=1, kind="frame", makes=SoakLevels, weights=("soak",), sets=("lite",))
def soak_levels(batch: Batch) -> SoakLevels:
    """Weighted means of the colours of frames."""
    from revisit.networks import runtime

    with runtime.inference():
        level = (runtime.channels_first_on_device(batch.rgb).float().mean(dim=(2, 3)) / 255 * _network()).sum(dim=1)
    return SoakLevels(batch.index, runtime.to_numpy(level))


@metric(
    id="soak_level",
    version=1,
    title="Level",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    needs=(SoakLevels,),
    suites=("folder",),
    responds_to=("brightness",),
    blind_to=("everything else",),
)
def soak_level(seen: SoakLevels) -> Score:
    """Mean over all frames."""
    return Score(float(seen.level.mean()))
