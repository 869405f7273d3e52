"""Questions of the builder: how hard a video is on memory, what it shows, and its story in five parts.

MBench (arXiv 2606.00793, section 3) has a model choose videos by three challenges, describe them, and cut the
description into five consecutive parts. Our own wording.
"""

from __future__ import annotations

from revisit.judges.questions import Choice, Many, Number, Question, Rating, Record, Schema, Text

PARTS = 5
CHALLENGES = {
    "entity": "somebody or something is hidden for a while, changes its looks, or moves in a complicated way",
    "environment": "the camera moves a lot, the layout of the place changes, or the background is busy",
    "causal": "something changes its physical state, or one event leads to another",
}


def select() -> Question:
    """How much a video asks of each kind of memory."""
    listed = "\n".join(f"- {name}: {what}" for name, what in CHALLENGES.items())
    text = (
        "These are frames of one video, in order. A generator will have to go on with it and remember it. Rate for "
        f"each of these how much of it the video has, from 1 (none) to 5 (very much):\n{listed}"
    )
    return Question("mbench.select", text, Record({name: Rating() for name in CHALLENGES}))


def describe() -> Question:
    """What a video shows, and the one thing to remember."""
    text = (
        "These are frames of one video, in order. Describe the scene and what happens, with the looks and places of "
        "everybody and everything that matters, in the order of time. Name the one person or thing that is best "
        "followed: its kind, a short name, its core looks as single words or short phrases, and where the middle of it "
        "is in the first frame, from 0 (left, top) to 1 (right, bottom)."
    )
    fields: dict[str, Schema] = {
        "caption": Text(2000), "kind": Choice(("human", "object")), "name": Text(80),
        "attributes": Many(Text(60), 1, 6), "x": Number(), "y": Number(),
    }  # fmt: skip
    return Question("mbench.describe", text, Record(fields))


def segments(caption: str, name: str) -> Question:
    """The description in five consecutive parts, in which the target leaves and comes back."""
    text = (
        f"These are frames of one video, in order. It is described so: {caption}\nTell it in {PARTS} consecutive parts "
        "of about five seconds each, one short paragraph per part, without a word about the camera. In the second part "
        f"the {name} goes out of view, in the third it is not in view and time goes on, in the fourth it comes back "
        "into view, in the fifth it is fully there again, as it must be by then. Say what it looks like whenever it is "
        "in view."
    )
    return Question("mbench.segments", text, Many(Text(800), PARTS, PARTS))
