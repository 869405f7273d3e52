"""Names of frames: their order, and the frame numbers they carry."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

LONGEST_NUMBER = 9  # longer ones are time stamps, not frame numbers


def natural_sort_key(name: str) -> list[str | int]:
    """A key that sorts `frame_2` before `frame_10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def frame_numbers_from_names(names: Sequence[str]) -> np.ndarray:
    """Frame numbers (N,) of sorted names: the last number in each, or 0 to N-1 if these do not rise.

    A reconstruction leaves out images it could not place, so the position in a list says little.
    """
    matches = [re.search(r"([0-9]+)[^0-9/]*$", re.sub(r"\.[A-Za-z0-9]+$", "", name)) for name in names]
    texts = [match[1] for match in matches if match and len(match[1]) <= LONGEST_NUMBER]
    numbers = np.array([int(text) for text in texts])
    if len(texts) == len(names) and (np.diff(numbers) > 0).all():
        return numbers
    return np.arange(len(names))
