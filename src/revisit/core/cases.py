"""Case and Clip: what is evaluated, before any file is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from revisit.core.errors import UsageError
from revisit.core.reasons import Details, Reason

FRAME_RATE_OF_FOLDERS = 24.0
IN_MEMORY = "in memory"  # the folder that clips without a file are said to lie in
FAMILY = "family"  # the annotation that names what samples with the same first frame share
CATEGORY = "category"  # the annotation that says what made a clip, where no model did
FLOOR, CEILING = "floor", "ceiling"  # of a baseline without memory; of what stands for the truth
NEEDS_BOX = Reason(
    "no_target", "needs a box around the target, but only its name was given; --set paper finds it by name"
)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Frames that lie in memory: (count, height, width, 3) bytes. Equal only to itself."""

    rgb: np.ndarray

    def __repr__(self) -> str:
        count, height, width = self.rgb.shape[:3]
        return f"InMemory({count} frames of {width}x{height})"


@dataclass(frozen=True)
class Clip:
    """A video file, a folder of frames or frames in memory, or a stretch of one. Nothing is opened yet.

    Frames before `start`, and those after the first `count` from there, do not belong to the clip: its frames
    are numbered from 0 at `start`.

    Parameters
    ----------
    path
        The file or folder; of frames in memory only a name.
    fps
        Frames a second, for folders of frames, which carry no clock.
    start, count
        The stretch that is meant; `count` None is all that follows.
    disturbed
        A change that no viewer would notice, to try how steady verdicts are.
    decoding
        Whose pixels, where a protocol does not take Revisit's own.
    frames
        Frames in memory, in the place of a file.

    Examples
    --------
    >>> revisit.Clip(Path("videos/a.mp4"), start=24, count=48).path.name
    'a.mp4'
    """

    path: Path
    fps: float | None = None  # for folders of frames, which carry no clock
    start: int = 0
    count: int | None = None  # at most so many frames; None for all that follow
    disturbed: str = ""  # a change no viewer would notice (`media.perturb`), to try how steady verdicts are
    decoding: str = ""  # whose pixels, where a protocol does not take ours (`media.pixel_rules`)
    frames: InMemory | None = None  # in the place of a file; `path` is then only a name


@dataclass(frozen=True)
class Target:
    """The thing to remember, and where it is in the first frame.

    Parameters
    ----------
    name
        What it is called.
    box
        x0, y0, x1, y1 as fractions of the frame.
    point
        Where somebody pointed at it; the box is then a guess around it.

    Examples
    --------
    >>> revisit.Target("cup", (0.4, 0.5, 0.5, 0.7)).name
    'cup'
    """

    name: str
    box: tuple[float, float, float, float]
    point: tuple[float, float] | None = None


def target_from_box(box: Target | Sequence[float] | None) -> Target | None:
    """The target that is given as such, or as a box of fractions."""
    if box is None or isinstance(box, Target):
        return box
    ends = tuple(float(end) for end in box)
    if len(ends) != 4 or not (0 <= ends[0] < ends[2] <= 1 and 0 <= ends[1] < ends[3] <= 1):
        raise UsageError(f"a target is x0, y0, x1, y1 as fractions of the first frame, not {tuple(box)}")
    return Target("target", (ends[0], ends[1], ends[2], ends[3]))


@dataclass(frozen=True)
class Case:
    """A generated clip, what it was asked to show, and what it is compared with.

    Parameters
    ----------
    id
        `clip@model`, or `clip@model#seed`; each case has its own.
    suite, model, sample
        The benchmark, who made the clip, and the scene.
    clip, reference
        The clip, and the true video, where there is one.
    subset, condition, seed
        Which part of the dataset it belongs to, and how it was generated.
    prompt, camera
        The text and the camera script that the generator was given.
    target, target_name
        What to remember: a box in the first frame, or words for a detector where nobody said where it is.
    phases
        The first hidden and the first returned frame.
    align
        How the reference is aligned, where the dataset says it.
    annotations, artifacts
        What else the dataset says, and files that came with the clip, such as its poses.
    truth
        Whether the clip is the truth itself, which has a row of its own.

    Examples
    --------
    >>> case = revisit.Case("room@mine#3", "folder", "mine", "room", revisit.Clip(Path("room.mp4")), seed=3)
    >>> case.clip_name
    'room'
    """

    id: str
    suite: str
    model: str
    sample: str
    clip: Clip
    reference: Clip | None = None
    subset: str = ""
    condition: str = ""
    seed: int = 0
    prompt: str = ""
    camera: str = ""
    target: Target | None = None
    target_name: str = ""  # what to look for where the target has no box: words for a detector, attributes first
    phases: tuple[int, int] | None = None  # first hidden frame, first returned frame
    align: str = ""  # how the reference is aligned, where the dataset says it; else as the user asks
    annotations: Details = field(default_factory=dict)
    artifacts: Mapping[str, Path] = field(default_factory=dict)  # files that come with the clip, such as its poses
    truth: bool = False  # the clip is the truth itself: a row of its own, outside the contest of models

    @property
    def clip_name(self) -> str | None:
        """What this clip is called for every model: its id without the model and the seed; None where the id has none.

        Ids are `clip@model` or `clip@model#seed`. Two clips of one scene have two names.
        """
        for suffix in (f"@{self.model}#{self.seed}", f"@{self.model}"):
            if self.id.endswith(suffix):
                return self.id.removesuffix(suffix)
        return None

    @property
    def scene(self) -> str:
        """What clips share that are alike, and what intervals and tests count: the sample, or its family.

        Samples of one family begin with the same frame, such as the four events of a room in WRBench.
        """
        return str(self.annotations.get(FAMILY) or self.sample)

    @property
    def pairing_key(self) -> tuple[str | int, ...]:
        """Equal for clips of two models that are compared with each other: the same clip, by the same seed.

        A case whose id does not name its model is known by its scene and condition alone.
        """
        if self.clip_name is not None:
            return (self.clip_name, self.seed)
        return (self.subset, self.condition, self.sample, self.seed)

    @property
    def category(self) -> str:
        """`floor` or `ceiling` where no model made the clip; usually empty."""
        return str(self.annotations.get(CATEGORY) or "")

    @property
    def target_or_name(self) -> Target | str | None:
        """The target, or the words that name it where nobody said where it is: an input of observers."""
        return self.target or self.target_name or None


@dataclass(frozen=True)
class Remark:
    """A sentence on how a source was read, such as names that were guessed or files that were passed over."""

    sentence: str


@dataclass(frozen=True)
class Rejected:
    """An entry of a dataset that cannot become a case, and why.

    Parameters
    ----------
    id
        As a case would have it.
    reason
        A sentence for people.
    model, subset, condition
        As those of a case, where they are known.
    missing
        Whether the dataset expects the clip and nobody made it: counted in coverage, and no fault of the run.

    Examples
    --------
    >>> revisit.Rejected("room@mine", "there is no such video", missing=True).missing
    True
    """

    id: str
    reason: str
    model: str = ""
    subset: str = ""
    condition: str = ""
    missing: bool = False


def case_id(sample: str, model: str, seed: int) -> str:
    """`sample@model#seed`, unique within a run."""
    return f"{sample}@{model}#{seed}"


def clip_title(id: str) -> str:
    """A clip for people: `model, sample` of its id, with the seed where it has one; other ids as they are."""
    match = re.fullmatch(r"(?P<sample>.+)@(?P<model>[^@#]+)(?:#(?P<seed>-?\d+))?", id, re.DOTALL)
    if match is None:
        return id
    seed = f", seed {match['seed']}" if int(match["seed"] or 0) else ""
    return f"{match['model']}, {match['sample']}{seed}"
