"""Grid: small films with known faults at chosen strengths, as a folder that the folder suite reads.

<kind>@<strength>/<scene>.mp4   what a model with that fault makes of the scene; perfect@0 has none
truth/<scene>.mp4, .npz         the scene as it is; the model truth@0 is the reference compared with itself
manifest.jsonl                  one line per clip

A scene is a seed: it chooses the place, the target, what happens to it, and how the camera moves. Films are
small and short on purpose, so that a grid of hundreds fits in minutes. Rendering goes on where it stopped:
a clip that is there is whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import revisit
from revisit.core import UsageError
from revisit.engine.worker_processes import one_thread_each
from revisit.media import encode_mp4
from revisit.results.record_files import write_json
from revisit.worlds.events import EVENTS
from revisit.worlds.exam import Story
from revisit.worlds.film import ClipLine, Film, SceneLine, play
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.places import make_world
from revisit.worlds.scripts import script_text
from revisit.worlds.truth import save_truth
from revisit.worlds.workers import Progress, StepCallback, run_in_processes

SIZE = (240, 416)
FRAMES, FPS = 33, 8.0  # four seconds: as long as the clips that models make, and cheap to look at
GRID = 1  # raise it when the same seed gives another film: earlier clips are then rendered again
PERFECT, TRUTH = "perfect", "truth"
WORLDS = 1000  # added to a seed, so that no scene of the audit is one of the demo's
# In all of them the camera itself looks away and back, which most memory metrics ask for.
CAMERAS = ("yaw", "yaw", "orbit", "yaw", "tilt", "yaw", "pan")
# Lasting events, which begin in view, come first and often: half of the failures of state need one.
TARGETS_AND_EVENTS = (
    ("cup", "filling"), ("gift", "moved"), ("ball", "rolling"), ("candle", "burning"), ("vase", "changed"),
    ("rocket", "none"), ("chest", "opening"), ("figure", "moved"), ("snowman", "melting"), ("ball", "both"),
    ("plant", "growing"), ("rocket", "falling"), ("figure", "none"),
)  # fmt: skip


def story(seed: int) -> Story:
    """The story of a seed: places, scripts and targets cycle at different paces, so that they mix."""
    if seed < 0:
        raise UsageError(f"a seed must be 0 or more, not {seed}")
    turn = seed // len(TARGETS_AND_EVENTS)
    kind, event = TARGETS_AND_EVENTS[seed % len(TARGETS_AND_EVENTS)]
    place = "yard" if (seed + turn) % 3 == 1 else "room"
    return Story(place, kind, event, CAMERAS[(seed + turn) % len(CAMERAS)])


def film(seed: int, *, size: tuple[int, int] = SIZE, away: int = 0) -> Film:
    """The film of a seed: 33 frames at 8 a second, and `away` more in the middle of the time away."""
    story_of_seed = story(seed)
    world = make_world(
        WORLDS + seed, story_of_seed.place, story_of_seed.kind, block=EVENTS[story_of_seed.event].needs_perch
    )
    steps = script_text(world, story_of_seed.script, FRAMES).split(",")
    if away:
        steps.insert(len(steps) // 2, f"hold@{away}")
    return play(world, ",".join(steps), story_of_seed.event, size, fps=FPS)


def scene_name(seed: int) -> str:
    """The name of a seed's scene, as the manifest and the folders call it."""
    story_of_seed = story(seed)
    return f"{seed:03d}-{story_of_seed.kind}-{story_of_seed.event}-{story_of_seed.script}"


def model_name(kind: str, strength: float) -> str:
    """`kind@strength`, as the manifest calls it."""
    return f"{kind}@{strength:g}"


def render_grid(
    folder: Path,
    kinds: Sequence[str],
    strengths: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    seeds: Sequence[int] = range(6),
    *,
    middle: Sequence[int] | None = None,
    size: tuple[int, int] = SIZE,
    away: int = 0,
    workers: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Render what is not there yet and return the path of the manifest, which lists just this grid.

    Strengths below 1 are rendered for the seeds in `middle`, by default for all. `workers` processes render one
    scene each, by default as many as cores; 0 renders in this process.
    """
    from revisit.worlds.failures import FAILURES, FLOORS

    unknown = sorted(set(kinds) - set(FAILURES) - set(FLOORS) - {PERFECT})
    if unknown:
        raise UsageError(f"unknown failure {unknown[0]!r}; choose one of {', '.join([*FAILURES, *FLOORS])}")
    folder = Path(folder)
    _same_films(folder, {"grid": GRID, "revisit": revisit.__version__, "size": list(size), "away": away}, fresh)
    cells = [(PERFECT, 0.0)]
    cells += [(kind, strength) for kind in kinds if kind in FAILURES and kind != PERFECT for strength in strengths]
    cells += [(kind, 1.0) for kind in kinds if kind in FLOORS]
    full = [cell for cell in cells if cell[1] in (0.0, 1.0)]
    jobs = [
        GridJob(folder, seed, tuple(cells if middle is None or seed in middle else full), size, away)
        for seed in dict.fromkeys(seeds)
    ]
    steps = sum(len(job.cells) + 1 for job in jobs)
    with one_thread_each():
        lines_by_scene = run_in_processes(_shoot, jobs, workers, steps, progress)
    lines = [line for some in lines_by_scene for line in some]
    order = {model_name(*cell): position for position, cell in enumerate([(TRUTH, 0.0), *cells])}
    lines.sort(key=lambda line: (order[line["model"]], line["id"]))
    manifest = folder / "manifest.jsonl"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if not manifest.is_file() or manifest.read_text(encoding="utf-8") != text:
        manifest.write_text(text, encoding="utf-8")
    return manifest


@dataclass(frozen=True)
class GridJob:
    """All clips of one scene."""

    folder: Path
    seed: int
    cells: tuple[tuple[str, float], ...]  # kind, strength
    size: tuple[int, int]
    away: int


class GridLine(ClipLine):
    """A clip's line of the manifest, with the fault of its model."""

    annotations: dict[str, object]


class SceneCard(TypedDict):
    """What the manifest says of a scene, and which failures have nothing to fail at in it."""

    scene: SceneLine
    frames: int
    does_not_apply: list[str]


def _same_films(folder: Path, facts: Mapping[str, object], fresh: bool) -> None:
    """Throw away the clips of an earlier grid that was rendered otherwise."""
    path = folder / "grid.json"
    if path.is_file() and (fresh or json.loads(path.read_text(encoding="utf-8")) != facts):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, facts)


def _shoot(job: GridJob, tell: StepCallback) -> list[GridLine]:
    """Render what is missing of a scene, and return its lines of the manifest; where nothing is, no film is made."""
    from revisit.worlds.failures import generate

    name = scene_name(job.seed)
    truth = job.folder / TRUTH / f"{name}.mp4"
    card = truth.with_suffix(".json")  # written last: with it, the truth is there
    scene_film: Film | None = None
    if not card.is_file():
        scene_film = film(job.seed, size=job.size, away=job.away)
        save_truth(scene_film, truth.with_suffix(".npz"))
        encode_mp4(truth, true_frames(scene_film), FPS)
        write_json(card, _card(scene_film, name, job.seed))
    facts: SceneCard = json.loads(card.read_text(encoding="utf-8"))
    tell(f"{name}: truth")
    lines = [_line(facts, TRUTH, 0.0)]
    for kind, strength in job.cells:
        model = model_name(kind, strength)
        if kind in facts["does_not_apply"]:
            tell(f"{name}: {model} does not apply")
            continue
        line = _line(facts, kind, strength)
        if not (job.folder / line["video"]).is_file():
            scene_film = scene_film or film(job.seed, size=job.size, away=job.away)
            encode_mp4(job.folder / line["video"], generate(kind, scene_film, strength, job.seed), FPS)
        lines.append(line)
        tell(f"{name}: {model}")
    return lines


def _card(scene_film: Film, name: str, seed: int) -> SceneCard:
    from revisit.worlds.failures import FAILURES

    return {
        "scene": scene_film.line(name, seed),
        "frames": len(scene_film),
        "does_not_apply": [kind for kind, failure in FAILURES.items() if not failure.applies(scene_film)],
    }


def _line(facts: SceneCard, kind: str, strength: float) -> GridLine:
    """A clip's line of the manifest."""
    scene, model = facts["scene"], model_name(kind, strength)
    folder = TRUTH if kind == TRUTH else model
    annotations: dict[str, object] = {"kind": kind, "strength": strength}
    # what MemoBench's metrics ask of a case
    annotations |= {"frames": facts["frames"], "gt_frames": facts["frames"], "gt_phases": scene["phases"]}
    return {**scene, "model": model, "video": f"{folder}/{scene['id']}.mp4", "annotations": annotations}
