"""Datasets of every suite in their published layouts, tiny: a camera that turns in the middle of a round wall."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np

from revisit.geometry.camera_script import camera_path, parse_script
from revisit.geometry.poses import to_unreal
from revisit.media import encode_mp4

SIZE = (96, 160)  # height, width
FOCAL = 138.6  # pixels: 60 degrees across


def wall(seed: int) -> np.ndarray:
    """A long picture with something to see at every scale."""
    rng = np.random.default_rng(seed)
    made = np.zeros((SIZE[0] * 3, SIZE[1] * 6, 3))
    for cell in (4, 12, 40):
        coarse = rng.uniform(0, 255, (-(-made.shape[0] // cell), -(-made.shape[1] // cell), 3))
        made += cv2.resize(coarse, made.shape[1::-1], interpolation=cv2.INTER_CUBIC) / 3
    return np.clip(made, 0, 255).astype(np.uint8)


def film(script: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Frames and camera-to-world poses of a camera that turns in the middle of a round wall."""
    poses = camera_path(parse_script(script))
    height, width = SIZE
    x, y = np.meshgrid((np.arange(width) + 0.5 - width / 2) / FOCAL, (np.arange(height) + 0.5 - height / 2) / FOCAL)
    rays = np.stack([x, y, np.ones_like(x)], axis=-1)
    around = wall(seed)
    middle = around.shape[1] / 2, around.shape[0] / 2
    frames = []
    for pose in poses:
        X, Y, Z = np.moveaxis(rays @ pose[:3, :3].T, -1, 0)
        at = middle[0] + FOCAL * np.arctan2(X, Z), middle[1] + FOCAL * Y / np.hypot(X, Z)
        frames.append(cv2.remap(around, at[0].astype(np.float32), at[1].astype(np.float32), cv2.INTER_LINEAR))
    return np.stack(frames), poses


def picture(path: Path, rgb: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.ascontiguousarray(rgb[..., ::-1]))


PERSPECTIVES = ("1st_data", "3rd_data")


def mind(
    folder: Path, names: Sequence[str] = ("data-25", "data-26"), perspectives: Sequence[str] = PERSPECTIVES
) -> Path:
    """Recordings that look around and then turn again, and go-and-return tests."""
    root = folder / "MIND-Data"
    for perspective in perspectives:
        for number, (test, name) in enumerate(
            [*(("mem_test", n) for n in names), ("action_space_test", "data-0-1.0x-200")]
        ):
            place = root / perspective / "test" / test / name
            frames, poses = film("yaw:right:20@10,yaw:left:20@10,yaw:right:24@8,yaw:left:24@8", number)
            encode_mp4(place / "video.mp4", frames, 24, crf=8)
            actions(place / "action.json", poses, 20, third=perspective == "3rd_data")
        mirror = root / perspective / "test/mirror_test"
        picture(mirror / "data-25.png", film("hold@1", 0)[0][0])
        for name, script in (("-a", "yaw:left:20@5,yaw:right:20@5"), ("-wr", "yaw:right:20@5,yaw:left:20@5")):
            actions(mirror / f"{name}.json", film(script)[1], 0, third=False)
    return root


def mind_copies(root: Path) -> Path:
    """Predictions of a model `copy` beside a dataset: every recording once more, and a clip of a go-and-return test."""
    models = root.parent / "predictions"
    for recording in root.glob("*/test/*/*/video.mp4"):
        perspective, _, test, name, _ = recording.relative_to(root).parts
        shutil.copytree(recording.parent, models / "copy" / perspective / test / name)
        (models / "copy" / perspective / test / name / "action.json").unlink()
        mirror = models / "copy" / perspective / "mirror_test/data-25/path-1.mp4"
        mirror.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(recording, mirror)
    return models


def actions(path: Path, poses: np.ndarray, mark: int, *, third: bool) -> None:
    """An action.json as the dataset has it: centimetres and degrees of Unreal."""
    positions, angles = to_unreal(poses)
    turns = np.sign(np.diff(angles[:, 2], append=angles[-1, 2]).round(6))
    rows = [
        {"time": k, "ws": 0, "ad": 0, "ud": 0, "lr": {0: 0, -1: 1, 1: 2}[int(turns[k])],
         "actor_pos": dict(zip("xyz", positions[k].tolist(), strict=True)),
         "actor_rpy": dict(zip("xyz", angles[k].tolist(), strict=True))}
        for k in range(len(poses))
    ]  # fmt: skip
    for row in rows if third else ():
        row |= {"camera_pos": row["actor_pos"], "camera_rpy": row["actor_rpy"]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mark_time": mark, "total_time": len(rows), "data": rows}))


def memobench(folder: Path, clips: int = 2) -> Path:
    """Synthetic and real clips that leave and come back, with their sheets."""
    data = folder / "data"
    sheets: dict[str, list[list[object]]] = {"Synthetic": [], "Real": []}
    metadata: dict[str, list[list[object]]] = {"Synthetic": [], "Real": []}
    for n in range(1, clips + 1):
        frames, poses = film("yaw:left:50@12,hold@4,yaw:right:50@12", 10 + n)
        place = data / f"Synthetic_processed/Barnyard/Barnyard_{n:03d}"
        for k, rgb in enumerate(frames):
            picture(place / f"RGB{n}/NewLevelSequence{n}.{k:04d}.jpg", rgb)
        scaled = poses.copy()
        scaled[:, :3, 3] *= 100
        (place / str(n)).mkdir()
        np.save(place / f"{n}/poses.npy", scaled)
        prompt = "The camera sees a pig (subject) and turns away. It re-sees the pig."
        sheets["Synthetic"].append([f"Barnyard_{n:03d}", 10, 20, len(frames), "", prompt])
        metadata["Synthetic"].append(["Barnyard", n, "pig", "", prompt])
        frames, poses = film("tilt:up:20@9,hold@3,tilt:down:20@9", 20 + n)
        place = data / f"Real_Raw/{n + 6:03d}"
        encode_mp4(place / f"{n + 6:03d}.mp4", frames, 30)
        (place / "raw").mkdir()
        np.savez(
            place / f"raw/{n + 6:03d}_mapanything.npz",
            cam_c2w=poses,
            intrinsic=np.array([[FOCAL, 0, 80], [0, FOCAL, 48], [0, 0, 1]]),
        )
        sheets["Real"].append([n + 6, 8, 15])
        metadata["Real"].append([n + 6, "a beaker", "", "A beaker fills while nobody looks."])
    marks = ["video_folder", "exits", "re-enter", "frame_num", "skip", "prompt"]
    table(data / "Synthetic_processed/Synthetic_ExitReenter.csv", marks, sheets["Synthetic"])
    table(data / "Real_Raw/Real_ExitReenter.csv", ["id", "exit", "reenter"], sheets["Real"])
    facts = ["scene", "video_id", "subject", "exr_path", "prompt"]
    table(data / "sam3_metadata/synthetic_metadata.csv", facts, metadata["Synthetic"])
    table(
        data / "sam3_metadata/real_metadata.csv", ["video_id", "subject", "full_image_path", "prompt"], metadata["Real"]
    )
    return data


def table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


SUBSETS = ("environment", "human", "object", "causal")


def mbench(folder: Path, setting: str = "A") -> Path:
    """One sample of each subset, with its assignment."""
    condition = "text" if setting == "T" else "left_then_right_3s"
    root = folder / f"MBench-{setting}"
    root.mkdir(parents=True)
    (root / "dataset.yaml").write_text(
        f"dataset_id: mbench{setting.lower()}\nsubsets: [environment, human, object, causal]\n"
    )
    rows = []
    for number, subset in enumerate(SUBSETS):
        place = root / f"samples/{subset}/sample_{number}"
        frames, _ = film("yaw:left:50@24,yaw:right:50@24", 30 + number)
        picture(place / "first_frame.png", frames[0])
        encode_mp4(place / "source_video.mp4", frames, 16)
        facts = {
            "caption": "A wall.",
            "caption_segments": [f"Part {k}." for k in range(5)],
            "object_card": {"name": "wall"},
        }
        anchor = {"center_x": 80, "center_y": 48, "width": 160, "height": 96}
        content = {"sample_id": f"sample_{number}", "subset": subset, "metadata": {**facts, "object_anchor": anchor}}
        (place / "sample.json").write_text(json.dumps(content))
        rows.append({"subset": subset, "sample_id": f"sample_{number}", "condition_id": condition})
    (root / "assignments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def wrbench(folder: Path) -> Path:
    """Two families of scenes with all events, as the published prompts are laid out."""
    root = folder / "natural25"
    tiers = {
        "T0": ("none", None),
        "T1": ("spatial", None),
        "T2_div_a": ("state_only", "div_a"),
        "T2_div_b": ("full", "div_b"),
    }
    families, variants, frames = [], [], []
    for number, name in enumerate(("kitchen_cook_sit", "yard_dog_jump")):
        picture(root / f"first_frames/{name}.png", film("hold@1", 40 + number)[0][0])
        frames.append({"family_id": name, "image_path": f"first_frames/{name}.png"})
        roles = ("anchor", "anchor", "interactor")
        families.append({
            "family_id": name, "scene": "kitchen", "t2i_scene": "A kitchen.",
            "primary_object": {"id": "a", "name": "cook"},
            "supporting_objects": [{"id": role, "name": f"{role} {k}", "role": role} for k, role in enumerate(roles)],
        })  # fmt: skip
        for tier, (delta, divergence) in tiers.items():
            for gap in ("none", "static", "yaw_LR", "yaw_RL"):
                variants.append({
                    "variant_id": f"{name}__{tier}__{gap}", "family_id": name, "reasoning_tier": tier[:2],
                    "oov_gap": gap,
                    "event_delta": delta, "divergence_id": divergence, "world_state_prompt": "The cook sits.",
                    "expected_state": "The cook sits.", "ti2v_prompt": "A kitchen. The cook sits.",
                })  # fmt: skip
    for file, rows in (("families", families), ("variants", variants)):
        (root / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "first_frames_manifest.json").write_text(json.dumps(frames))
    return root


def folder(place: Path, clips: int = 4) -> Path:
    """Clips with references, a camera and a target."""
    root = place / "clips"
    lines = []
    for number in range(clips):
        away, back = ("left", "right") if number % 2 else ("right", "left")
        script = f"yaw:{away}:40@10,yaw:{back}:40@10"
        encode_mp4(root / f"truth/c{number}.mp4", film(script, 50 + number)[0], 16)
        lines.append({
            "id": f"c{number}", "model": "truth", "video": f"truth/c{number}.mp4", "reference": f"truth/c{number}.mp4",
            "camera": script, "prompt": "A wall.", "target": {"name": "patch", "box": [0.4, 0.4, 0.6, 0.6]},
        })  # fmt: skip
    (root / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


DATASETS: dict[str, Callable[[Path], Path]] = {
    "mind": mind, "memobench": memobench, "mbench": mbench, "mbench-t": lambda place: mbench(place, "T"),
    "wrbench": wrbench, "folder": folder,
}  # fmt: skip
