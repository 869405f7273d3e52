"""Payloads: a camera path in the form that the loader of a generator takes, and what that loader makes of it.

Each module writes one form and reads it again from nothing but the files, by the rules of the loader; the reader tells
what is really delivered, which may be coarser than what was meant. To add a form, write a module with a `Family` and
add it to `FAMILIES`.
"""

from revisit.control.payloads.angles import ANGLES
from revisit.control.payloads.arrays import (
    ANCHORED_NPZ,
    BLENDER_NPZ,
    KEYS_FOLDER,
    LATENT_FOLDER,
    MULTIVIEW_NPZ,
    POSE_FOLDER,
    W2C_ARRAYS,
)
from revisit.control.payloads.conditions import RATES, UNITS
from revisit.control.payloads.documents import POSE_LINES, POSE_TABLE, SCENE_JSON, SPLIT_JSON, UNREAL_STRINGS
from revisit.control.payloads.family import Family, LoadedPath, PayloadError, PayloadRequest
from revisit.control.payloads.named import NAMED_MOVE
from revisit.control.payloads.text import CAMERA_TEXT
from revisit.control.payloads.tokens import TOKEN_LIST, TOKENS
from revisit.control.payloads.words import CAMERA_COMMANDS, PROMPT

FAMILIES: dict[str, Family] = {
    family.id: family
    for family in (
        CAMERA_TEXT, POSE_TABLE, LATENT_FOLDER, KEYS_FOLDER, BLENDER_NPZ, POSE_LINES, SCENE_JSON, SPLIT_JSON,
        UNREAL_STRINGS, ANCHORED_NPZ, POSE_FOLDER, MULTIVIEW_NPZ, ANGLES, TOKENS, TOKEN_LIST, RATES, UNITS, NAMED_MOVE,
        PROMPT, CAMERA_COMMANDS, W2C_ARRAYS,
    )
}  # fmt: skip

__all__ = ["FAMILIES", "Family", "LoadedPath", "PayloadError", "PayloadRequest"]
