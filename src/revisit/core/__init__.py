"""The basic types of Revisit: Case, Clip, Evidence, Observer, Metric, Gate, Suite, Score. It imports no other room."""

from revisit.core.cases import NEEDS_BOX, Case, Clip, Rejected, Remark, Target
from revisit.core.errors import (
    InvalidAnswer,
    InvalidEvidence,
    MediaError,
    MissingPrerequisite,
    RevisitError,
    UsageError,
)
from revisit.core.evidence import EVIDENCE, Array, evidence, evidence_id, from_arrays, to_arrays
from revisit.core.frame_metric import frame_metric
from revisit.core.frames import Batch, ClipInfo, Frame
from revisit.core.metric import DERIVED, GATES, METRICS, Derived, Gate, Metric, PublishedMaker, derived, gate, metric
from revisit.core.observer import (
    ANY_SET,
    OBSERVERS,
    FrameStream,
    Observer,
    PairStream,
    Sampling,
    every,
    observer,
    per_second,
    register_observer_per_network,
)
from revisit.core.protocol import digest
from revisit.core.reasons import KINDS, Reason
from revisit.core.records import Record
from revisit.core.registry import import_registering_modules
from revisit.core.scores import GateResult, NoScore, Score, Series, Unscored
from revisit.core.suites import SUITES, Suite, suite
