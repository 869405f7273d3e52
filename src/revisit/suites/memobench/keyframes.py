"""Key frames: when the object leaves and returns in a generated clip, from the frames marked in the ground truth.

The marks are carried over by the share of the length, rounded half to even, and kept apart: at least two frames before
the object leaves, two while it is hidden, and one after it has returned. Which frames are compared with which is in
`revisit.core.phase_pairs`.
"""

from __future__ import annotations

FEWEST_FRAMES = 5  # with fewer, the rule below puts the return behind the last frame


def key_frames(exits: int, returns: int, true_frames: int, frames: int) -> tuple[int, int]:
    """(first hidden frame, first returned frame) of a clip of `frames` frames."""
    hidden = max(2, min(round(exits / true_frames * frames), frames - 4))
    returned = max(hidden + 2, min(round(returns / true_frames * frames), frames - 1))
    return hidden, returned


def problem_of(exits: int, returns: int, true_frames: int) -> str | None:
    """What is wrong with the marks of a clip, as a sentence, or None."""
    if 0 <= exits < returns <= true_frames:
        return None
    return (
        f"the sheet says that the object leaves at frame {exits} and returns at {returns}, "
        f"but the ground truth has {true_frames} frames; expected 0 <= leaves < returns <= {true_frames}"
    )
