"""Prompts for generators and the expected final states: the built-in scenes, or the published Natural-25 files.

A task is one event in one scene: 25 families x 4 events. The prompt says what happens; `expected` is the state that
must be seen on return and is never told to the generator (in the published files both are the same sentence).

The published data hold scenes, subjects, anchors and events; the words that join them to a prompt stand in WRBench's
code. They are read from the user's own copy as text, and nothing is run. Without a copy the same fields are joined by
words of ours. A copy is found around the data (`<copy>/src/wrbench/data/natural25`), where the user names one, or among
the installed packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from revisit.control.payloads.words import bracketed_commands
from revisit.control.requested_path import preset_script
from revisit.core import UsageError
from revisit.core.text import convert_read_errors, parse_json, parse_numbered_json_lines, read_package_yaml
from revisit.geometry.camera_script import parse_script

EVENTS = {"rests": "none", "moves": "spatial", "changes": "state_only", "both": "full"}  # our event -> its factor
TIERS = dict(zip(("T0", "T1", "T2_div_a", "T2_div_b"), EVENTS.values(), strict=True))  # published tier -> factor
WORDS = read_package_yaml(__package__, "prompts.yaml")
CAMERA_WORDS: Mapping[str, str] = WORDS["cameras"]
STYLE: str = WORDS["style"]
Scene = Mapping[str, Any]  # as scenes.yaml has it: place, subject, then, with, behind, and an object for each event
Row = dict[str, Any]  # of a JSON-lines file of the published prompts
FIELDS = ("scene", "subject", "interactor", "open_surface", "anchor_text", "tail")  # of a prompt for text alone
OWN_LAYOUT = "In {scene}, {subject}; {interactor}. There is {open_surface}. {anchor_text}. {tail}"
LAYOUT_FILE, CAMERA_FILE = Path("datasets.py"), Path("prompts/camera_text.py")
KEEP, BACK = "_HAILUO_FIRST_FRAME_PRESERVATION", "_HAILUO_RETURN_CLAUSES"


@dataclass(frozen=True)
class Wording:
    """The words that join the fields of the data to a prompt."""

    layout: str = OWN_LAYOUT  # with a hole for each of FIELDS
    keep: str = ""  # asks Hailuo to keep the first frame
    back: Mapping[str, str] = field(default_factory=dict)  # camera -> asks Hailuo to come back
    source: Path | None = None  # the copy of WRBench that they were read from

    def format_layout_prompt(self, layout: Mapping[str, Any], tail: str) -> str:
        """The prompt of a scene for a generator that gets no first frame, from its fields and the event's tail."""
        plain = {name: str(layout[name]).strip().rstrip(".").strip() for name in FIELDS[:4]}
        anchors = " and ".join([name.strip() for name in layout["anchors"] if name.strip()][:2])
        return self.layout.format(**plain, anchor_text=anchors[:1].upper() + anchors[1:], tail=tail)


@dataclass(frozen=True)
class EventTask:
    """One event in one scene."""

    id: str  # family and event
    family: str
    factor: str  # none | spatial | state_only | full
    prompt: str  # without a word about the camera
    expected: str
    subject: str
    anchors: tuple[str, ...] = ()
    first_frame: Path | None = None
    camera_prompts: Mapping[str, str] = field(default_factory=dict)  # camera -> the prompt with the camera in words
    from_nothing: str = ""  # for generators that get no first frame: says the layout too
    camera_prompts_from_nothing: Mapping[str, str] = field(default_factory=dict)  # the same with the camera in words
    place: str = ""  # where it happens, as the prompt says it
    event: str = ""  # what happens, in a sentence and nothing more
    wording: Wording = field(default_factory=Wording)  # what joins the parts of a prompt

    def prompt_without_first_frame(self, camera: str = "") -> str:
        """The prompt for a generator that gets no first frame, with the camera in words where one is named."""
        if not self.from_nothing:
            raise UsageError(f"{self.id} has no prompt for generators that get no first frame")
        if not camera:
            return self.from_nothing
        return self.camera_prompts_from_nothing.get(camera) or " ".join([self.from_nothing, *_camera_sentences(camera)])

    def prompt_with_camera_commands(self, camera: str, first_frame: bool = True) -> str:
        """The prompt with the camera as commands in brackets, around the event: out before it, back after it."""
        base = (self.prompt if first_frame else self.prompt_without_first_frame()).strip()
        out, *back = bracketed_commands(parse_script(preset_script(camera)))
        keep = self.wording.keep if first_frame else ""
        if not back:
            return "\n".join(filter(None, [base, keep, out]))
        scene, mark, event = base.removesuffix(".").rpartition(". ")
        scene, event = (f"{scene}.", f"{event}.") if mark else (base, "")
        _, several, last = self.camera_prompts.get(camera, "").strip().removesuffix(".").rpartition(". ")
        ending = [self.wording.back.get(camera, ", then ".join(back)), f"{last}." if several else ""]
        return "\n".join(filter(None, [scene, keep, out, event, *ending]))

    def prompt_with_camera_words(self, camera: str) -> str:
        """The prompt with the camera in words."""
        return self.camera_prompts.get(camera) or " ".join([self.prompt, *_camera_sentences(camera)])


def _camera_sentences(camera: str) -> list[str]:
    """What a prompt says of the camera, in sentences."""
    if camera not in CAMERA_WORDS:
        raise UsageError(f"the camera {camera!r} has no description in words; choose one of {', '.join(CAMERA_WORDS)}")
    return [CAMERA_WORDS[camera], *([WORDS["meanwhile"]] if camera != "static" else [])]


@cache
def own_event_tasks() -> tuple[EventTask, ...]:
    """The 100 tasks of our own scenes."""
    return event_tasks_of_families(own_scene_families())


def own_scene_families() -> dict[str, Scene]:
    """Our own scenes by name."""
    return dict(read_package_yaml(__package__, "scenes.yaml")["families"])


def event_tasks_of_families(families: Mapping[str, Scene]) -> tuple[EventTask, ...]:
    """Every event of every family."""
    return tuple(event_task_of_scene(family, facts, event) for family, facts in families.items() for event in EVENTS)


def event_task_of_scene(family: str, facts: Scene, event: str) -> EventTask:
    """The task of one event of a scene as scenes.yaml writes it."""
    one, other = facts["behind"]
    things = {**facts, "one": one, "other": other}
    layout = WORDS["layout"].format_map(things)
    happens = f"{_capitalize_first_letter(facts['then'])} {facts[event]['told']}."
    around = WORDS["around"].format_map({**things, "with": _capitalize_first_letter(facts["with"])})
    own_prompt = str(facts[event].get("prompt", "")).strip()  # by a person or a language model, in the place of ours
    return EventTask(
        id=f"{family}__{event}",
        family=family,
        factor=EVENTS[event],
        prompt=own_prompt or f"{STYLE} {around} {happens}",
        expected=f"{_capitalize_first_letter(facts[event]['ends'])}.",
        subject=str(facts["subject"]),
        anchors=(one, other, str(facts["with"])),
        from_nothing=f"{layout} {own_prompt}" if own_prompt else f"{STYLE} {layout} {happens}",
        place=str(facts["place"]),
        event=happens,
    )


def read_natural25_tasks(folder: Path, copy: Path | None = None) -> tuple[EventTask, ...]:
    """The 100 tasks of the published files in a folder: families, variants, first frames, additions for text alone.

    What joins their parts is read from a copy of WRBench, where there is one (`read_wording_of_copy`).
    """
    wording = read_wording_of_copy(folder, copy)
    families = {row["family_id"]: row for row in read_json_lines_with_keys(folder / "families.jsonl", "family_id")}
    variants = read_json_lines_with_keys(folder / "variants.jsonl", "variant_id")
    tail_rows = read_json_lines_with_keys(folder / "t2v_event_tails.jsonl", optional=True)
    tails = {row["variant_id"]: row["t2v_event_tail"] for row in tail_rows}
    layout_keys = (*FIELDS[:4], "family_id", "anchors")
    layout_rows = read_json_lines_with_keys(folder / "t2v_layout_anchors.jsonl", *layout_keys, optional=True)
    layouts = {row["family_id"]: row for row in layout_rows}
    frames = _first_frame_paths_by_family(folder)
    grouped: dict[tuple[str, str], dict[str, Row]] = {}
    for row in variants:
        tier = row["variant_id"].split("__")[1] if row["variant_id"].count("__") == 2 else ""
        if tier not in TIERS or row.get("family_id") not in families:
            raise UsageError(
                f"{folder / 'variants.jsonl'}: {row['variant_id']!r} is not <family>__<tier>__<camera>, with a family "
                f"of families.jsonl and a tier of {', '.join(TIERS)}"
            )
        grouped.setdefault((row["family_id"], tier), {})[str(row["oov_gap"])] = row
    tasks = []
    for (family, tier), rows in grouped.items():
        plain = rows.get("none")
        if plain is None:
            raise UsageError(f"{folder / 'variants.jsonl'}: {family}__{tier} has no variant without a camera")
        facts, layout = families[family], layouts.get(family)
        from_nothing = {
            camera: wording.format_layout_prompt(layout, tails[row["variant_id"]])
            for camera, row in rows.items()
            if layout and tails.get(row["variant_id"])
        }
        tasks.append(
            EventTask(
                id=f"{family}__{tier}",
                family=family,
                factor=TIERS[tier],
                prompt=plain["ti2v_prompt"],
                expected=plain["expected_state"],
                subject=facts["primary_object"]["name"],
                anchors=tuple(thing["name"] for thing in facts["supporting_objects"]),
                first_frame=frames.get(family),
                camera_prompts={camera: row["ti2v_prompt"] for camera, row in rows.items() if camera != "none"},
                from_nothing=from_nothing.pop("none", ""),
                camera_prompts_from_nothing=from_nothing,
                place=str(facts.get("scene", "")),
                event=str(plain.get("world_state_prompt") or plain["expected_state"]),
                wording=wording,
            )
        )
    return tuple(tasks)


def _first_frame_paths_by_family(folder: Path) -> dict[str, Path]:
    path = folder / "first_frames_manifest.json"
    if not path.is_file():
        return {}
    with convert_read_errors(path, "a list of objects with family_id and image_path"):
        rows = parse_json(path.read_text(encoding="utf-8"))
        places = {row["family_id"]: row["image_path"] for row in rows}
    # Only the name counts: what the manifest says of folders is about the machine it was written on.
    images = {family: folder / "first_frames" / Path(str(place)).name for family, place in places.items()}
    return {family: image for family, image in images.items() if image.is_file()}


def read_json_lines_with_keys(path: Path, *keys: str, optional: bool = False) -> list[Row]:
    """The objects of a JSON-lines file, each with the keys."""
    if not path.is_file():
        if optional:
            return []
        raise UsageError(f"{path}: no such file; published prompts are families.jsonl and variants.jsonl in one folder")
    rows = []
    with convert_read_errors(path, "a file of JSON lines"):
        for number, row in parse_numbered_json_lines(path.read_text(encoding="utf-8-sig")):
            if not isinstance(row, dict) or not set(keys) <= set(row):
                raise UsageError(f"{path}:{number}: expected a JSON object{' with ' if keys else ''}{', '.join(keys)}")
            rows.append(row)
    return rows


def _capitalize_first_letter(text: str) -> str:
    return text[:1].upper() + text[1:]


def read_wording_of_copy(data: Path, copy: Path | None = None) -> Wording:
    """The wording of the user's copy of WRBench; ours where there is none.

    Parameters
    ----------
    data
        Folder of the published data, which may lie in a copy.
    copy
        A copy that the user names: its root, or the package in it.

    Raises
    ------
    UsageError
        Where the copy that the user names has no such files.
    """
    if copy is not None:
        places = [copy, copy / "src/wrbench", copy / "wrbench"]
    else:
        spec = find_spec("wrbench")
        installed = spec.submodule_search_locations if spec is not None else None
        places = [data.resolve().parent.parent, *map(Path, installed or ())]
    package = next((place for place in places if (place / LAYOUT_FILE).is_file()), None)
    if package is None and copy is not None:
        raise UsageError(f"{copy}: no copy of WRBench; expected src/wrbench/{LAYOUT_FILE} in it")
    if package is None:
        return Wording()
    layout = next(_layout_templates(package / LAYOUT_FILE), OWN_LAYOUT)
    constants = dict(_literal_constants(package / CAMERA_FILE))
    keep, back = constants.get(KEEP), constants.get(BACK)
    return Wording(
        layout,
        keep if isinstance(keep, str) else "",
        back if isinstance(back, dict) else {},
        package if layout != OWN_LAYOUT or keep else None,
    )


def _layout_templates(path: Path) -> Iterator[str]:
    """Texts with a hole for each of FIELDS."""
    for node in ast.walk(_parse_python_file(path)):
        if isinstance(node, ast.JoinedStr):
            parts = [_template_piece(part) for part in node.values]
            holes = [part[1:-1] for part in parts if part.startswith("{") and part[1:-1] in FIELDS]
            if sorted(holes) == sorted(FIELDS) and "" not in parts:
                yield "".join(parts)


def _template_piece(part: ast.expr) -> str:
    """A piece of a formatted text: words, or a hole in braces; empty for anything else."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return part.value.replace("{", "{{").replace("}", "}}")
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        return f"{{{part.value.id}}}"
    return ""


def _literal_constants(path: Path) -> Iterator[tuple[str, Any]]:
    """Names and values that a file of Python sets to plain texts, lists or tables."""
    for node in _parse_python_file(path).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr):
            with suppress(ValueError, TypeError, MemoryError, RecursionError):
                yield target.id, ast.literal_eval(value)


def _parse_python_file(path: Path) -> ast.Module:
    """The syntax of a file; of nothing where it is not there or no Python."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ast.parse("")
