"""Reasons: why there is no score, as one of a closed list of kinds and a sentence.

Code decides by the kind and never reads the sentence, which is for people. A kind that is `lacking` means that the
question could not even be asked: something was not given, or is not in the observer set or on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of reason: its name in tables, and what it means."""

    title: str
    meaning: str
    lacking: bool = False


KINDS: Mapping[str, Kind] = {
    # The question could not be asked.
    "no_reference": Kind("no reference", "no reference video was given for the clip", lacking=True),
    "no_target": Kind("no target", "nobody said what to remember, or where it is", lacking=True),
    "no_camera": Kind("no camera", "no camera request, or no file of poses, was given", lacking=True),
    "no_file": Kind("no file", "a file that the metric reads did not come with the clip", lacking=True),
    "no_judge": Kind("no judge", "only a judge can tell, and none was given", lacking=True),
    "not_in_set": Kind("not in this set", "no observer of the set makes the evidence", lacking=True),
    "not_installed": Kind("not installed", "weights or a library are not on this machine", lacking=True),
    # The test was not posed.
    "gate_closed": Kind("test not posed", "the clip does not pose the test, such as by never looking away"),
    "undecided": Kind("cannot tell", "whether the clip poses the test cannot be told"),
    "does_not_apply": Kind("does not apply", "the question is asked of other clips, such as those with a turn"),
    "nothing_happened": Kind("nothing happened", "no change went on unseen, so there is nothing to tell apart"),
    # The clip does not show enough.
    "too_short": Kind("too short", "too few frames, poses or steps"),
    "at_rest": Kind("camera at rest", "a camera, or what it is asked to do, hardly moves where a motion is compared"),
    "no_return": Kind("no return", "no view or place is seen a second time"),
    "not_seen": Kind("not seen", "the target, or any person, was not found in the frames that count"),
    "not_followed": Kind("not followed", "the camera, a place or the target could not be followed or told apart"),
    "no_phases": Kind("no phases", "nobody said when the target leaves and returns, and it was not found out"),
    "no_overlap": Kind("nothing to compare", "no frame has a counterpart it could be compared with"),
    # The evidence cannot be used.
    "not_observed": Kind("frames not observed", "frames that count were not observed"),
    "unanswered": Kind("unanswered", "the judge, or a person, gave no valid answer"),
    "untrusted": Kind("judge not trusted", "the judge failed a control question on this clip"),
    "other_settings": Kind("other settings", "the protocol takes another network, or other settings, than were run"),
    "refused": Kind("refused upstream", "the benchmark's own program refuses such a clip or file"),
    "mismatch": Kind("mismatch", "a file, or what the dataset says, does not fit the clip"),
    "unreadable": Kind("unreadable", "a file, or a camera request, that came with the clip cannot be understood"),
    "low_ceiling": Kind("truth scores low", "the truth itself scores low, so a low score of a model says nothing"),
    "unbounded": Kind("no finite number", "the measure has no finite value, such as PSNR of equal frames"),
    # There is no clip, or no answer.
    "missing": Kind("missing", "the dataset expects the clip, and nobody made it"),
    "failed": Kind("failed", "a fault: a broken clip, or an error in a metric"),
    "unsorted": Kind("other", "written before reasons had kinds"),
}


@dataclass(frozen=True)
class Reason:
    """Why there is no score: what clips have in common, and a sentence about this one."""

    kind: str
    sentence: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of reason; the kinds are {', '.join(KINDS)}")
        if not self.sentence:
            raise ValueError(f"a reason says in a sentence what was found; this one of kind {self.kind} is empty")

    @property
    def lacking(self) -> bool:
        """Whether the question could not even be asked."""
        return KINDS[self.kind].lacking

    def __str__(self) -> str:
        return self.sentence
