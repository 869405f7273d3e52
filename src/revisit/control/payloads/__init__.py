"""Payloads: a camera path in the form that a family of generators takes, and back.

Each module writes one family's file and reads it again from nothing but the file, by the format's public
convention; the reader tells what was really delivered, which may be coarser than what was meant. To add a family,
write a module with `FAMILY` and add it to `FAMILIES`.
"""

from revisit.control.payloads.actions import ACTIONS
from revisit.control.payloads.angles import ANGLES
from revisit.control.payloads.arrays import BLENDER_NPZ, RELATIVE_ROWS, W2C_ARRAYS
from revisit.control.payloads.documents import JSON_LINES, POSE_TABLE
from revisit.control.payloads.family import Delivered, Family
from revisit.control.payloads.text import CAMERA_TEXT
from revisit.control.payloads.tokens import TOKENS
from revisit.control.payloads.words import PROMPT

FAMILIES: dict[str, Family] = {
    family.id: family
    for family in (
        CAMERA_TEXT, W2C_ARRAYS, RELATIVE_ROWS, BLENDER_NPZ, JSON_LINES, POSE_TABLE, ANGLES, ACTIONS, TOKENS, PROMPT,
    )
}  # fmt: skip

__all__ = ["FAMILIES", "Delivered", "Family"]
