"""Loggers: scalars with intervals, the worst moments as pictures, and the report's address, for each that is in use.

None of the libraries is imported unless the user's own object is of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from revisit.core import MissingPrerequisite, UsageError
from revisit.monitor.ranks import rank_and_count

if TYPE_CHECKING:
    from revisit.monitor.checkpoint import Checkpoint
    from revisit.monitor.monitor import Monitor

REPORT = "revisit/report"
CHARTS = "_revisit_charts"  # marks a writer that has its charts
Samples = Callable[[Any], Iterable[Mapping[str, Any]]]


def write_checkpoint_to_loggers(checkpoint: Checkpoint, logger: Any, step: int) -> None:
    """Write a checkpoint to a logger, or to each of several; ranks other than 0 write nothing."""
    if rank_and_count()[0]:
        return
    if isinstance(logger, list):
        for one in logger:
            write_checkpoint_to_loggers(checkpoint, one, step)
        return
    homes = _packages_of_logger(logger)
    if homes & {"lightning", "pytorch_lightning"}:
        _write_to_lightning(checkpoint, logger, step)
    elif "wandb" in homes:
        _write_to_wandb(checkpoint, logger, step)
    elif "mlflow" in homes:
        _write_to_mlflow(checkpoint, logger, step)
    elif hasattr(logger, "add_scalar"):
        _write_to_tensorboard(checkpoint, logger, step)
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


def _write_to_wandb(checkpoint: Checkpoint, run: Any, step: int) -> None:
    import wandb

    run = run.run if isinstance(run, ModuleType) else run
    if run is None:
        raise UsageError("W&B has no run yet; call wandb.init() before")
    content: dict[str, Any] = dict(checkpoint.scalars())
    for picture in checkpoint.pictures():
        content[f"revisit/{picture.name}"] = wandb.Image(picture.rgb, caption=picture.caption)
    if checkpoint.report is not None:
        address = checkpoint.report.resolve().as_uri()
        content[REPORT] = wandb.Html(f'<a href="{address}">{address}</a>')
    run.log(content, step=step)


def _write_to_tensorboard(checkpoint: Checkpoint, writer: Any, step: int) -> None:
    scalars = checkpoint.scalars()
    for name, value in scalars.items():
        writer.add_scalar(name, value, step)
    if not hasattr(writer, "add_image"):
        raise UsageError("this writer takes no pictures; give torch.utils.tensorboard.SummaryWriter")
    for picture in checkpoint.pictures():
        writer.add_image(f"revisit/{picture.name}", picture.rgb, step, dataformats="HWC")
        writer.add_text(f"revisit/{picture.name}_caption", picture.caption, step)
    if checkpoint.report is not None:
        address = checkpoint.report.resolve().as_uri()
        writer.add_text(REPORT, f"[{address}]({address})", step)
    bands = {name for name in scalars if f"{name}_low" in scalars}
    charted: frozenset[str] = getattr(writer, CHARTS, frozenset())
    if not bands <= charted:  # charts with their intervals as a band
        setattr(writer, CHARTS, bands | charted)
        margins = {name: ["Margin", [name, f"{name}_low", f"{name}_high"]] for name in sorted(bands | charted)}
        charts = {name.partition("/")[2]: margin for name, margin in margins.items()}
        writer.add_custom_scalars({"revisit": charts})
    writer.flush()


def _write_to_mlflow(checkpoint: Checkpoint, logger: Any, step: int) -> None:
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
    for name, value in checkpoint.scalars().items():
        client.log_metric(run_id, name, value, step=step)
    for picture in checkpoint.pictures():
        client.log_image(run_id, picture.rgb, key=f"revisit_{picture.name}", step=step)
        client.log_text(run_id, picture.caption, f"revisit/{picture.name}_{step:08d}.txt")
    if checkpoint.report is not None:
        client.set_tag(run_id, "revisit.report", checkpoint.report.resolve().as_uri())


def _write_to_lightning(checkpoint: Checkpoint, logger: Any, step: int) -> None:
    """What is behind a logger of Lightning; one that has no pictures is given the scalars."""
    inner = logger.experiment
    if "mlflow" in _packages_of_logger(inner):
        _write_to_mlflow(checkpoint, (inner, logger.run_id), step)
    elif "wandb" in _packages_of_logger(inner) or hasattr(inner, "add_image"):
        write_checkpoint_to_loggers(checkpoint, inner, step)
    else:
        logger.log_metrics(checkpoint.scalars(), step)
        logger.save()


def lightning_callback(monitor: Monitor, samples: Samples) -> Any:
    """Make a callback of Lightning that scores samples at the end of each validation.

    Its numbers are those that `ModelCheckpoint(monitor="revisit/memory", mode="max")` asks for, and go to all loggers
    of the trainer with pictures. Which clips are scored is kept in the checkpoints.

    Parameters
    ----------
    monitor
        Scores the clips.
    samples
        A function of the LightningModule that yields, on each rank, what `Monitor.update` takes: mappings with `name`,
        `frames` and the like.

    Returns
    -------
    lightning.pytorch.Callback
        For `Trainer(callbacks=[...])`.

    Examples
    --------
    >>> callback = revisit.lightning_callback(monitor, lambda model: model.sample_clips())  # doctest: +SKIP
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError:
            raise MissingPrerequisite("Lightning is not installed: pip install lightning") from None

    class MonitorCallback(Callback):  # type: ignore[misc]
        def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.sanity_checking:
                return
            for sample in samples(pl_module):
                if not isinstance(sample["name"], str) or monitor.wants(sample["name"]):
                    monitor.update(**sample)
            checkpoint = monitor.compute(step=trainer.global_step)
            monitor.reset()
            write_checkpoint_to_loggers(checkpoint, list(trainer.loggers), trainer.global_step)
            for name, value in checkpoint.scalars().items():
                pl_module.log(name, value, logger=False, rank_zero_only=False)

        def state_dict(self) -> dict[str, Any]:
            return dict(monitor.state_dict())

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            monitor.load_state_dict({"names": state_dict["names"], "metric": state_dict["metric"]})

    return MonitorCallback()
