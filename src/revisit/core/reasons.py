"""Reasons: why there is no score, as one of a closed list of kinds and a sentence.

Code decides by the kind and never reads the sentence, which is for people. A kind that is `lacking` means that the
question could not even be asked: something was not given, or is not in the observer set or on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Details = Mapping[str, Any]  # facts by name, as JSON has them: numbers, texts, lists and mappings


@dataclass(frozen=True)
class ReasonKind:
    """A kind of reason: its name in tables, and what it means."""

    title: str
    meaning: str
    lacking: bool = False


KINDS: Mapping[str, ReasonKind] = {
    # The question could not be asked.
    "no_reference": ReasonKind("no reference", "no reference video was given for the clip", lacking=True),
    "no_target": ReasonKind("no target", "no target was given, or not where it is", lacking=True),
    "no_camera": ReasonKind("no camera", "no camera script, path or pose file was given", lacking=True),
    "no_file": ReasonKind("no file", "a file that the metric needs was not given with the clip", lacking=True),
    "no_judge": ReasonKind("no judge", "the metric needs a judge, and none was given", lacking=True),
    "not_in_set": ReasonKind("not in this set", "the observer set has no observer for the evidence", lacking=True),
    "not_installed": ReasonKind(
        "not installed", "weights or a library are not installed on this machine", lacking=True
    ),
    # The test was not posed.
    "gate_closed": ReasonKind(
        "test not posed", "the clip does not pose the test, for example because the camera never looks away"
    ),
    "undecided": ReasonKind("cannot tell", "it is unclear whether the clip poses the test"),
    "does_not_apply": ReasonKind("does not apply", "the metric is for other clips, such as those with a turn"),
    "nothing_happened": ReasonKind(
        "nothing happened", "nothing changed while out of view, so there is nothing to check"
    ),
    # The clip does not show enough.
    "too_few": ReasonKind("too few", "too few clips or scenes for a number that can be trusted"),
    "too_short": ReasonKind("too short", "too few frames, poses or steps"),
    "at_rest": ReasonKind(
        "camera at rest", "the camera, or the requested path, hardly moves, so no motion can be compared"
    ),
    "no_return": ReasonKind("no return", "no view or place is seen again"),
    "not_seen": ReasonKind("not seen", "the target, or a person, was not found in the frames that count"),
    "not_followed": ReasonKind("not followed", "the camera, a place or the target could not be tracked or recognised"),
    "no_phases": ReasonKind(
        "no phases", "it was not given when the target leaves and returns, and it could not be detected"
    ),
    "no_overlap": ReasonKind("nothing to compare", "no frame has a matching frame to compare with"),
    # The evidence cannot be used.
    "not_observed": ReasonKind("frames not observed", "frames that count were not observed"),
    "unanswered": ReasonKind("unanswered", "the judge, or a person, gave no valid answer"),
    "untrusted": ReasonKind("judge not trusted", "the judge failed a control question on this clip"),
    "other_settings": ReasonKind("other settings", "the protocol needs a different network or different settings"),
    "refused": ReasonKind("refused upstream", "the benchmark's own program rejects such a clip or file"),
    "mismatch": ReasonKind("mismatch", "a file, or the dataset's data, does not fit the clip"),
    "unreadable": ReasonKind("unreadable", "a file or camera script given with the clip cannot be read"),
    "low_ceiling": ReasonKind(
        "truth scores low", "the truth itself scores low, so a low score of a model says nothing"
    ),
    "unbounded": ReasonKind("no finite number", "the metric has no finite value, such as PSNR of identical frames"),
    # There is no clip, or no answer.
    "missing": ReasonKind("missing", "the dataset expects the clip, but it was not generated"),
    "failed": ReasonKind("failed", "an error: a broken clip, or a bug in a metric"),
}


@dataclass(frozen=True)
class Reason:
    """Why there is no score: a kind of a closed list, by which clips are counted, and a sentence about this one.

    Parameters
    ----------
    kind
        Such as "too_short" or "no_reference"; docs/reasons.md has the list.
    sentence
        What was found, for people. No code reads it.

    Raises
    ------
    ValueError
        If the kind is not of the list, or the sentence is empty.

    Examples
    --------
    >>> reason = revisit.Reason("no_reference", "no reference video was given for this case")
    >>> reason.lacking
    True
    """

    kind: str
    sentence: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of reason; the kinds are {', '.join(KINDS)}")
        if not self.sentence:
            raise ValueError(
                f"a reason needs a sentence that says what was found; the one of kind {self.kind} is empty"
            )

    @property
    def lacking(self) -> bool:
        """Whether the question could not even be asked."""
        return KINDS[self.kind].lacking

    def __str__(self) -> str:
        return self.sentence
