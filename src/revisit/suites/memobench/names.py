"""Names: clips, scenes and their spellings.

A synthetic clip is `{Scene}_{NNN}` (the scene is what stands before the last underscore), a real one `{NNN}`. People
leave out the zeros, put `real_` in front, or spell a scene differently; all of these mean the same clip.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SYNTHETIC, REAL = "Synthetic", "Real"
SCENES = (
    "Barnyard", "CityPark", "CityStreet", "Havana", "HongKong", "Japanese_Street", "Miami", "Middle_Age", "NYC_East",
    "NYstreet", "Nordic", "OldFactory", "WinterTown", "ZenGarden",
)  # fmt: skip
QUESTION_SCENES = {"ZenGarden": "Zen_Garden"}  # as the question bank spells them

_CLIP = re.compile(r"(?P<scene>.+)_(?P<number>\d{1,6})")
_REAL = re.compile(r"(?:real_?)?(?P<number>\d{1,6})", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class ClipName:
    """One clip of the dataset, whichever way its name is written."""

    subset: str
    scene: str  # "" for a real clip
    number: int

    @property
    def id(self) -> str:
        return f"{self.scene}_{self.number:03d}" if self.scene else f"{self.number:03d}"

    @property
    def title(self) -> str:
        """Unique in the dataset and readable alone."""
        return f"{self.subset}/{self.id}"

    @property
    def bank_scene(self) -> str:
        """The scene as the question bank spells it."""
        return QUESTION_SCENES.get(self.scene, self.scene) or self.subset

    @property
    def bank_name(self) -> str:
        """The name of its file in the question bank: Zen_Garden-10, Real-7. The published bank has no real clips."""
        return f"{self.bank_scene}-{self.number}"

    @property
    def question_key(self) -> str:
        """Its key in results of the public scripts: as in the bank, and the number alone of a real clip."""
        return self.bank_name if self.scene else str(self.number)

    @property
    def spellings(self) -> tuple[str, ...]:
        """Names that a folder or a file of this clip may have, the documented one first."""
        if self.scene:
            scenes = dict.fromkeys((self.scene, self.bank_scene))
            return tuple(dict.fromkeys(f"{s}_{n}" for n in (f"{self.number:03d}", str(self.number)) for s in scenes))
        numbers = dict.fromkeys((f"{self.number:03d}", str(self.number)))
        return tuple(f"{prefix}{n}" for prefix in ("", "real_", "Real_") for n in numbers)


def canonical_scene_name(name: str) -> str:
    """The scene as the dataset's folders spell it; unknown scenes stay as they are."""
    plain = lowercase_letters_and_digits(name)
    return next((scene for scene in SCENES if lowercase_letters_and_digits(scene) == plain), name)


def parse_clip_name(name: str, subset: str | None = None) -> ClipName | None:
    """The clip of a name such as `Barnyard_001`, `007`, `7` or `real_007`; None for any other name.

    `subset` says which of the two it must be, where the folder tells.
    """
    if subset != SYNTHETIC and (match := _REAL.fullmatch(name)):
        return ClipName(REAL, "", int(match["number"]))
    if subset != REAL and (match := _CLIP.fullmatch(name)):
        return ClipName(SYNTHETIC, canonical_scene_name(match["scene"]), int(match["number"]))
    return None


def possible_bank_file_stems(clip: str) -> tuple[str, ...]:
    """Names that a file of questions or answers about a clip may have, before its ending, the first one first."""
    name = parse_clip_name(clip)
    if name is None:
        return (clip,)
    return tuple(dict.fromkeys((name.bank_name, name.question_key, f"{name.scene or 'real'}-{name.number}", name.id)))


def lowercase_letters_and_digits(name: str) -> str:
    """The name in small letters, without spaces and signs."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
