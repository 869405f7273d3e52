"""A callback of Lightning that scores samples at the end of each validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from revisit.core import MissingPrerequisite
from revisit.monitor.monitor import Monitor

Samples = Callable[[Any], Iterable[Mapping[str, Any]]]


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
            checkpoint.log(list(trainer.loggers), trainer.global_step)
            for name, value in checkpoint.scalars().items():
                pl_module.log(name, value, logger=False, rank_zero_only=False)

        def state_dict(self) -> dict[str, Any]:
            return dict(monitor.state_dict())

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            monitor.load_state_dict({"names": state_dict["names"], "metric": state_dict["metric"]})

    return MonitorCallback()
