"""WRBench: an event suite in the form of Natural-25, and generated videos with the camera they were asked for.

A film is called {family}__{tier}__{camera}. Of static cameras there are no films, because nothing would be hidden.
poses/ (where the camera really was) and targets.json are ours: the benchmark has no such files. Targets of the camera
are camera-to-world poses in OpenCV axes, seen from the first, without any model's gain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.media.files import write_json_lines, write_text_atomically
from revisit.worlds.events import EVENTS
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import Layout, Order, layout, place_of
from revisit.worlds.workers import StepCallback

TIERS = {  # tier -> divergence, what it changes, the event
    "T0": (None, "none", "none"),
    "T1": (None, "spatial", "moved"),
    "T2_div_a": ("div_a", "state_only", "changed"),
    "T2_div_b": ("div_b", "full", "both"),
}
TABLES = read_package_yaml(__package__, "cameras.yaml")
CAMERAS: dict[str, tuple[str, float]] = TABLES["cameras"]  # label -> WRBench's camera type, and degrees
GAPS: dict[str, str] = TABLES["rendered"]


def write_wrbench_film(
    folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback
) -> Row:
    """Write the videos of one film that are not there, and return what the suite says of it."""
    family, tier, camera = name.split("__")
    film_id = f"{family}__{tier}__none__{camera}"
    common.write_missing_picture(folder / "natural25" / "first_frames" / f"{family}.png", film.truth(0).rgb)
    model_names = []
    for model in common.each_that_applies(models, film, name, tell):
        model_names.append(model.name)
        place = folder / "videos" / model.name / f"{film_id}.mp4"
        common.video(place, model.frames(film, seed), film.fps)
        _write_target_sidecars(place, film, camera)
        common.write_missing_arrays(folder / "poses" / model.name / f"{film_id}.npz", poses=model.poses(film, seed))
    return {
        "family": family, "tier": tier, "camera": camera, "id": film_id, "models": model_names,
        "scene": film.world.scene.rstrip("."), "target": film.world.instances[1],
        "anchors": [thing for k, thing in film.world.instances.items() if k > 1 and "wall)" in thing][:2],
        "size": film.size, "box": film.target_box(),
    }  # fmt: skip


def _write_target_sidecars(place: Path, film: Film, camera: str) -> None:
    """Write what the camera was asked for beside a video."""
    target = (np.linalg.inv(film.poses[0]) @ film.poses).astype(np.float32)
    yaw = np.degrees(np.arctan2(target[:, 0, 2], target[:, 0, 0]))
    peak = float(yaw[np.argmax(np.abs(yaw))])
    common.write_missing_arrays(place.with_suffix(".target_c2w.npy"), target=target)
    track = {
        "coordinate_convention": "opencv_c2w", "camera_type": CAMERAS[camera][0], "fps": film.fps,
        "source": "revisit", "conversion_mode": "exact", "frame_count": len(film),
        "c2w": target.tolist(), "intrinsics": film.K.tolist(),
    }  # fmt: skip
    facts = {
        "target_c2w_path": place.with_suffix(".target_c2w.npy").name,
        "target_role": "benchmark_intended_control", "evidence_level": "benchmark_intent",
        "control_family": "yaw", "control_direction": camera.rpartition("_")[2],
        "control_profile": f"canonical_{abs(peak):.0f}deg",
        "yaw_peak_deg": peak, "num_frames": len(film), "fps": film.fps,
        "image_size": [film.size[1], film.size[0]], "fov": film.world.fov, "camera_script": film.script,
    }  # fmt: skip
    write_text_atomically(place.with_suffix(".camera_trajectory.json"), json.dumps(track))
    write_text_atomically(place.with_suffix(".camera.json"), json.dumps(facts, indent=1))


def write_wrbench_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write the suite of events, the list of videos and the targets."""
    suite = folder / "natural25"
    families = list({row["family"]: row for row in rows}.values())
    write_json_lines(suite / "families.jsonl", map(_family_row, families), ascii=True)
    variants = [_variant_row(row, tier, gap) for row in families for tier in TIERS for gap in GAPS]
    write_json_lines(suite / "variants.jsonl", variants, ascii=True)
    events = [_scene_events_row(number, row) for number, row in enumerate(families, start=1)]
    common.write_csv_table(suite / "scene_events_25x4.csv", list(events[0]), events, newline="\n")
    frames = [
        {"family_id": row["family"], "image_path": f"first_frames/{row['family']}.png", "prompt_source": "revisit",
         "t2i_scene": row["scene"], "width": row["size"][1], "height": row["size"][0], "format": "png",
         "release_note": ""}
        for row in families
    ]  # fmt: skip
    write_text_atomically(suite / "first_frames_manifest.json", json.dumps(frames, indent=1))
    models = list(dict.fromkeys(model for row in rows for model in row["models"]))
    videos = [_video_manifest_row(row, model) for model in models for row in rows if model in row["models"]]
    write_text_atomically(folder / "manifest.json", json.dumps(videos, indent=1))
    boxes = {row["id"]: {"target": row["target"], "box": row["box"]} for row in rows}
    write_text_atomically(folder / "targets.json", json.dumps(boxes, indent=1))


def _family_row(row: Row) -> Row:
    things = [*row["anchors"], "table"]
    return {
        "family_id": row["family"], "scene": row["scene"], "t2i_scene": row["scene"],
        "first_frame_guidance": dict.fromkeys(("shot_type", "composition", "lighting", "texture", "palette"), ""),
        "primary_object": {"id": "target", "name": row["target"]},
        "supporting_objects": [
            {"id": f"thing_{k}", "name": thing, "role": role}
            for k, (thing, role) in enumerate(zip(things, ("anchor", "anchor", "interactor"), strict=False))
        ],
    }  # fmt: skip


def _event_sentence(row: Row, tier: str) -> str:
    """What happens to the target, as a sentence about it."""
    sentence = EVENTS[TIERS[tier][2]].what.replace("the target", f"the {row['target']}")
    return f"{sentence[0].upper()}{sentence[1:]}."


def _variant_row(row: Row, tier: str, gap: str) -> Row:
    divergence, delta, _ = TIERS[tier]
    sentence = _event_sentence(row, tier)
    return {
        "variant_id": f"{row['family']}__{tier}__{gap}", "family_id": row["family"], "reasoning_tier": tier[:2],
        "oov_gap": gap, "event_delta": delta, "divergence_id": divergence, "world_state_prompt": sentence,
        "expected_state": sentence,
        "ti2v_prompt": " ".join(part for part in (row["scene"] + ".", sentence, GAPS[gap]) if part),
    }  # fmt: skip


def _scene_events_row(number: int, row: Row) -> Row:
    facts = {
        "scene_index": number, "family_id": row["family"], "scene": row["scene"], "primary_object": row["target"],
        "interactor_object": "table", "anchor_objects": "; ".join(row["anchors"]), "first_frame_summary": row["scene"],
    }  # fmt: skip
    facts |= {f"event_{tier}": _event_sentence(row, tier) for tier in TIERS}
    facts |= {f"event_id_{tier}": f"{row['family']}__{tier}__none" for tier in TIERS}
    return facts | {f"event_delta_{tier}": delta for tier, (_, delta, _) in TIERS.items()}


def _video_manifest_row(row: Row, model: str) -> Row:
    sentence = _event_sentence(row, row["tier"])
    return {
        "video_id": row["id"], "video_path": f"videos/{model}/{row['id']}.mp4", "world_state_prompt": sentence,
        "prompt_text": f"{row['scene']}. {sentence}", "model": model,
        "camera_type": CAMERAS[row["camera"]][0],
        "camera_label": row["camera"], "family_id": row["family"], "reasoning_tier": row["tier"][:2],
        "divergence_id": TIERS[row["tier"]][0], "event_delta": TIERS[row["tier"]][1],
        "oov_gap": "none",  # the prompt has no word of the camera
    }  # fmt: skip


def wrbench_film_orders(seed: int) -> list[Order]:
    """The films of a seed, one for each tier."""
    kind, place = ("gift", "ball", "vase", "rocket")[seed % 4], place_of(seed)
    script = "yaw:{away}:60@{half},yaw:{back}:60@{rest}"  # without a rest, as its cameras are asked to go
    return [
        Order(f"{place}_{seed:02d}_{kind}__{tier}__yaw60_{{camera}}", seed, place, kind, event, script)
        for tier, (_, _, event) in TIERS.items()
    ]


MODELS = ("perfect", "frozen_camera", "partial_return", "state_reset", "teleport", "duplicate")
OPTIONS = "--suite wrbench --option poses={folder}/poses --option targets={folder}/targets.json"
LEAST_FRAMES = 81  # as the paths that its cameras are asked for
LAYOUT = layout(
    Layout(
        "wrbench",
        wrbench_film_orders,
        MODELS,
        write_wrbench_film,
        write_wrbench_lists,
        "manifest.json",
        OPTIONS,
        least_frames=LEAST_FRAMES,
    )
)
