"""Paths that turn and move, for every generator that takes a file: what its loader makes of ours, or why it is refused.

The readers (`tests/loaders.py`) and the rules below are written from the loaders' facts and share nothing with the
writers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from revisit.control.delivery import Delivery, make_delivery, plan_for_generator
from revisit.control.generators import Generator, find_generator
from revisit.control.payloads import FAMILIES, PayloadError
from revisit.control.requested_path import CameraPlan, preset_script
from tests.loaders import READERS, lingbot_keys, matrix_game_2_keys, walked

GENERATORS = [
    "easyanimate-v51", "gen3c", "hunyuan-game-craft", "hunyuan-worldplay", "hydra", "hyworld", "inspatio-world",
    "lingbot-world", "lingbot-world-act", "liveworld", "magicworld", "matrix-game-2", "matrix-game-3", "minwm-hy",
    "minwm-wan", "recammaster", "sana-wm", "spatia", "versecrafter", "voyager", "wan21-fun-14b", "wan21-fun-1p3b",
    "wan22-fun-5b", "wan22-fun-a14b",
]  # fmt: skip
LOADER_UNITS = {"hunyuan-game-craft": 10.0}  # that the loader makes of a metre
KEY_SPEED = {"lingbot-world-act": 1.0, "matrix-game-2": 1.0, "matrix-game-3": 12.35}  # of one key, between two poses
TOKEN = (3.0, 0.08)  # degrees and metres


def scripts(frames: int) -> dict[str, str]:
    """Five presets, and three scripts that turn while they move, at one speed and at several."""
    third, rest = (frames - 1) // 3, frames - 1 - 2 * ((frames - 1) // 3)
    return {
        **{name: preset_script(name, frames=frames) for name in ("yaw_LR", "orbit", "arc_LR", "dolly_FB", "static")},
        "curve": f"yaw:right:40+dolly:forward:0.3@{third},hold@{third},yaw:left:70+truck:left:0.45@{rest}",
        "slant": f"yaw:left:50+dolly:forward:0.3+pan:right:0.2@{third},dolly:back:0.1@{third},yaw:right:15@{rest}",
        "round": f"yaw:right:90+truck:left:0.5@{third},yaw:left:90+dolly:forward:0.2@{third + rest}",
    }


NO_REST = {"gen3c", "hunyuan-game-craft", "hydra", "inspatio-world", "recammaster", "voyager"}
BOTH = "either turns or moves"
TURNING = ("orbit", "arc_LR", "curve", "slant", "round")
REFUSED = {  # generator -> script -> words of the reason
    **{id: {"static": "camera still"} for id in NO_REST},
    "inspatio-world": {"static": "camera still", **dict.fromkeys(TURNING, "moves")},
    "voyager": {"static": "camera still", **dict.fromkeys(("yaw_LR", "dolly_FB", *TURNING), "six")},
    "minwm-hy": {"dolly_FB": "none rests", **dict.fromkeys(TURNING, BOTH)},
    "minwm-wan": dict.fromkeys(TURNING, BOTH),
}  # fmt: skip


def amplified(plan: CameraPlan, to: Generator, *, clip: bool) -> np.ndarray:
    """What was asked, times the gains of the card; ways cut to the largest that it takes."""
    turns, ways, most = to.gain if FAMILIES[to.payload].gains else (1, 1, np.inf)
    c2w = plan.path.c2w.copy()
    if np.abs(plan.yaw_degrees).max() > 1e-9:  # all these scripts turn about the vertical alone
        c2w[:, :3, :3] = Rotation.from_euler("Y", turns * plan.yaw_degrees[:, None], degrees=True).as_matrix()
    c2w[:, :3, 3] *= ways
    c2w[:, :3, 3] = np.clip(c2w[:, :3, 3], -most, most) if clip else c2w[:, :3, 3]
    return c2w


def degrees_between(first: np.ndarray, second: np.ndarray) -> float:
    turned = Rotation.from_matrix(first[:, :3, :3]).inv() * Rotation.from_matrix(second[:, :3, :3])
    return float(np.degrees(turned.magnitude()).max())


def best_scale(asked: np.ndarray, told: np.ndarray) -> float:
    return float(np.linalg.lstsq(told.reshape(-1, 1), asked.ravel(), rcond=None)[0][0]) if told.any() else 0.0


def require_keys(id: str, plan: CameraPlan, made: Delivery, written: Path) -> None:
    """Turns as the mouse or the poses say them, and ways within one key's step at the best scale."""
    to = find_generator(id)
    if id == "matrix-game-2":
        told = walked(matrix_game_2_keys(written, to.frames), plan.yaw_degrees[::4])
        frames = np.arange(0, to.frames, 4)
    else:
        frames, c2w = READERS[id](written, to)
        assert degrees_between(amplified(plan, to, clip=False)[frames], c2w) < (0.16 if id == "matrix-game-3" else 1e-4)
        told = walked(lingbot_keys(written), plan.yaw_degrees[frames]) if id == "lingbot-world-act" else c2w[:, :3, 3]
    asked = plan.path.c2w[frames, :3, 3]
    scale = best_scale(asked, told)
    off = float(np.linalg.norm(asked - scale * told, axis=1).max())
    assert off <= scale * KEY_SPEED[id] + 1e-9, (off, scale)
    assert (not told.any()) == (not asked.any())
    assert made.way_error is None or made.way_error >= 0.97 * off  # in any frame, not only where the loader looks
    # It comes back where the path does.
    if np.linalg.norm(asked[-1]) < 1e-9:
        assert np.linalg.norm(told[-1]) <= KEY_SPEED[id] + 1e-9


def require_tokens(id: str, plan: CameraPlan, made: Delivery, written: Path) -> None:
    degrees, metres = made.options.get("degrees", TOKEN[0]), TOKEN[1]
    frames, c2w = READERS[id](written, replace(find_generator(id), options=made.options))
    asked = plan.path.c2w[frames]
    assert degrees_between(asked, c2w) <= degrees * 1.001
    assert np.linalg.norm(asked[:, :3, 3] - c2w[:, :3, 3], axis=1).max() <= metres * 1.001


def require_poses(id: str, plan: CameraPlan, written: Path) -> None:
    to = find_generator(id)
    frames, c2w = READERS[id](written, to)
    asked = amplified(plan, to, clip=True)[frames]
    np.testing.assert_allclose(c2w[:, :3, :3], asked[:, :3, :3], atol=1e-6)
    ways = asked[:, :3, 3] * LOADER_UNITS.get(id, 1.0)
    if id == "lingbot-world":  # poses from one latent frame to the next, their ways divided by the longest
        between = np.linalg.inv(asked[:-1]) @ asked[1:]
        longest = np.linalg.norm(between[:, :3, 3], axis=1).max()
        ways = ways / longest if longest > 1e-9 else ways
    np.testing.assert_allclose(c2w[:, :3, 3], ways, atol=1e-6 * LOADER_UNITS.get(id, 1.0))


@pytest.mark.parametrize("name", sorted(scripts(81)))
@pytest.mark.parametrize("id", GENERATORS)
def test_the_loader_gets_the_path_or_the_user_gets_a_reason(id: str, name: str, tmp_path: Path) -> None:
    to = find_generator(id)
    plan = plan_for_generator(scripts(to.frames)[name], to, to.frames)
    reason = REFUSED.get(id, {}).get(name)
    if reason is not None:
        with pytest.raises(PayloadError, match=reason):
            make_delivery(plan, to)
        return
    made = make_delivery(plan, to)
    written = made.write_files_beside(tmp_path / "clip")
    if id in KEY_SPEED:
        require_keys(id, plan, made, written)
    elif id.startswith("minwm"):
        require_tokens(id, plan, made, written)
    else:
        require_poses(id, plan, written)


def runs(id: str, name: str, folder: Path) -> str:
    """The keys of a script, in runs: `d a`."""
    to = find_generator(id)
    written = make_delivery(
        plan_for_generator(preset_script(name, frames=to.frames), to, to.frames), to
    ).write_files_beside(folder / "clip")
    if id == "lingbot-world-act":
        rows = np.load(written / "action.npy")[:, [0, 2, 1, 3]]
    else:
        with np.load(written) as file:
            rows = file["keyboard_cond"][0] if id == "matrix-game-2" else file["keyboard"][:, :4]
    pressed = ["".join(key for key, held in zip("wsad", row, strict=True) if held) for row in rows]
    return " ".join(key for key, _ in groupby(pressed) if key)


@pytest.mark.parametrize("id", sorted(KEY_SPEED))
@pytest.mark.parametrize(
    ("name", "keys"),
    [("orbit", "d a"), ("arc_LR", "w s"), ("arc_RL", "w s"), ("dolly_FB", "w s"), ("pan_RL", "d a"), ("yaw_LR", ""),
     ("around_LR", "a d")],
)  # fmt: skip
def test_one_key_is_held_where_one_explains_the_motion(id: str, name: str, keys: str, tmp_path: Path) -> None:
    assert runs(id, name, tmp_path) == keys


@pytest.mark.parametrize("id", sorted(KEY_SPEED))
def test_the_error_of_keys_is_told_and_what_they_cannot_do_is_refused(id: str) -> None:
    to = find_generator(id)
    frames = to.frames
    made = make_delivery(plan_for_generator(scripts(frames)["slant"], to, frames), to)
    assert made.way_error is not None and made.key_step is not None and 0 < made.way_error <= made.key_step
    assert made.record_facts()["largest_way_error_metres"] == pytest.approx(made.way_error, abs=1e-6)
    assert any("one key's step" in remark for remark in made.remarks())
    # A metre is as good as ten: keys have a speed of their own, and only the shape of the way is theirs.
    far = make_delivery(
        plan_for_generator(f"dolly:forward:10@{(frames - 1) // 2},dolly:back:10@{(frames - 1) // 2}", to, frames), to
    )
    assert not far.clipped and far.loaded.ways == "shape"
    with pytest.raises(PayloadError, match="rises"):
        make_delivery(plan_for_generator(f"crane:up:0.5@{frames - 1}", to, frames), to)
    brief = f"dolly:forward:0.2@2,dolly:back:0.2@2,yaw:left:20@{frames - 5}"
    if id == "matrix-game-3":  # its keys change in every frame
        assert make_delivery(plan_for_generator(brief, to, frames), to).key_step == pytest.approx(0.1)
    else:
        with pytest.raises(PayloadError, match="too briefly"):
            make_delivery(plan_for_generator(brief, to, frames), to)


def test_sixty_degrees_of_minwm_are_told_with_the_patch_they_need(tmp_path: Path) -> None:
    for id in ("minwm-wan", "minwm-hy"):
        to = find_generator(id)
        small, large = (
            make_delivery(plan_for_generator(preset_script("yaw_LR", degrees=degrees, frames=77), to, 77), to)
            for degrees in (30, 60)
        )
        assert (
            not small.needs_patched_copy
            and small.degrees_per_token == 3
            and not any("patch" in text for text in small.remarks())
        )
        assert large.needs_patched_copy and large.degrees_per_token == 6 and not large.is_exact
        assert any("6 degrees" in remark for remark in large.remarks())
        assert large.record_facts()["patched"]["degrees"] == 6
        assert b"j*10,l*9" in next(iter(large.files.values())) and b"j*10,l*9" in next(iter(small.files.values()))
    still = make_delivery(
        plan_for_generator(preset_script("static", frames=77), find_generator("minwm-wan"), 77),
        find_generator("minwm-wan"),
    )
    assert still.one_line_payload == "z*19" and still.needs_patched_copy


def test_refusals_are_known_before_anything_runs() -> None:
    from revisit.control.delivery import refusal_reasons

    voyager = find_generator("voyager")
    found = refusal_reasons({"out": "yaw:left:60@24,yaw:right:60@24", "left": "yaw:left:45@48"}, voyager)
    assert set(found) == {"out"} and "six moves" in found["out"]


def test_hailuo_gets_commands_in_brackets() -> None:
    to = find_generator("hailuo")
    lines = {
        name: make_delivery(plan_for_generator(preset_script(name), to, 81), to).one_line_payload
        for name in ("static", "yaw_LR", "pan_RL", "arc_LR")
    }
    assert lines == {
        "static": "[Static shot]", "yaw_LR": "[Pan left], then [Pan right]",
        "pan_RL": "[Truck right], then [Truck left]", "arc_LR": "[Pan left,Push in], then [Pan right,Pull out]",
    }  # fmt: skip
    with pytest.raises(PayloadError, match="at most 3 at once"):
        make_delivery(plan_for_generator("roll:left:10@80", to, 81), to)
