"""From a camera script to the path a clip is asked to follow: OpenCV camera-to-world, first frame at the origin.

Scripts that are often asked for have names (presets.yaml).

The path compiled here is what a clip is judged against. What a generator is fed may be stronger or coarser (gains,
tokens, sampled poses); that belongs to its payload and never changes the path.

A picture of a path shows it from above, with the direction of sight, and the yaw over the frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import UsageError
from revisit.core.text import read_package_yaml, require_known_name
from revisit.geometry.camera_script import Axes, Step, camera_path_of_length, parse_script
from revisit.geometry.poses import Trajectory, make_trajectory
from revisit.geometry.rotations import axis_angle_of_rotation, rotation_from_axis_angle, yaw_pitch_of_rotation

FIELD_OF_VIEW = 60.0  # degrees across, where nothing else is known
PRESET_FRAMES = 81
PRESETS: dict[str, tuple[str, str]] = read_package_yaml(__package__, "presets.yaml")  # name -> script, what it is
WIDTH, HEIGHT, MARGIN = 720, 300, 40  # of a picture of a path


@dataclass(frozen=True, eq=False)
class CameraPlan:
    """A compiled script: its steps, the path, and the camera it is meant for."""

    script: str
    steps: tuple[Step, ...]
    path: Trajectory  # with intrinsics in pixels
    size: tuple[int, int]  # width, height
    fps: float

    def __len__(self) -> int:
        return len(self.path)

    @property
    def yaw_degrees(self) -> np.ndarray:
        """Degrees to the right of the first view, frame by frame."""
        return np.degrees(np.unwrap(np.radians(yaw_pitch_of_rotation(self.path.rotations)[0])))

    @property
    def farthest_signed_yaw_degrees(self) -> float:
        """The signed yaw farthest from the first view: negative is left."""
        return float(self.yaw_degrees[np.argmax(np.abs(self.yaw_degrees))])


def compile_script(
    script: str,
    *,
    frames: int | None = None,
    size: tuple[int, int] = (832, 480),
    fps: float = 16,
    axes: Axes = "heading",
) -> CameraPlan:
    """The path of a script, at `frames` frames if they are given (see `camera_path_of_length`)."""
    steps = parse_script(script)
    c2w = camera_path_of_length(steps, frames, axes=axes)
    path = make_trajectory(c2w, intrinsics=np.tile(intrinsics(size), (len(c2w), 1, 1)))
    return CameraPlan(script, steps, path, size, fps)


def intrinsics(size: tuple[int, int]) -> np.ndarray:
    """K in pixels of a camera with square pixels and its axis through the middle of the picture."""
    width, height = size
    focal = width / (2 * np.tan(np.radians(FIELD_OF_VIEW / 2)))
    return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])


def amplify_path(c2w: np.ndarray, *, rotation: float, translation: float) -> np.ndarray:
    """A path for a generator that answers too weakly: turns and ways from the first pose, times their gains."""
    path = np.array(c2w, dtype=float)
    before = np.zeros(3)
    for pose in path:
        axis, degrees = axis_angle_of_rotation(pose[:3, :3])
        # 200 degrees look like 160 the other way, and 380 like 20: what is nearest to the pose before is meant.
        if not degrees and before.any():
            axis = before / np.linalg.norm(before)
        degrees += 360 * round((before @ axis - degrees) / 360)
        before = degrees * axis
        pose[:3, :3] = rotation_from_axis_angle(axis, rotation * degrees)
        pose[:3, 3] *= translation
    return path


def limit_translation_per_axis(c2w: np.ndarray, limit: float) -> np.ndarray:
    """The path with the way along each axis kept within a limit."""
    path = np.array(c2w, dtype=float)
    path[:, :3, 3] = np.clip(path[:, :3, 3], -limit, limit)
    return path


def preset_script(name: str, *, degrees: float = 60, metres: float = 0.5, frames: int = PRESET_FRAMES) -> str:
    """The script of a preset over so many frames; an even number cannot be told from the script alone."""
    require_known_name(name, PRESETS, "camera preset")
    if frames < 5:
        raise UsageError(f"a preset needs at least 5 frames, such as 81, not {frames}")
    words = {"degrees": degrees, "metres": metres, "circle": 2 * np.pi}
    counts = {"whole": frames, "out": frames // 2, "back": frames // 2, "steps": frames - 1}
    return PRESETS[name][0].format(**counts, **{word: f"{value:.12g}" for word, value in words.items()})


def camera_plan_svg(plan: CameraPlan) -> str:
    """The path as an SVG image: left, where the camera is (seen from above); right, where it looks."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="12">',
            "<style>.w{fill:none;stroke:#2a6fb0;stroke-width:2}.s{stroke:#d08030;stroke-width:1}.a{stroke:#888}"
            "text{fill:#666}</style>",
            *_top_view_elements(plan),
            *_yaw_plot_elements(plan),
            "</svg>",
        ]
    )


def _top_view_elements(plan: CameraPlan) -> list[str]:
    x, z = plan.path.centres[:, 0], plan.path.centres[:, 2]
    ahead = plan.path.rotations[:, :, 2][:, [0, 2]]
    extent_metres = max(float(np.ptp(x)), float(np.ptp(z)))
    extent = max(extent_metres, 0.5)
    scale, side = (HEIGHT - 3 * MARGIN) / extent, 0.18 * extent
    left, top = MARGIN + 100 - scale * (x.max() + x.min()) / 2, HEIGHT / 2 + scale * (z.max() + z.min()) / 2

    across, down = left + scale * x, top - scale * z
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    lines = []
    for k in np.unique(np.linspace(0, len(plan) - 1, 13).astype(int)):
        x2, y2 = left + scale * (x[k] + side * ahead[k, 0]), top - scale * (z[k] + side * ahead[k, 1])
        lines.append(f'<line class="s" x1="{across[k]:.1f}" y1="{down[k]:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    label = f", {extent_metres:.2g} m across" if extent_metres > 1e-6 else ": the camera stays in place"
    return [f'<text x="{MARGIN}" y="20">from above{label}</text>', f'<polyline class="w" points="{points}"/>', *lines]


def _yaw_plot_elements(plan: CameraPlan) -> list[str]:
    yaw = plan.yaw_degrees
    low, high = min(float(yaw.min()), 0.0), max(float(yaw.max()), 0.0)
    span = max(high - low, 1.0)
    left, right, top, bottom = 330, WIDTH - MARGIN, MARGIN, HEIGHT - MARGIN
    x = np.linspace(left, right, len(yaw))
    y = bottom - (yaw - low) / span * (bottom - top)
    zero = bottom + low / span * (bottom - top)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return [
        f'<text x="{left}" y="20">yaw in degrees over {len(yaw)} frames (right is up)</text>',
        f'<line class="a" x1="{left}" y1="{zero:.1f}" x2="{right}" y2="{zero:.1f}"/>',
        f'<polyline class="w" points="{points}"/>',
        f'<text x="{left - 36}" y="{top + 4}">{high:.0f}</text>',
        f'<text x="{left - 36}" y="{bottom + 4}">{low:.0f}</text>',
    ]
