"""The scorers' table as a figure: measures in rows, models with known faults in columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from revisit.audit.benchmark_trials import MODELS, PERFECT
from revisit.audit.schema import Content
from revisit.core.text import read_package_yaml
from revisit.results.display import number_text

LOOKS = read_package_yaml("revisit.audit", "benchmarks.yaml")["verdicts"]
KEY = "Description"  # of the PNG: the digest of what it shows


def content_digest(content: Content) -> str:
    """What a figure was made from."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def draw_figure(content: Content, path: Path) -> Path:
    """Write the figure, and return its path."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    rows = [row for row in content["rows"] if row["perfect_first"] is not None]
    published = [row for row in rows if row["published"]]
    corrected = {(row["suite"], row["measure"]): row for row in rows if not row["published"]}
    height = 0.34 * len(published) + 1.5  # inches; the rest is for headings and the legend
    figure, axes = plt.subplots(1, 2, figsize=(15.5, height), sharey=True, gridspec_kw={"wspace": 0.03})
    _draw_half(axes[0], "as published", published)
    _draw_half(axes[1], "corrected", [corrected.get((row["suite"], row["measure"])) for row in published])
    labels = [
        f"{row['benchmark']}  {row['title']}{'*' if row['stand_in'] else ''} {'↑' if row['higher_is_better'] else '↓'}"
        for row in published
    ]
    axes[0].set_yticks(range(len(published)), labels, fontsize=9)
    for y in range(1, len(published)):  # a line between benchmarks, across both halves
        if published[y]["suite"] != published[y - 1]["suite"]:
            axes[0].plot([-5.2, 16.2], [y - 0.5, y - 0.5], color="#b5bac0", linewidth=0.8, clip_on=False, zorder=0)
    legend = {look["legend"]: look["colour"] for look in LOOKS.values() if "legend" in look}
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in legend.values()]
    figure.legend(handles, legend, loc="lower center", ncol=4, frameon=False, fontsize=9)
    figure.suptitle(
        f"What published measures give models with known faults: means over {content['worlds']} rendered worlds"
        " (* by another network than the published one)",
        fontsize=12, y=0.995,
    )  # fmt: skip
    figure.subplots_adjust(left=0.255, right=0.995, top=1 - 0.95 / height, bottom=0.55 / height)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={KEY: content_digest(content)})
    plt.close(figure)
    return path


def _draw_half(axis: Any, title: str, rows: Sequence[Content | None]) -> None:
    """One half: a cell per measure and model."""
    names = list(MODELS)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xticks(range(len(names)), list(MODELS.values()), fontsize=8.5, rotation=20, ha="left")
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.set_title(title, fontsize=11, fontweight="bold", pad=8)
    for spine in axis.spines.values():
        spine.set_visible(False)
    for y, row in enumerate(rows):
        for x, model in enumerate(names):
            _draw_cell(axis, x, y, row, model)


def _draw_cell(axis: Any, x: int, y: int, row: Content | None, model: str) -> None:
    from matplotlib.patches import Rectangle

    if row is None:
        return
    cell = row["cells"][model]
    sign = LOOKS[cell["verdict"]]["sign"]
    colour = LOOKS["" if model == PERFECT else cell["verdict"]]["colour"]
    axis.add_patch(Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, color=colour))
    text = sign if cell["mean"] is None else f"{number_text(cell['mean'])} {sign if sign in '=>' else ''}".strip()
    quiet = not cell["verdict"] and model != PERFECT
    axis.text(
        x, y, text or "–", ha="center", va="center", fontsize=7.5 if sign == "not scored" else 8.5,
        color="#a0a6ad" if quiet else "#1c2126", fontweight="bold" if model == PERFECT else "normal",
    )  # fmt: skip
