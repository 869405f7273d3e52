"""Contents of the files that audits write: audit.json, horizon.json, sweep.json, steadiness.json and real.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from revisit.results.cells import Interval

CellJson = Mapping[str, Any]  # a Cell as summary.json has it


class KindTitle(TypedDict):
    """A failure or a floor in words."""

    title: str
    what: str


class _Counts(TypedDict):
    n: int
    of: int


class Level(_Counts, total=False):
    """Mean score of a metric on clips of one model, and the chance that perfect memory scores better."""

    mean: float
    interval: Interval | None
    auc: float | None


class KindAudit(TypedDict):
    """AUC, effect and tau of a metric on one kind of failure."""

    claimed: bool
    n: int
    of: int
    auc: float | None
    tau: float | None
    effect: dict[str, float | None] | None
    read: str
    means: dict[str, Level]
    unscored: dict[str, int]
    response: str


class MetricProblem(TypedDict, total=False):
    """Something that a metric should do and does not."""

    metric: str
    problem: str
    kind: str | None
    sentence: str
    admitted: bool


class Specificity(TypedDict):
    """Failures that a metric does not claim, and those of them that leave its score alone."""

    quiet: list[str]
    of: int
    share: float | None


class MetricAudit(TypedDict):
    """What one metric does on every kind of failure and every floor."""

    title: str
    family: str
    version: int
    higher_is_better: bool | None
    memory: bool
    claims: list[str]
    untested_claims: list[str]
    blind_to: list[str]
    ceiling: Level
    perfect: Level
    floors: dict[str, Level]
    kinds: dict[str, KindAudit]
    specificity: Specificity
    failing: list[MetricProblem]


class Best(TypedDict):
    """The metric that separates one kind of failure best."""

    metric: str
    auc: float | None
    tau: float | None


class Diagonal(TypedDict):
    """The metrics that respond to one kind of failure."""

    passes: bool
    metrics: list[str]
    claimed: list[str]
    best: Best | None


class GridFacts(TypedDict):
    """The grid that was rendered, and how it was evaluated."""

    revisit: str
    set: str
    protocol: str
    seeds: list[int]
    scenes: list[str]
    strengths: list[float]
    seeds_of_all_strengths: list[int]
    clips: int
    frames: int
    fps: float
    size: list[int]
    failed: int


class KindScore(TypedDict):
    """How well one kind of failure is found."""

    clips: int
    found: int
    wrongly: int
    f1: float | None


class Examination(TypedDict):
    """F1 of every kind, and the confusion matrix."""

    macro_f1: float | None
    kinds: dict[str, KindScore]
    confusion: dict[str, dict[str, object]]


class AuditContent(TypedDict, total=False):
    """audit.json; the package keeps a part of it for the cards of the metrics."""

    grid: GridFacts
    kinds: dict[str, KindTitle]
    floors: dict[str, KindTitle]
    metrics: dict[str, MetricAudit]
    gates: dict[str, dict[str, dict[str, int]]]
    diagonal: dict[str, Diagonal]
    failing: list[MetricProblem]
    not_asked: dict[str, str]
    rules: dict[str, float]
    diagnosis: Examination


class ModelCurve(TypedDict):
    """Score of a model over the hidden interval."""

    points: Sequence[CellJson]  # with `gap` in seconds
    tau: float | None


class Curve(TypedDict):
    """One metric over the hidden interval."""

    title: str
    higher_is_better: bool | None
    range: list[float | None]
    models: dict[str, ModelCurve]


class HorizonContent(TypedDict):
    """horizon.json."""

    set: str
    fps: float
    scenes: list[str]
    forgotten_after: float
    curves: dict[str, Curve]


class SweptMetric(TypedDict):
    """A metric at one value of a parameter; tau is against the default."""

    models: dict[str, CellJson]
    tau_models: float | None
    tau_clips: float | None
    models_compared: int
    clips_compared: int


class SweepRow(TypedDict):
    """All metrics at one value of a parameter."""

    value: Any
    default: bool
    metrics: dict[str, SweptMetric]


class SweepContent(TypedDict):
    """One parameter of sweep.json."""

    suite: str
    protocol: str
    set: str
    parameter: str
    default: Any
    cases: int
    models: list[str]
    metrics: dict[str, dict[str, Any]]  # title, higher_is_better
    rows: list[SweepRow]
    read: str


class Flip(TypedDict):
    """A verdict that another one replaced under a disturbance."""

    case: str
    disturbed: str
    from_to: dict[str, list[str]]


class VerdictFlips(TypedDict):
    """How often one verdict was tried and flipped."""

    clips: int
    asked: int
    untold: int
    tried: int
    flips: list[Flip]
    rate: float
    interval: Interval | None


class SteadinessContent(TypedDict):
    """steadiness.json."""

    set: str
    source: str
    verdicts: dict[str, VerdictFlips]
    unread: dict[str, str]  # entry -> why it is no clip
    failed: dict[str, str]  # case -> why something of it failed: what it lacks is not counted as tried


class Outcomes(TypedDict):
    """Counts of right, wrong and undecided verdicts."""

    n: int
    right: int
    wrong: int
    undecided: int
    wrong_interval: Interval | None


class ByClipAndScene(TypedDict):
    """Outcomes by clips and by scenes."""

    clips: Outcomes
    scenes: Outcomes


class LabelledRow(TypedDict):
    """One clip: what people saw, and what the gate says."""

    clip: str
    scene: str
    source: str
    kind: str
    label: str
    said: str
    outcome: str
    confidence: float | None
    why: str | None


class ConfidenceLevel(TypedDict):
    """How often verdicts of one confidence are right."""

    confidence: float
    n: int
    right: int
    interval: Interval | None


class FrameErrors(TypedDict):
    """How far frames of leaving or returning are from those that people saw."""

    n: int
    median_seconds: float | None
    close: int


TargetOutcomes = TypedDict(
    "TargetOutcomes",
    {
        "all": ByClipAndScene,
        "kinds": dict[str, ByClipAndScene],
        "sources": dict[str, ByClipAndScene],
        "hides": ByClipAndScene,
        "always never hidden": ByClipAndScene,
        "confusion": dict[str, dict[str, int]],
        "calibration": list[ConfidenceLevel],
    },
)


class RealContent(TypedDict, total=False):
    """real.json."""

    set: str
    folders: list[str]
    clips: list[LabelledRow]
    target: TargetOutcomes
    frames: dict[str, FrameErrors]
    view: ByClipAndScene
    target_reappearance: dict[str, int]
    diagnosis: dict[str, dict[str, int]]
    flips: dict[str, VerdictFlips]
