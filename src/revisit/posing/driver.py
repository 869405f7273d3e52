"""A program for another Python: it loads one pose estimator there and answers for clip after clip.

It is run by the Python that has the estimator, not by Revisit's, and imports numpy and the estimator only. A line of
JSON on its input is a clip: `frames` (pictures in order), `numbers` (of these frames), `video`, `folder` (to work in),
`out` (the npz to write) and `log`, where everything goes that the estimator prints. A line of JSON on its output is the
answer: {"ready": ...} at first, then {} or {"error": ...} for each clip. The arrays are those of docs/poses.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]  # of an estimate: numpy arrays or tensors by name, and the convention of poses, if not w2c
ClipRequest = dict[str, Any]  # a line of the input
Estimate = Callable[[ClipRequest], Arrays]


def load_depth_anything_3(model: str, device: str) -> Estimate:
    """Depth Anything 3: depth, and world-to-camera poses of all frames at once."""
    net = import_module("depth_anything_3.api").DepthAnything3.from_pretrained(model).to(device)

    def estimate_poses(clip: ClipRequest) -> Arrays:
        prediction = net.inference(clip["frames"], process_res=504, process_res_method="upper_bound_resize")
        return {"extrinsics": prediction.extrinsics, "intrinsics": prediction.intrinsics, "depth": prediction.depth}

    return estimate_poses


def load_vggt(model: str, device: str) -> Estimate:
    """VGGT: depth, and world-to-camera poses of all frames at once."""
    torch: Any = import_module("torch")
    net = import_module("vggt.models.vggt").VGGT.from_pretrained(model).to(device).eval()
    load = import_module("vggt.utils.load_fn").load_and_preprocess_images
    poses = import_module("vggt.utils.pose_enc").pose_encoding_to_extri_intri

    def estimate_poses(clip: ClipRequest) -> Arrays:
        pictures = load(clip["frames"]).to(device)[None]
        half = torch.bfloat16 if device != "cpu" and torch.cuda.get_device_capability()[0] >= 8 else torch.float16
        with torch.no_grad():
            with torch.autocast("cuda", dtype=half, enabled=device != "cpu"):
                tokens, start = net.aggregator(pictures)
            extrinsics, intrinsics = poses(net.camera_head(tokens)[-1], pictures.shape[-2:])
            depth, _ = net.depth_head(tokens, pictures, start)
        return {"extrinsics": extrinsics[0], "intrinsics": intrinsics[0], "depth": depth[0, ..., 0]}

    return estimate_poses


def load_vggt_omega(model: str, device: str) -> Estimate:
    """VGGT-Omega: depth, and world-to-camera poses of all frames at once, at 512 pixels in its mode `balanced`.

    These are WRBench's settings. `model` is a checkpoint's file, or a repository and a file in it on a model hub.
    """
    torch: Any = import_module("torch")
    net = import_module("vggt_omega.models").VGGTOmega()
    load = import_module("vggt_omega.utils.load_fn").load_and_preprocess_images
    poses = import_module("vggt_omega.utils.pose_enc").encoding_to_camera
    if not Path(model).is_file():
        owner, repository, *folders = model.split("/")
        model = import_module("huggingface_hub").hf_hub_download(f"{owner}/{repository}", "/".join(folders))
    net.load_state_dict(torch.load(model, map_location="cpu", weights_only=True))
    net = net.to(device).eval()

    def estimate_poses(clip: ClipRequest) -> Arrays:
        pictures = load(clip["frames"], image_resolution=512, mode="balanced").to(device)
        with torch.no_grad():
            prediction = net(pictures)
            extrinsics, intrinsics = poses(prediction["pose_enc"], prediction["images"].shape[-2:])
        depth = to_numpy(prediction["depth"])[0]
        depth = depth[..., 0] if depth.ndim == 4 else depth
        return {"extrinsics": extrinsics[0], "intrinsics": intrinsics[0], "depth": depth}

    return estimate_poses


def load_mapanything(model: str, device: str) -> Estimate:
    """MapAnything: depth, and camera-to-world poses of all frames at once, as MemoBench runs it."""
    net = import_module("mapanything.models").MapAnything.from_pretrained(model).to(device)
    load = import_module("mapanything.utils.image").load_images

    def estimate_poses(clip: ClipRequest) -> Arrays:
        views = net.infer(
            load(clip["frames"]), memory_efficient_inference=True, minibatch_size=1, use_amp=True, amp_dtype="bf16",
            apply_mask=True, mask_edges=True,
        )  # fmt: skip
        names = {"extrinsics": "camera_poses", "intrinsics": "intrinsics", "depth": "depth_z"}
        arrays: Arrays = {ours: np.stack([to_numpy(view[name])[0] for view in views]) for ours, name in names.items()}
        return {**arrays, "depth": arrays["depth"][..., 0], "convention": "c2w_opencv"}

    return estimate_poses


def load_vipe(model: str, device: str) -> Estimate:
    """ViPE, through its own command: camera-to-world poses and the lens of each frame of the video."""
    command = import_module("vipe.cli.main").main

    def estimate_poses(clip: ClipRequest) -> Arrays:
        folder, video = Path(clip["folder"]) / "vipe", Path(clip["video"])
        source = ["--image-dir", str(video)] if video.is_dir() else [str(video)]
        command(["infer", *source, "--output", str(folder), "--pipeline", model], standalone_mode=False)
        with np.load(next(folder.glob("pose/*.npz"))) as poses, np.load(next(folder.glob("intrinsics/*.npz"))) as lens:
            return {
                "extrinsics": poses["data"],
                "numbers": poses["inds"],
                "intrinsics": intrinsic_matrices(lens["data"]),
                "convention": "c2w_opencv",
            }

    return estimate_poses


def load_pycolmap(model: str, device: str) -> Estimate:
    """COLMAP's structure from motion: world-to-camera poses of the frames that it could place, one lens."""
    colmap: Any = import_module("pycolmap")

    def estimate_poses(clip: ClipRequest) -> Arrays:
        folder, images = Path(clip["folder"]), Path(clip["frames"][0]).parent
        getattr(colmap, "set_random_seed", lambda seed: None)(0)
        database = folder / "database.db"
        colmap.extract_features(database, images, camera_mode=colmap.CameraMode.SINGLE)
        colmap.match_sequential(database)
        reconstructions = colmap.incremental_mapping(database, images, folder)
        if not reconstructions:
            raise ValueError("no structure was found; the camera moves too little, or there is too little texture")
        best = max(reconstructions.values(), key=lambda one: one.num_reg_images())
        placed = sorted((best.images[image_id] for image_id in best.reg_image_ids()), key=lambda image: image.name)
        number = {Path(path).name: clip["numbers"][k] for k, path in enumerate(clip["frames"])}
        poses = [image.cam_from_world for image in placed]
        poses = [pose() if callable(pose) else pose for pose in poses]  # a method since version 3.12
        camera = best.cameras[placed[0].camera_id]
        return {
            "extrinsics": np.stack([pose.matrix() for pose in poses]), "numbers": [number[one.name] for one in placed],
            "intrinsics": np.stack([camera.calibration_matrix()] * len(poses)), "size": [camera.width, camera.height],
        }  # fmt: skip

    return estimate_poses


ESTIMATORS: dict[str, Callable[[str, str], Estimate]] = {
    "da3": load_depth_anything_3,
    "vggt": load_vggt,
    "vggt-omega": load_vggt_omega,
    "mapanything": load_mapanything,
    "vipe": load_vipe,
    "pycolmap": load_pycolmap,
}


def to_numpy(values: Any) -> np.ndarray:
    """An array on the CPU, from whatever a network returns."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values)


def intrinsic_matrices(lens: np.ndarray) -> np.ndarray:
    """(N, 3, 3) from rows of fx, fy, cx, cy."""
    intrinsics = np.tile(np.eye(3), (len(lens), 1, 1))
    intrinsics[:, [0, 1, 0, 1], [0, 1, 2, 2]] = lens[:, :4]
    return intrinsics


def save_prediction(clip: ClipRequest, prediction: Arrays) -> None:
    """Write the arrays of a clip, with the numbers of its frames; depth that is not finite is a hole."""
    numbers = prediction.pop("numbers", clip["numbers"])
    convention = prediction.pop("convention", "w2c_opencv")
    arrays: Arrays = {name: to_numpy(values) for name, values in prediction.items()}
    if len(numbers) != len(arrays["extrinsics"]):
        raise ValueError(f"it gave {len(arrays['extrinsics'])} poses for {len(numbers)} frames")
    if "depth" in arrays:
        arrays["depth"] = np.nan_to_num(arrays["depth"], nan=0.0, posinf=0.0, neginf=0.0)
    np.savez(clip["out"], frame_indices=np.asarray(numbers), convention=convention, **arrays)


def estimate_and_save(clip: ClipRequest, estimate: Estimate) -> dict[str, str]:
    """What became of a clip; what is printed meanwhile goes to its log."""
    with Path(clip["log"]).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            save_prediction(clip, estimate(clip))
        except Exception as error:
            traceback.print_exc()
            return {"error": one_line_error(error)}
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    return {}


def one_line_error(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def device_or_default(device: str) -> str:
    """The device that was named, or a GPU where torch has one, and the processor elsewhere."""
    try:
        return device or ("cuda" if import_module("torch").cuda.is_available() else "cpu")
    except ImportError:
        return "cpu"


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("estimator", choices=sorted(ESTIMATORS))
    parser.add_argument("--model", default="")
    parser.add_argument("--device", default="")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever packages print is not an answer

    def write_reply(content: dict[str, str]) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    try:
        estimate = ESTIMATORS[options.estimator](options.model, device_or_default(options.device))
    except Exception as error:
        traceback.print_exc()
        write_reply({"error": one_line_error(error)})
        return
    write_reply({"ready": options.estimator})
    for line in sys.stdin:
        write_reply(estimate_and_save(json.loads(line), estimate))


if __name__ == "__main__":
    # The files beside this one are no packages for whoever is driven.
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    main()
