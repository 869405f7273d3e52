"""How fast worlds are made and filmed on one core, in CPU seconds, so that a busy machine changes little.

The ratio says what a model costs that shows the target in other states than the truth: nothing of the place is
drawn again for it.
"""

from __future__ import annotations

import time
from dataclasses import replace

from revisit.worlds import make_world, play

SIZE = (480, 832)
FRAMES = 41


def main() -> None:
    import cv2

    cv2.setNumThreads(1)
    for place in ("room", "yard"):
        started = time.process_time()
        world = make_world(0, place, "candle")
        made = time.process_time()
        film = play(world, f"yaw:{world.turn}:60@20,yaw:{_other(world.turn)}:60@20", "burning", SIZE)
        for frame in range(FRAMES):
            film.truth(frame)
        true = time.process_time()
        for frame in range(FRAMES):
            film.shot(frame, replace(film.states[frame], colour=0.5))
        wrong = time.process_time()
        print(
            f"{place:5} made in {made - started:4.1f} s; 480p at {FRAMES / (true - made):4.1f} frames/s, "
            f"{(true - made) / (wrong - true):4.1f} x as long as a model that gets the target's colours wrong"
        )


def _other(turn: str) -> str:
    return "left" if turn == "right" else "right"


if __name__ == "__main__":
    main()
