"""Figures for papers, as SVG or PDF: what a run found, drawn with matplotlib, which is imported when one is asked for.

Every text is only text: names with dollars, markup or control characters are shown as they are or as U+FFFD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from revisit.core import METRICS, Case, UsageError
from revisit.core.grouping import group_items
from revisit.core.optional import import_optional
from revisit.core.text import printable_text
from revisit.results import Cell, Results
from revisit.results.cells import range_limits_of_metric
from revisit.results.display import number_text, score_title, score_title_with_arrow
from revisit.results.score_names import find_metric_of_score, strip_held_suffix

PALETTE = ("#0b6e6e", "#c2571a", "#5b4aa8", "#a0812a", "#b03060", "#3a7d2c", "#2b5fa8", "#777777", "#8c4b32")
DASHES = ("-", "--", "-.", ":")  # beyond colour, for who cannot tell colours apart
PHASES = ("visible", "hidden", "returned")
WORST = "#c2271a"
STEPS = 24  # of a curve over time
STYLE = Path(__file__).with_name("figures.mplstyle")
LONG_SIDE = 320  # of a picture in a strip


def load_pyplot() -> Any:
    """pyplot without a screen, set up so that the same numbers give the same file and every text stays text."""
    matplotlib = import_optional("matplotlib", "figures")
    matplotlib.use("Agg")
    matplotlib.rcParams.update(matplotlib.rc_params_from_file(STYLE, use_default_template=False))
    return import_optional("matplotlib.pyplot", "figures")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of its file's name; no date goes in, so equal figures are equal files."""
    kind = path.suffix.lower().lstrip(".")
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}.get(kind)
    if stamp is None:
        raise UsageError(f"figures are written as svg, pdf or png, not as {path.name!r}")
    figure.savefig(path, metadata=stamp, bbox_inches="tight")
    load_pyplot().close(figure)


def _line_colour_and_dash(place: int) -> dict[str, str]:
    return {"color": PALETTE[place % len(PALETTE)], "linestyle": DASHES[place // len(PALETTE) % len(DASHES)]}


def metrics_a_radar_can_show(results: Results, metrics: Sequence[str]) -> list[str]:
    """Those that a radar can show: with scores, both ends of a range, and a better end."""
    cards = {metric: find_metric_of_score(metric) for metric in metrics}
    return [
        metric
        for metric, card in cards.items()
        if card is not None and card.higher_is_better is not None and None not in card.range and results.scores(metric)
    ]


def radar(results: Results, metrics: Sequence[str]) -> Any:
    """Models around metrics, each on its range, the better end outside. At least three metrics with a range."""
    plotted = metrics_a_radar_can_show(results, metrics)
    if len(plotted) < 3:
        raise UsageError(
            f"a radar needs three metrics with scores and a range; here are {len(plotted)}: name others with -m"
        )
    angles = np.linspace(0, 2 * np.pi, len(plotted), endpoint=False)
    figure, axes = load_pyplot().subplots(figsize=(5, 5), subplot_kw={"projection": "polar"})
    for place, (model, part) in enumerate(results.groups("model").items()):
        shares = []
        for metric in plotted:
            low, high = (float(end or 0.0) for end in range_limits_of_metric(metric))
            mean = part.cell(metric).mean
            share = np.nan if mean is None else (mean - low) / (high - low)
            shares.append(share if METRICS[strip_held_suffix(metric)].higher_is_better else 1 - share)
        axes.plot(
            [*angles, angles[0]],
            [*shares, shares[0]],
            label=printable_text(model),
            **_line_colour_and_dash(place),
            marker="o",
            ms=3,
        )
    axes.set_xticks(angles, [])
    for angle, metric in zip(angles, plotted, strict=True):  # outside the circle, each on its own side of it
        side, height = np.cos(angle), np.sin(angle)
        across = "center" if abs(side) < 0.1 else "left" if side > 0 else "right"
        up = "center" if abs(height) < 0.1 else "bottom" if height > 0 else "top"
        higher = METRICS[strip_held_suffix(metric)].higher_is_better
        title = score_title(metric) + ("" if higher else " ↓, lowest outside")
        axes.text(angle, 1.08, _wrap_text(title, 20), ha=across, va=up, fontsize=7)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], [])
    figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3, frameon=False)
    return figure


def _wrap_text(text: str, width: int) -> str:
    return "\n".join(wrap(printable_text(text), width))


def horizon(results: Results, metrics: Sequence[str]) -> Any:
    """A metric over the time of the clip, the mean over clips per model; where frames are missing there is a gap."""
    if not metrics:
        raise UsageError("the run has no metric with values over time; name one with -m")
    figure, grid = load_pyplot().subplots(
        len(metrics), 1, figsize=(6, 2.4 * len(metrics)), squeeze=False, sharex=True, layout="constrained"
    )
    for axes, metric in zip(grid[:, 0], metrics, strict=True):
        for place, (model, part) in enumerate(results.groups("model").items()):
            curves = [
                curve for case in part.cases if (curve := _mean_values_in_time_steps(results, case, metric)) is not None
            ]
            if curves:
                count = np.isfinite(curves).sum(axis=0)
                mean = np.where(count > 0, np.nansum(curves, axis=0) / np.maximum(count, 1), np.nan)
                axes.plot(
                    (np.arange(STEPS) + 0.5) / STEPS, mean, label=printable_text(model), **_line_colour_and_dash(place)
                )
        if not axes.has_data():
            raise UsageError(f"{metric} has no values over time in this run")
        axes.set_title(_wrap_text(score_title_with_arrow(metric), 60), loc="left")
        axes.set_xlim(0, 1)
    grid[-1, 0].set_xlabel("share of the clip")
    lines = {line.get_label(): line for axes in grid[:, 0] for line in axes.get_lines()}  # one entry a model
    figure.legend(lines.values(), lines, frameon=False, loc="outside right upper")
    return figure


def _mean_values_in_time_steps(results: Results, case: Case, metric: str) -> np.ndarray | None:
    """Means of a clip's values in equal steps of its length; nan where a step has none."""
    series = results.series(case, metric)
    if series is None or not {"frame", "value"} <= series.columns.keys() or not len(series):
        return None
    frames, values = np.asarray(series["frame"], float), np.asarray(series["value"], float)
    length = max(float(frames.max()) + 1, float(case.clip.count or 0), _frame_count_from_series(results, case))
    steps = np.clip((frames / length * STEPS).astype(int), 0, STEPS - 1)
    finite = np.isfinite(values)
    total = np.bincount(steps[finite], values[finite], STEPS)
    count = np.bincount(steps[finite], minlength=STEPS)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _frame_count_from_series(results: Results, case: Case) -> float:
    """The last frame that any answer about a clip speaks of."""
    for metric in ("motion_amount", "flicker", "psnr", "camera_path"):
        series = results.series(case, metric)
        if series is not None and "frame" in series.columns and len(series):
            return float(np.max(series["frame"])) + 1
    return 0.0


def correlation(results: Results, metrics: Sequence[str]) -> Any:
    """Pearson's correlation of metrics over clips, as a matrix with its numbers."""
    from revisit.stats.correlation import pearson_matrix

    plotted = [metric for metric in metrics if len(results.scores(metric)) > 2]
    if len(plotted) < 2:
        raise UsageError("a correlation needs two metrics with three scores each; name others with -m")
    columns = {metric: [results.score(case, metric) for case in results.cases] for metric in plotted}
    rows = pearson_matrix(columns)
    table = np.array([[rows[one][other] for other in plotted] for one in plotted], dtype=float)
    side = 1.6 + 0.5 * len(plotted)
    figure, axes = load_pyplot().subplots(figsize=(side + 1, side))
    axes.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1)
    names = [printable_text(score_title(metric)) for metric in plotted]
    axes.set_xticks(range(len(plotted)), names, rotation=60, ha="right", fontsize=7)
    axes.set_yticks(range(len(plotted)), names, fontsize=7)
    for i, j in np.ndindex(table.shape):
        if np.isfinite(table[i, j]):
            dark = abs(table[i, j]) > 0.6
            axes.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", fontsize=6, color="w" if dark else "k")
    return figure


def phases(results: Results, metrics: Sequence[str]) -> Any:
    """Bars per phase and model, of metrics whose facts hold a mean for each phase."""
    means_by_metric = {
        metric: means_by_model for metric in metrics if (means_by_model := _phase_means_by_model(results, metric))
    }
    if not means_by_metric:
        candidates = [metric for metric in results.metrics if _phase_means_by_model(results, metric)]
        raise UsageError(f"none of these has a mean for each phase; here {', '.join(candidates) or 'no metric'} has")
    figure, grid = load_pyplot().subplots(
        1, len(means_by_metric), figsize=(1.2 + 3.2 * len(means_by_metric), 2.8), squeeze=False
    )
    for axes, (metric, means_by_model) in zip(grid[0], means_by_metric.items(), strict=True):
        width = 0.8 / len(means_by_model)
        for place, (model, means) in enumerate(means_by_model.items()):
            at = np.arange(len(PHASES)) + (place - (len(means_by_model) - 1) / 2) * width
            axes.bar(at, [means.get(name, np.nan) for name in PHASES], width * 0.92,
                     color=PALETTE[place % len(PALETTE)], label=printable_text(model))  # fmt: skip
        axes.set_xticks(range(len(PHASES)), PHASES)
        axes.set_title(printable_text(score_title_with_arrow(metric)), loc="left")
    grid[0, -1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _phase_means_by_model(results: Results, metric: str) -> dict[str, dict[str, float]]:
    scores = [record for record in results.scores(metric) if isinstance(record.facts.get("mean"), Mapping)]
    means: dict[str, dict[str, float]] = {}
    for model, records in group_items(scores, lambda record: record.case.model).items():
        for name in PHASES:
            values = [one.facts["mean"].get(name) for one in records]
            if numbers := [float(value) for value in values if isinstance(value, int | float)]:
                means.setdefault(model, {})[name] = float(np.mean(numbers))
    return means


def scatter(results: Results, metrics: Sequence[str]) -> Any:
    """Two metrics against each other: a faint point per clip that has both, and per model the means of these clips."""
    if len(metrics) != 2:
        raise UsageError(f"a scatter plot takes two metrics (-m one -m other), not {len(metrics)}")
    first, second = metrics
    figure, axes = load_pyplot().subplots(figsize=(4.6, 3.8))
    for place, (model, part) in enumerate(results.groups("model").items()):
        pairs = {case.id: (results.score(case, first), results.score(case, second)) for case in part.cases}
        both = {id: pair for id, pair in pairs.items() if None not in pair}
        if not both:
            continue
        points = np.array(list(both.values()), float)
        part = part.only(lambda entry, ids=both: entry.id in ids)  # type: ignore[misc]
        color = PALETTE[place % len(PALETTE)]
        axes.scatter(points[:, 0], points[:, 1], s=10, color=color, alpha=0.35, linewidths=0)
        cells = part.cell(first), part.cell(second)
        bars = [_error_bar_lengths(cell) for cell in cells]
        axes.errorbar(cells[0].mean, cells[1].mean, xerr=bars[0], yerr=bars[1], color=color, marker="o",
                      label=printable_text(model))  # fmt: skip
    if not axes.has_data():
        raise UsageError(f"no clip has scores of both {first} and {second}")
    axes.set_xlabel(printable_text(score_title_with_arrow(first)))
    axes.set_ylabel(printable_text(score_title_with_arrow(second)))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _error_bar_lengths(cell: Cell) -> list[list[float]] | None:
    """How far an interval reaches below and above its mean."""
    if cell.mean is None or cell.interval is None:
        return None
    return [[cell.mean - cell.interval[0]], [cell.interval[1] - cell.mean]]


def camera_path_figure(
    results: Results, cases: Sequence[Case], requested_path: Callable[[Case, int], np.ndarray | None], truth: Results
) -> Any:
    """Where the camera looked, in degrees over frames: what clips and their `truth` show, and what was asked, dotted.

    `requested_path` gives (frames, 2) of yaw and pitch for a case, or None.
    """
    figure, grid = load_pyplot().subplots(2, 1, figsize=(6, 4.2), sharex=True)
    any_path = False
    for place, case in enumerate(cases):
        series = results.series(case, "camera_path")
        if series is None or "yaw" not in series.columns:
            continue
        for axes, name in zip(grid, ("yaw", "pitch"), strict=True):
            axes.plot(series["frame"], series[name], label=printable_text(case.model), **_line_colour_and_dash(place))
        if not any_path and (requested := requested_path(case, int(np.max(series["frame"])) + 1)) is not None:
            for axes, column in zip(grid, requested.T, strict=True):
                axes.plot(column, color="k", linestyle=":", label="asked", zorder=9)
        any_path = True
    if not any_path:
        raise UsageError("no clip here has a camera path; the metric camera_path brings it")
    for case in truth.cases:
        if (series := truth.series(case, "camera_path")) is not None:
            for axes, name in zip(grid, ("yaw", "pitch"), strict=True):
                axes.plot(series["frame"], series[name], label="truth", color="k", linewidth=1.0)
    for axes, name in zip(grid, ("turn to the right, degrees", "turn upwards, degrees"), strict=True):
        axes.set_ylabel(name)
    grid[1].set_xlabel("frame")
    grid[0].set_title(printable_text(cases[0].sample), loc="left")
    grid[0].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def film_strip_figure(
    rows: Sequence[tuple[str, str, Mapping[int, np.ndarray], int | None]],
    columns: Sequence[tuple[str, int]],
    title: str,
) -> Any:
    """A film strip: a row per clip (name, label, pictures by frame, the failing frame), frames as columns."""
    first = next(iter(rows[0][2].values()))
    ratio = first.shape[0] / first.shape[1]
    width = 1.45
    figure, grid = load_pyplot().subplots(
        len(rows),
        len(columns),
        squeeze=False,
        figsize=(1.6 + width * len(columns), (width * ratio + 0.08) * len(rows) + 0.3),
    )
    figure.subplots_adjust(wspace=0.03, hspace=0.05)
    figure.suptitle(printable_text(title), x=figure.subplotpars.left, y=1.0, ha="left", va="bottom", fontsize=8)
    for line, (name, label, pictures, failing) in zip(grid, rows, strict=True):
        marked = (
            None if failing is None else min((frame for _, frame in columns), key=lambda frame: abs(frame - failing))
        )
        for axes, (_, frame) in zip(line, columns, strict=True):
            axes.set_xticks([])
            axes.set_yticks([])
            if frame in pictures:
                axes.imshow(pictures[frame], aspect="auto", interpolation="antialiased")
            for spine in axes.spines.values():
                spine.set_visible(True)
                spine.set_color(WORST if frame == marked else "#ffffff")
                spine.set_linewidth(2.0 if frame == marked else 0.0)
        row_label = "\n".join(map(printable_text, [name, *label.splitlines()]))
        line[0].set_ylabel(row_label, rotation=0, ha="right", va="center", fontsize=7)
    for axes, (title, frame) in zip(grid[0], columns, strict=True):
        axes.set_title(printable_text(title or f"frame {frame}"), fontsize=7)
    return figure


def film_strip_columns(case: Case, count: int, extra: Iterable[int] = ()) -> list[tuple[str, int]]:
    """Columns of a strip: frames in each phase where the phases are known, else spaced from first to last."""
    from revisit.media import read_clip_info

    last = read_clip_info(case.clip).count - 1
    frames = {int(frame) for frame in np.round(np.linspace(0, last, count))}
    frames |= {min(max(int(frame), 0), last) for frame in extra}

    def column_title(frame: int) -> str:
        if case.phases is None:
            return f"frame {frame}" if frame else "first"
        hidden, back = case.phases
        return f"{'visible' if frame < hidden else 'hidden' if frame < back else 'returned'}, {frame}"

    return [(column_title(frame), frame) for frame in sorted(frames)]


def read_scaled_frames(case: Case, frames: Iterable[int]) -> dict[int, np.ndarray]:
    """Frames of a clip by their number, scaled down."""
    from revisit.media import open_clip

    with open_clip(case.clip, wanted=np.array(sorted(set(frames)), int)) as stream:
        return {frame.index: np.asarray(frame.at(LONG_SIDE)) for frame in stream}


def score_lines(results: Results, case: Case, metrics: Sequence[str]) -> str:
    """`Target reappears 1.00, …`: scores of a clip, as a label."""
    scores = {metric: results.score(case, metric) for metric in metrics}
    return "\n".join(f"{score_title(id)} {number_text(value)}" for id, value in scores.items() if value is not None)
