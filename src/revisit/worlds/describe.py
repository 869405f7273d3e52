"""The public description of a film: what may be known about its scene, as pictures and numbers.

It holds the empty place as the camera script shows it, and the same with the target in each state that it can be in:
on its way through the event that the prompt asks for, at its other place, with its other look. It tells nothing of
any clip: no mask, no phase, no moment at which something happens, no pose but those of the script. A judge that reads
rendered clips (`revisit.judges.instrumented`) compares their pixels with these pictures.

views (v, h, w, 3)       the empty place in each view of the script; lit (v,) the share of the light that is on
marks (s, v, h, w, 3)    what the target in each of the states adds to a view, modulo 256: nearly all of it is 0
place (s, 3), look, amount (s,)   the states; went (s,) is the share of the event that lies behind each, -1 off its way
prompt, kind             words of the card
questions, asks, negate  questions about the target, what each asks for, and whether for its opposite
seconds                  how long the event takes; 0 where it happens at once and unseen
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.worlds.events import EVENTS, STEADY
from revisit.worlds.film import Film
from revisit.worlds.state import State

LONG_SIDE = 192  # pixels of a picture: the target is still some ten pixels wide
STEPS = 9  # states along a lasting event


def public_scene_description(film: Film) -> dict[str, np.ndarray]:
    """The public description of a film, as plain arrays."""
    event, questions = EVENTS[film.event], question_topics_and_negations(film)
    states = _target_states_with_event_share(film)
    # What sets one frame's view apart from another's: where the camera is, the light, and the screen.
    moments = zip(map(id, film.views), film.light.tolist(), film.screen.tolist(), strict=True)
    frames = list({moment: frame for frame, moment in enumerate(moments)}.values())
    views = np.stack([_shrink_to_long_side(film.shot(frame).rgb) for frame in frames])
    pictures = [[_shrink_to_long_side(film.shot(frame, state).rgb) for frame in frames] for state in states]
    return {
        "views": views,
        "lit": film.light[frames],
        "marks": np.array(pictures, np.uint8) - views,
        **{name: np.array([getattr(state, name) for state in states]) for name in ("place", "look", "amount")},
        "went": np.array(list(states.values())),
        "prompt": np.array(film.prompt),
        "kind": np.array(film.world.kind),
        "questions": np.array(list(questions)),
        "asks": np.array([ask for ask, _ in questions.values()]),
        "negate": np.array([negate for _, negate in questions.values()]),
        "seconds": np.float64(STEADY if event.in_view else 0.0),
    }


def question_topics_and_negations(film: Film) -> dict[str, tuple[str, bool]]:
    """Questions about the target of a film, each with what it asks for, and whether for its opposite."""
    subject, before = f"the {film.world.instances[1]}", f"The video was asked to show this: {film.prompt}"
    return {
        text.format(it=subject, before=before): (ask, bool(opposite))
        for ask, texts in read_package_yaml(__package__, "questions.yaml").items()
        for opposite, text in enumerate(texts)
    }


def _target_states_with_event_share(film: Film) -> dict[State, float]:
    """The states that the target can be in, each with the share of the event that lies behind it."""
    event, world = EVENTS[film.event], film.world
    before, after = event.state_before(world), event.state_after(world)
    shares = {before: 0.0, after: 1.0}
    if event.in_view:
        shares = {event.at(world, share * STEADY): float(share) for share in np.linspace(0, 1, STEPS)}
    places, amounts = (before.place, after.place, *world.places), (before.amount, after.amount)
    for place, look, amount in product(places, (0, 1), amounts):
        shares.setdefault(replace(before, place=place, look=look, amount=amount), -1.0)
    return shares


def _shrink_to_long_side(picture: np.ndarray) -> np.ndarray:
    import cv2

    scale = min(1.0, LONG_SIDE / max(picture.shape[:2]))
    size = round(picture.shape[1] * scale), round(picture.shape[0] * scale)
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))
