"""Write the stored scores of `revisit verify` again, after metrics or observers have new versions.

`--clips` renders the clips, too. The stored scores are of their bytes, so this is seldom wanted.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

from revisit import __version__
from revisit.audit import golden
from revisit.core import import_registering_modules
from revisit.media import encode_mp4
from revisit.worlds import make_world, play
from revisit.worlds.failures import generate

CLIPS = Path(golden.__file__).with_name("clips")


def render() -> None:
    """A gift that is moved and opened while the camera looks away, as it is and as two models remember it."""
    film = play(make_world(0, "room", "gift"), "yaw", "both", size=(120, 208), frames=33)
    films = {
        "truth": (film.truth(frame).rgb for frame in range(33)),
        "perfect": generate("perfect", film, strength=0.0, seed=0),
        "resets": generate("state_reset", film, strength=1.0, seed=0),
    }
    lines = []
    for model, frames in films.items():
        encode_mp4(CLIPS / model / "gift.mp4", frames, fps=16, crf=26)
        if model != "truth":
            line = {"id": "gift", "model": model, "video": f"{model}/gift.mp4", "reference": "truth/gift.mp4"}
            target = {"name": "gift", "box": film.target_box()}
            lines.append({**line, "target": target, "camera": film.script, "phases": film.phases})
    (CLIPS / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    import_registering_modules()
    if "--clips" in sys.argv:
        render()
    made = {"revisit": __version__, "machine": platform.machine(), "answers": golden.score_golden_clips()}
    golden.SCORES.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
