"""Loggers: scalars with intervals, the worst moments as pictures, and the report's address, for each that is in use.

None of the libraries is imported unless the user's own object is of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from revisit.core import UsageError

REPORT = "revisit/report"
CHARTS = "_revisit_charts"  # marks a writer that has its charts


@dataclass(frozen=True)
class MomentPicture:
    """A moment to look at: the first view, the worst frame, and the truth at that frame where there is one.

    Attributes
    ----------
    name
        Under which loggers keep it: `worst_1` is the worst.
    rgb
        Pixels (height, width, 3) of bytes.
    caption
        Clip, frame and score.
    """

    name: str
    rgb: np.ndarray
    caption: str


@dataclass(frozen=True)
class LogEntry:
    """What loggers are given of a checkpoint."""

    scalars: Mapping[str, float]
    pictures: Callable[[], Sequence[MomentPicture]]  # drawn for a logger that takes them
    report: Path | None = None

    @property
    def report_address(self) -> str | None:
        """Address of the page, as a link."""
        return None if self.report is None else self.report.resolve().as_uri()


def write_to_loggers(entry: LogEntry, logger: Any, step: int) -> None:
    """Write scalars, pictures and the report's address to a logger, or to each of several."""
    if isinstance(logger, list):
        for one in logger:
            write_to_loggers(entry, one, step)
        return
    homes = _packages_of_logger(logger)
    if homes & {"lightning", "pytorch_lightning"}:
        _write_to_lightning(entry, logger, step)
    elif "wandb" in homes:
        _write_to_wandb(entry, logger, step)
    elif "mlflow" in homes:
        _write_to_mlflow(entry, logger, step)
    elif hasattr(logger, "add_scalar"):
        _write_to_tensorboard(entry, logger, step)
    else:
        raise UsageError(
            f"{type(logger).__name__} is no logger that is known: give a W&B run, a TensorBoard SummaryWriter, "
            "mlflow or (client, run_id), or a logger of Lightning; `scalars()` and `pictures()` go to any other"
        )


def _packages_of_logger(logger: Any) -> set[str]:
    """Packages that the logger, or the first of a pair, is of."""
    if isinstance(logger, tuple) and logger:
        return _packages_of_logger(logger[0])
    names = [logger.__name__] if isinstance(logger, ModuleType) else [one.__module__ for one in type(logger).__mro__]
    return {name.partition(".")[0] for name in names}


def _write_to_wandb(entry: LogEntry, run: Any, step: int) -> None:
    import wandb

    run = run.run if isinstance(run, ModuleType) else run
    if run is None:
        raise UsageError("W&B has no run yet; call wandb.init() before")
    content: dict[str, Any] = dict(entry.scalars)
    for picture in entry.pictures():
        content[f"revisit/{picture.name}"] = wandb.Image(picture.rgb, caption=picture.caption)
    if address := entry.report_address:
        content[REPORT] = wandb.Html(f'<a href="{address}">{address}</a>')
    run.log(content, step=step)


def _write_to_tensorboard(entry: LogEntry, writer: Any, step: int) -> None:
    for name, value in entry.scalars.items():
        writer.add_scalar(name, value, step)
    if not hasattr(writer, "add_image"):
        raise UsageError("this writer takes no pictures; give torch.utils.tensorboard.SummaryWriter")
    for picture in entry.pictures():
        writer.add_image(f"revisit/{picture.name}", picture.rgb, step, dataformats="HWC")
        writer.add_text(f"revisit/{picture.name}_caption", picture.caption, step)
    if address := entry.report_address:
        writer.add_text(REPORT, f"[{address}]({address})", step)
    bands = {name for name in entry.scalars if f"{name}_low" in entry.scalars}
    charted: frozenset[str] = getattr(writer, CHARTS, frozenset())
    if not bands <= charted:  # charts with their intervals as a band
        setattr(writer, CHARTS, bands | charted)
        margins = {name: ["Margin", [name, f"{name}_low", f"{name}_high"]] for name in sorted(bands | charted)}
        charts = {name.partition("/")[2]: margin for name, margin in margins.items()}
        writer.add_custom_scalars({"revisit": charts})
    writer.flush()


def _write_to_mlflow(entry: LogEntry, logger: Any, step: int) -> None:
    import mlflow
    from mlflow.tracking import MlflowClient

    if isinstance(logger, tuple):
        client, run_id = logger
    else:
        client = logger if isinstance(logger, MlflowClient) else MlflowClient()
        active = mlflow.active_run()
        if active is None:
            raise UsageError("MLflow has no active run; call mlflow.start_run() before, or give (client, run_id)")
        run_id = active.info.run_id
    for name, value in entry.scalars.items():
        client.log_metric(run_id, name, value, step=step)
    for picture in entry.pictures():
        client.log_image(run_id, picture.rgb, key=f"revisit_{picture.name}", step=step)
        client.log_text(run_id, picture.caption, f"revisit/{picture.name}_{step:08d}.txt")
    if address := entry.report_address:
        client.set_tag(run_id, "revisit.report", address)


def _write_to_lightning(entry: LogEntry, logger: Any, step: int) -> None:
    """What is behind a logger of Lightning; one that has no pictures is given the scalars."""
    inner = logger.experiment
    if "mlflow" in _packages_of_logger(inner):
        _write_to_mlflow(entry, (inner, logger.run_id), step)
    elif "wandb" in _packages_of_logger(inner) or hasattr(inner, "add_image"):
        write_to_loggers(entry, inner, step)
    else:
        logger.log_metrics(entry.scalars, step)
        logger.save()
