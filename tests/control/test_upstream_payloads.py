"""What WRBench itself writes for its generators, where its files can be trusted, against what we write."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.control.delivery import Delivery, make_delivery
from revisit.control.generators import Generator, find_generator, load_generators
from revisit.control.requested_path import amplify_path, compile_script, limit_translation_per_axis, preset_script
from tests.loaders import READERS, poses_of_rows, relative, rows_of_19

# Presets whose files are compared; MagicWorld has no tilt and no dolly upstream.
PRESETS = ("yaw_LR", "yaw30_LR", "yaw30_RL", "pan_LR", "pan_RL", "arc_LR", "dolly_FB", "tilt_UD", "custom")


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden/wrbench_payloads"


@pytest.fixture(scope="module")
def index(golden: Path) -> dict[str, Any]:
    return json.loads((golden / "index.json").read_text())["models"]


def ours(index: dict[str, Any], model: str, name: str, **options: Any) -> tuple[Generator, Delivery]:
    """Our payload for upstream's script, at upstream's length, with its axes and gains."""
    facts = index[model]
    gains = facts["gain"]
    gain = (gains["rotation"], gains["translation"], gains["largest_translation"])
    to = replace(
        find_generator(options.pop("id", model)), lengths=(), frames=facts["frames"], gain=gain, fps=facts["fps"]
    )
    script = facts["presets"][name]["script"]
    plan = compile_script(script, size=tuple(facts["size"]), fps=facts["fps"], axes="first_view")
    assert len(plan) == facts["frames"]  # a script of 81 frames gives 81 poses
    return replace(to, size=tuple(facts["size"])), make_delivery(plan, replace(to, size=tuple(facts["size"])))


@cache
def amplified(script: str, rotation: float, translation: float) -> np.ndarray:
    """The path of a script for a generator that answers too weakly; many have scripts and gains in common."""
    c2w = compile_script(script, axes="first_view").path.c2w
    return amplify_path(c2w, rotation=rotation, translation=translation)


def test_scripts_compile_to_upstreams_targets(golden: Path, index: dict[str, Any]) -> None:
    compared = 0
    for model, facts in index.items():
        gains = facts["gain"]
        for name, made in facts["presets"].items():
            if "refused" in made:
                continue
            with np.load(golden / "models" / model / name / "target.npz") as file:
                target = file["c2w"].astype(float)
            fed = amplified(made["script"], gains["rotation"], gains["translation"])
            assert len(fed) == facts["frames"]
            if len(target) != len(fed):
                continue  # sampled for the model
            fed = limit_translation_per_axis(fed, gains["largest_translation"])
            if model == "hydra":  # a smoothstep in time; the ends and the turning point agree
                at = [0, facts["frames"] // 2, facts["frames"] - 1] if name != "custom" else [0]
                fed, target = fed[at], target[at]
            np.testing.assert_allclose(fed, target, atol=3e-6, err_msg=f"{model} {name}")
            compared += 1
    assert compared > 150


def test_presets_ask_for_what_upstreams_do(index: dict[str, Any]) -> None:
    for name in ("yaw_LR", "pan_LR", "pan_RL", "arc_LR", "static"):
        script = index["gen3c"]["presets"][name]["script"]
        for frames, axes in ((81, "heading"), (121, "first_view")):
            mine = compile_script(preset_script(name, frames=81), frames=frames, axes=axes).path.c2w  # type: ignore[arg-type]
            theirs = compile_script(script, frames=frames, axes=axes).path.c2w  # type: ignore[arg-type]
            # The same path; upstream stays a frame longer at the turning point.
            np.testing.assert_allclose(mine, theirs, atol=0.06)
    assert preset_script("orbit") == "yaw:left:60+pan:right:0.5@40,yaw:right:60+pan:left:0.5@40"
    assert preset_script("arc_RL").startswith("yaw:right:60+dolly:forward:1@40")


def compared(index: dict[str, Any], model: str) -> list[str]:
    return [name for name in PRESETS if "refused" not in index[model]["presets"][name]]


def test_easyanimate(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    model = "easyanimate-v51-camera"
    for name in compared(index, model):
        _, made = ours(index, model, name)
        path = made.write_files_beside(tmp_path / name)
        theirs = golden / "models" / model / name / "easyanimate_control_camera.txt"
        assert len(path.read_text().splitlines()) == len(theirs.read_text().splitlines()) == 146
        kept, wanted = rows_of_19(path)[::3], rows_of_19(theirs)[::3]
        np.testing.assert_allclose(kept[:, 1:], wanted[:, 1:], atol=3e-6, err_msg=name)


def test_magicworld(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for name in compared(index, "magicworld"):
        _, made = ours(index, "magicworld", name)
        lines = made.write_files_beside(tmp_path / name).read_text().splitlines()
        with np.load(golden / "models/magicworld" / name / "in_memory.npz") as file:
            wanted = file["native_rows"]
        rows = np.array([[float(word) for word in line.split()] for line in lines])
        assert rows.shape == wanted.shape == (82, 19)
        np.testing.assert_allclose(rows[:, 7:], wanted[:, 7:], atol=3e-6, err_msg=name)


def test_game_craft_as_upstream_mirrors_it(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for name in compared(index, "hunyuan-game-craft"):
        _, made = ours(index, "hunyuan-game-craft", name, id="hunyuan-game-craft-mirrored")
        rows = rows_of_19(made.write_files_beside(tmp_path / name))
        folder = golden / "models/hunyuan-game-craft" / name
        wanted = rows_of_19(folder / "hunyuan_game_craft_input_pose.txt")
        np.testing.assert_allclose(rows[:, 1:], wanted[:, 1:], atol=3e-6, err_msg=name)
        # Unmirrored it is the target itself.
        _, plain = ours(index, "hunyuan-game-craft", name)
        with np.load(folder / "target.npz") as file:
            np.testing.assert_allclose(
                poses_of_rows(rows_of_19(plain.write_files_beside(tmp_path / name))), file["c2w"], atol=3e-6
            )


def test_worldplay(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for name in compared(index, "hunyuan-worldplay"):
        _, made = ours(index, "hunyuan-worldplay", name)
        mine = json.loads(made.write_files_beside(tmp_path / name).read_text())
        wanted = json.loads((golden / "models/hunyuan-worldplay" / name / "poses.json").read_text())
        assert list(mine) == list(wanted) == [str(k) for k in range(21)]
        for key in wanted:
            for member in ("extrinsic", "K"):
                np.testing.assert_allclose(mine[key][member], wanted[key][member], atol=1e-5, err_msg=f"{name} {key}")


def test_lingbot(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for model in ("lingbot-world", "lingbot-world-act"):
        for name in compared(index, model):
            _, made = ours(index, model, name)
            folder = made.write_files_beside(tmp_path / f"{model}-{name}")
            with np.load(golden / "models" / model / name / "in_memory.npz") as file:
                wanted = dict(file)
            np.testing.assert_allclose(np.load(folder / "poses.npy"), wanted["poses_c2ws"], atol=3e-6, err_msg=name)
            np.testing.assert_allclose(np.load(folder / "intrinsics.npy"), wanted["poses_Ks"], rtol=1e-6)
            if model.endswith("act") and name.startswith("pan"):
                # Upstream writes the amount for a held key, and holds it through the turning point and the last frame.
                differs = np.load(folder / "action.npy") != (wanted["wasd_action"] > 0)
                assert set(np.flatnonzero(differs.any(axis=1)).tolist()) <= {39, 80}


def test_arrays_and_documents(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for model in ("gen3c", "spatia", "hyworld-worldgen", "recammaster"):
        for name in compared(index, model):
            to, made = ours(index, model, name)
            theirs = golden / "models" / model / name
            written = made.write_files_beside(tmp_path / f"{model}-{name}")
            if model == "gen3c":
                with np.load(theirs / "in_memory.npz") as file, np.load(written) as mine:
                    np.testing.assert_allclose(mine["w2cs_all"], file["w2cs"][0], atol=3e-6, err_msg=name)
                continue
            if model == "recammaster":
                with np.load(theirs / "in_memory.npz") as file:
                    wanted = file["camera_embedding"][0].reshape(-1, 3, 4)
                np.testing.assert_allclose(
                    READERS["recammaster"](written, to)[1][:, :3], wanted, atol=3e-5, err_msg=name
                )
                continue
            _, c2w = READERS[to.id](written, to)
            if model == "spatia":
                w2c = [json.loads(line) for line in (theirs / "spatia_w2c.jsonl").read_text().splitlines()]
            else:
                scene = json.loads((theirs / "hyworld_camera.json").read_text())
                w2c = scene["extrinsic"]
                mine = json.loads((written / "camera.json").read_text())
                np.testing.assert_allclose(mine["intrinsic"], scene["intrinsic"], rtol=1e-6)
            np.testing.assert_allclose(
                c2w, relative(np.linalg.inv(np.array(w2c))), atol=5e-6, err_msg=f"{model} {name}"
            )


def test_hydra_has_upstreams_axes_and_unit(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for name in ("yaw_LR", "pan_LR", "dolly_FB", "tilt_UD"):
        to, made = ours(index, "hydra", name)
        _, mine = READERS["hydra"](made.write_files_beside(tmp_path / name), to)
        _, theirs = READERS["hydra"](golden / "models/hydra" / name / "hydra_split_camera.json", to)
        # Upstream eases in and out; the same side, axis and size.
        for values, wanted in zip(mine.reshape(20, 16).T, theirs.reshape(20, 16).T, strict=True):
            at = int(np.argmax(np.abs(wanted - wanted[0])))
            assert values[at] == pytest.approx(wanted[at], abs=0.08)


def test_minwm_says_the_same_tokens(golden: Path, index: dict[str, Any], tmp_path: Path) -> None:
    for name in ("yaw30_LR", "yaw30_RL"):
        _, made = ours(index, "minwm-hy-action2v", name)
        folder = golden / "models/minwm-hy-action2v" / name
        (wanted,) = [json.loads(path.read_text()) for path in folder.glob("*example.json")]
        assert (
            json.loads(made.write_files_beside(tmp_path / name).read_text())[0]["trajectory"] == wanted[0]["trajectory"]
        )


def test_every_generator_that_claims_it_was_compared_here() -> None:
    here = {
        "easyanimate-v51", "magicworld", "hunyuan-game-craft-mirrored", "hunyuan-worldplay", "lingbot-world",
        "lingbot-world-act", "gen3c", "spatia", "hyworld", "recammaster", "hydra", "minwm-hy",
    }  # fmt: skip
    assert {id for id, entry in load_generators().items() if "upstream" in entry.checked} == here
