"""A picture of a camera path: from above, with the direction of sight, and the yaw over the frames."""

from __future__ import annotations

import numpy as np

from revisit.control.requested_path import CameraPlan

WIDTH, HEIGHT, MARGIN = 720, 300, 40


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
