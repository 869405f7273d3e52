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
from functools import partial
from pathlib import Path
from typing import Any

from revisit._version import __version__
from revisit.audit.schema import AuditOptions
from revisit.core import UsageError
from revisit.core.text import read_package_yaml
from revisit.engine.worker_processes import single_thread_environment
from revisit.media import encode_mp4
from revisit.results.record_files import write_json
from revisit.worlds.exam import Story
from revisit.worlds.failures import FAILURES, FLOORS, generate
from revisit.worlds.film import Film, play, resolve_camera_script, save_truth
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.workers import StepCallback, run_in_processes

SIZE = (240, 416)
FRAMES, FPS = 33, 8.0  # four seconds: as long as the clips that models make, and cheap to look at
GRID = 1  # raise it when the same seed gives another film: earlier clips are then rendered again
PERFECT, TRUTH = "perfect", "truth"
WORLDS = 1000  # added to a seed, so that no scene of the audit is one of the demo's
IN_TURN = read_package_yaml(__package__, "grid.yaml")


def story(seed: int) -> Story:
    """The story of a seed: places, scripts and targets cycle at different paces, so that they mix."""
    if seed < 0:
        raise UsageError(f"a seed must be 0 or more, not {seed}")
    cameras, targets_and_events = IN_TURN["cameras"], IN_TURN["targets_and_events"]
    turn = seed // len(targets_and_events)
    kind, event = targets_and_events[seed % len(targets_and_events)]
    place = "yard" if (seed + turn) % 3 == 1 else "room"
    return Story(place, kind, event, cameras[(seed + turn) % len(cameras)])


def grid_film(seed: int, *, size: tuple[int, int] = SIZE, away: int = 0) -> Film:
    """The film of a seed: 33 frames at 8 a second, and `away` more in the middle of the time away."""
    story_of_seed = story(seed)
    world = story_of_seed.world(WORLDS + seed)
    steps = resolve_camera_script(world, story_of_seed.script, FRAMES).split(",")
    if away:
        steps.insert(len(steps) // 2, f"hold@{away}")
    return play(world, ",".join(steps), story_of_seed.event, size, fps=FPS)


def scene_name(seed: int) -> str:
    """The name of a seed's scene, as the manifest and the folders call it."""
    return f"{seed:03d}-{story(seed).name}"


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
    options: AuditOptions = AuditOptions(),
) -> Path:
    """Render what is not there yet and return the path of the manifest, which lists just this grid.

    Strengths below 1 are rendered for the seeds in `middle`, by default for all. As many processes as the
    workers of the options render one scene each, by default as many as cores; with 0 this process does.
    """
    unknown = sorted(set(kinds) - set(FAILURES) - set(FLOORS) - {PERFECT})
    if unknown:
        raise UsageError(f"unknown failure {unknown[0]!r}; choose one of {', '.join([*FAILURES, *FLOORS])}")
    folder = Path(folder)
    facts = {"grid": GRID, "revisit": __version__, "size": list(size), "away": away}
    _clear_outdated_films(folder, facts, options.fresh)
    cells = [(PERFECT, 0.0)]
    cells += [(kind, strength) for kind in kinds if kind in FAILURES and kind != PERFECT for strength in strengths]
    cells += [(kind, 1.0) for kind in kinds if kind in FLOORS]
    full = [cell for cell in cells if cell[1] in (0.0, 1.0)]
    jobs = [(seed, cells if middle is None or seed in middle else full) for seed in dict.fromkeys(seeds)]
    steps = sum(len(cells_of_scene) + 1 for _, cells_of_scene in jobs)
    with single_thread_environment():
        render = partial(_render_grid_scene, folder, size, away)
        lines_by_scene = run_in_processes(render, jobs, options.workers, steps, options.render_progress)
    lines = [line for some in lines_by_scene for line in some]
    order = {model_name(*cell): position for position, cell in enumerate([(TRUTH, 0.0), *cells])}
    lines.sort(key=lambda line: (order[line["model"]], line["id"]))
    manifest = folder / "manifest.jsonl"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if not manifest.is_file() or manifest.read_text(encoding="utf-8") != text:
        manifest.write_text(text, encoding="utf-8")
    return manifest


def _clear_outdated_films(folder: Path, facts: Mapping[str, object], fresh: bool) -> None:
    """Throw away the clips of an earlier grid that was rendered otherwise."""
    path = folder / "grid.json"
    if path.is_file() and (fresh or json.loads(path.read_text(encoding="utf-8")) != facts):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, facts)


def _render_grid_scene(
    folder: Path, size: tuple[int, int], away: int, job: tuple[int, list[tuple[str, float]]], tell: StepCallback
) -> list[dict[str, Any]]:
    """Render what is missing of a scene, by its seed and its kinds with strengths; return lines of the manifest."""
    seed, cells = job
    name = scene_name(seed)
    truth = folder / TRUTH / f"{name}.mp4"
    card = truth.with_suffix(".json")  # written last: with it, the truth is there
    scene_film: Film | None = None  # where nothing is missing, no film is made
    if not card.is_file():
        scene_film = grid_film(seed, size=size, away=away)
        save_truth(scene_film, truth.with_suffix(".npz"))
        encode_mp4(truth, true_frames(scene_film), FPS)
        does_not_apply = [kind for kind, failure in FAILURES.items() if not failure.applies(scene_film)]
        scene = scene_film.manifest_line(name, seed)
        write_json(card, {"scene": scene, "frames": len(scene_film), "does_not_apply": does_not_apply})
    facts = json.loads(card.read_text(encoding="utf-8"))
    tell(f"{name}: truth")
    lines = [_manifest_line(facts, TRUTH, 0.0)]
    for kind, strength in cells:
        model = model_name(kind, strength)
        if kind in facts["does_not_apply"]:
            tell(f"{name}: {model} does not apply")
            continue
        line = _manifest_line(facts, kind, strength)
        if not (folder / line["video"]).is_file():
            scene_film = scene_film or grid_film(seed, size=size, away=away)
            encode_mp4(folder / line["video"], generate(kind, scene_film, strength, seed), FPS)
        lines.append(line)
        tell(f"{name}: {model}")
    return lines


def _manifest_line(facts: Mapping[str, Any], kind: str, strength: float) -> dict[str, Any]:
    """A clip's line of the manifest."""
    scene, model = facts["scene"], model_name(kind, strength)
    folder = TRUTH if kind == TRUTH else model
    annotations = {"kind": kind, "strength": strength}
    # what MemoBench's metrics ask of a case
    annotations |= {"frames": facts["frames"], "gt_frames": facts["frames"], "gt_phases": scene["phases"]}
    return {**scene, "model": model, "video": f"{folder}/{scene['id']}.mp4", "annotations": annotations}
