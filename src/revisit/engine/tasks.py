"""A task of the plan: its observer, inputs and wanted frames."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from revisit.core import OBSERVERS, Observer, RevisitError
from revisit.engine.jobs import ObserverTask


def observer_of(task: ObserverTask) -> Observer:
    """The observer that a task names."""
    if task.observer not in OBSERVERS:
        importlib.import_module(task.module)  # a plugin that registered itself in the parent process only
    return OBSERVERS[task.observer]


def inputs_of(task: ObserverTask) -> tuple[Any, ...]:
    """What the case says, in the order in which the observer takes it."""
    return tuple(task.inputs[name] for name in observer_of(task).inputs)


def wanted_frames(task: ObserverTask, count: int, fps: float) -> np.ndarray:
    """Numbers of the frames that a task wants of a clip."""
    return observer_of(task).wanted(count, fps, inputs_of(task), task.params)


def sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, RevisitError) else f"{type(error).__name__}: {text[:300]}"
