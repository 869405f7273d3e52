"""Questions of the builder: what is to be remembered in a clip, and the prompt that tells its story. Our own words."""

from __future__ import annotations

from revisit.judges.questions import Question, Record, Text


def subject() -> Question:
    """A short phrase for the target, and the prompt of the clip."""
    text = (
        "These are frames of one video, in order: the camera looks at something, turns away from it, and comes back. "
        "Name what it comes back to as a short noun phrase of at most six words, with an article and without a verb. "
        "Then tell the video in three or four sentences: what is seen at first, how the camera turns away and comes "
        "back, and what goes on with the thing meanwhile."
    )
    return Question("memobench.subject", text, Record({"subject": Text(60), "prompt": Text(900)}))
