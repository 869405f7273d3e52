"""How an audit is run, and a name for the contents of the files that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revisit.engine.run import Progress as ObservationProgress
    from revisit.worlds.workers import Progress as RenderProgress

Content = dict[str, Any]  # of audit.json, horizon.json, sweep.json, steadiness.json, real.json and benchmarks.json


@dataclass(frozen=True)
class AuditOptions:
    """Options that all audits share."""

    set: str = "lite"
    metrics: Sequence[str] = ()  # all by default
    workers: int | None = None
    fresh: bool = False
    render_progress: RenderProgress | None = None  # of the films
    progress: ObservationProgress | None = None  # of the clips
