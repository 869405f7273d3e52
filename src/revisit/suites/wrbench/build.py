"""Build: scene families in the layout of the published prompts, from a file of scenes.

Scenes are written as in scenes.yaml: a place, a subject, what it deals with, two fixed things behind it, and four
events that cross two factors (does the subject move, does its state change), each with what the generator is told and
what must be seen in the end. A scene may bring texts of its own: `picture`, and `prompt` of an event (generated_text).
First frames are drawn by the user's own text-to-image command, or by a server. What must be seen in the end may not be
told: `prompts_revealing_end_or_camera` finds prompts that do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from revisit.core import UsageError
from revisit.core.text import convert_read_errors, parse_yaml
from revisit.media import file_digest
from revisit.media.files import write_json_lines
from revisit.suites import authoring
from revisit.suites.wrbench.prompts import (
    CAMERA_WORDS,
    EVENTS,
    STYLE,
    TIERS,
    WORDS,
    EventTask,
    Scene,
    event_tasks_of_families,
)

GAPS = ("none", "static", "yaw_LR", "yaw_RL")
TIER_OF = {factor: tier for tier, factor in TIERS.items()}
NEEDED = ("place", "subject", "then", "with", "behind", *EVENTS)
CAMERA = re.compile(r"\b(camera|pans?|panning|zooms?|zooming|dolly|yaw|tilts?|orbits?|tracking shot)\b", re.IGNORECASE)
FIRST_FRAMES = "first_frames"
SIZE = (1294, 712)  # width and height of the published first frames
Draw = Callable[[Mapping[str, str], Path], Mapping[str, str]]
RUN = 5  # words in a row of the end that a prompt may not hold


def read_scene_families(path: Path) -> dict[str, Scene]:
    """The families of a file of scenes."""
    with convert_read_errors(path, "a file with `families:` and a scene under each name"):
        families = parse_yaml(path.read_text(encoding="utf-8"))["families"]
        for name, facts in families.items():
            lacks = ", ".join(key for key in NEEDED if key not in facts)
            if lacks or not re.fullmatch(r"[a-z0-9_]+", str(name)) or len(facts["behind"]) != 2:
                raise UsageError(f"{path}: the family {name} lacks {lacks or 'a plain name or two anchors'}")
            for event in EVENTS:
                if not {"told", "ends"} <= set(facts[event]):
                    raise UsageError(f"{path}: {name}.{event} needs `told` and `ends`")
    return dict(families)


def first_frame_prompt(facts: Scene) -> str:
    """What a text-to-image model is told: the scene's own `picture`, or our words for its layout."""
    if facts.get("picture"):
        return str(facts["picture"])
    one, other = facts["behind"]
    return str(WORDS["first_frame"].format_map({**facts, "style": STYLE, "one": one, "other": other}))


def prompts_revealing_end_or_camera(families: Mapping[str, Scene]) -> list[str]:
    """Prompts that tell the end, or speak of the camera where no camera is asked for, as sentences."""
    problems = []
    for task in event_tasks_of_families(families):
        prompts = {"the prompt": task.prompt, "the prompt without a first frame": task.from_nothing}
        for what, prompt in prompts.items():
            if shared := _first_ending_phrase_in_prompt(task.expected, prompt):
                problems.append(f"{task.id}: {what} tells how it ends: {shared!r}")
            if spoken := CAMERA.search(prompt):
                problems.append(f"{task.id}: {what} speaks of the camera: {spoken[0]!r}")
    return problems


def _first_ending_phrase_in_prompt(end: str, prompt: str) -> str:
    """Words in a row that both have, if they are RUN or more, or all of the end."""
    words, prompt_words = (re.findall(r"[a-z0-9']+", text.lower()) for text in (end, prompt))
    text = f" {' '.join(prompt_words)} "
    length = min(RUN, len(words))
    runs = [" ".join(words[k : k + length]) for k in range(len(words) - length + 1)]
    return next((run for run in runs if f" {run} " in text), "")


def write_wrbench_dataset(
    root: Path, families: Mapping[str, Scene], *, licence: str, source: str, draw: Draw | None = None,
) -> tuple[Path, list[str]]:  # fmt: skip
    """The files of some families, and what could not be drawn. Prompts that leak are refused.

    `draw` is given the prompts by the names of families and a folder, and returns why some have no picture.
    """
    if leak_notes := prompts_revealing_end_or_camera(families):
        raise UsageError(f"{len(leak_notes)} prompts give away what must not be told: {'; '.join(leak_notes[:3])}")
    authoring.make_empty_folder(root)
    prompts = {name: first_frame_prompt(facts) for name, facts in families.items()}
    trouble = {} if draw is None else draw(prompts, root / FIRST_FRAMES)
    notes = [f"{name}: no first frame: {why}" for name, why in trouble.items()]
    write_json_lines(root / "families.jsonl", [_family_row(name, facts) for name, facts in families.items()])
    tasks = event_tasks_of_families(families)
    write_json_lines(root / "variants.jsonl", [_variant_row(task, gap) for task in tasks for gap in GAPS])
    write_json_lines(root / "t2v_event_tails.jsonl", [_event_tail_row(task, gap) for task in tasks for gap in GAPS])
    write_json_lines(root / "t2v_layout_anchors.jsonl", [_layout_row(name, facts) for name, facts in families.items()])
    _write_events_table(root / "scene_events_25x4.csv", families)
    pictures = {name: root / FIRST_FRAMES / f"{name}.png" for name in families}
    frames = [_first_frame_row(path, prompts[name]) for name, path in pictures.items() if path.is_file()]
    authoring.write_json_file(root / "first_frames_manifest.json", frames)
    counts = {"families": len(families), "events": len(tasks), "variants": len(tasks) * len(GAPS)}
    counts["first frames"] = len(frames)
    authoring.write_dataset_card(
        root, "wrbench", title=f"Scenes of {source}", licence=licence, source=source, counts=counts
    )
    return root, notes


def _family_row(name: str, facts: Scene) -> dict[str, object]:
    things = [*facts["behind"], facts["with"]]
    return {
        "family_id": name, "scene": facts["place"], "t2i_scene": first_frame_prompt(facts),
        "first_frame_guidance": WORDS["guidance"], "primary_object": {"id": "subject", "name": facts["subject"]},
        "supporting_objects": [
            {"id": f"thing_{k}", "name": thing, "role": role}
            for k, (thing, role) in enumerate(zip(things, ("anchor", "anchor", "interactor"), strict=True))
        ],
    }  # fmt: skip


def _variant_id(task: EventTask, gap: str) -> str:
    return f"{task.family}__{TIER_OF[task.factor]}__{gap}"


def _variant_row(task: EventTask, gap: str) -> dict[str, object]:
    tier = TIER_OF[task.factor]
    return {
        "variant_id": _variant_id(task, gap), "family_id": task.family, "reasoning_tier": tier[:2],
        "oov_gap": gap, "event_delta": task.factor, "divergence_id": tier[3:] or None, "world_state_prompt": task.event,
        "expected_state": task.expected, "ti2v_prompt": task.prompt if gap == "none"
        else task.prompt_with_camera_words(gap),
    }  # fmt: skip


def _event_tail_row(task: EventTask, gap: str) -> dict[str, object]:
    camera = [] if gap == "none" else [CAMERA_WORDS[gap]]
    return {"variant_id": _variant_id(task, gap), "t2v_event_tail": " ".join([task.event, *camera])}


def _layout_row(name: str, facts: Scene) -> dict[str, object]:
    return {
        "family_id": name, "scene": facts["place"],
        "subject": f"{facts['subject']} starts on the left third of the frame, facing toward the right.",
        "interactor": f"{facts['with']} is far on the right side of the frame.",
        "open_surface": f"open ground between {facts['then']} and {facts['with']}",
        "anchors": [f"{thing} stays visible in the background" for thing in facts["behind"]],
    }  # fmt: skip


def _first_frame_row(path: Path, prompt: str) -> dict[str, object]:
    import cv2

    picture = cv2.imread(str(path))
    if picture is None:
        raise UsageError(f"{path}: the command wrote no picture that can be read")
    return {
        "family_id": path.stem, "image_path": f"first_frames/{path.name}", "prompt_source": "t2i_scene",
        "t2i_scene": prompt, "width": picture.shape[1], "height": picture.shape[0], "format": "png",
        "release_note": "", "sha256": file_digest(path),
    }  # fmt: skip


def _write_events_table(path: Path, families: Mapping[str, Scene]) -> None:
    columns = ["scene_index", "family_id", "scene", "primary_object", "interactor_object", "anchor_objects"]
    columns += ["first_frame_summary", *(f"event_{tier}" for tier in TIERS)]
    columns += [*(f"event_id_{tier}" for tier in TIERS), *(f"event_delta_{tier}" for tier in TIERS)]
    rows: list[Sequence[object]] = []
    for number, (name, facts) in enumerate(families.items(), start=1):
        tasks = event_tasks_of_families({name: facts})
        rows.append([
            number, name, facts["place"], facts["subject"], facts["with"], "; ".join(facts["behind"]),
            first_frame_prompt(facts), *(task.event for task in tasks),
            *(f"{name}__{tier}__none" for tier in TIERS), *(task.factor for task in tasks),
        ])  # fmt: skip
    authoring.write_csv_file(path, columns, rows, newline="\n")
