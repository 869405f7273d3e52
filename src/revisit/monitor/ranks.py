"""Ranks of torch.distributed: who this process is, and what all of them hold."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

T = TypeVar("T")


def rank_and_count() -> tuple[int, int]:
    """Number of this process and of all; (0, 1) where nothing is distributed. Torch is not imported for it."""
    distributed = _active_torch_distributed()
    return (0, 1) if distributed is None else (distributed.get_rank(), distributed.get_world_size())


def gather_from_ranks(value: T) -> list[T]:
    """What each rank holds, in their order; every rank must call it."""
    distributed = _active_torch_distributed()
    if distributed is None:
        return [value]
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def _active_torch_distributed() -> Any:
    """torch.distributed, if it is at work."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed and distributed.is_available() and distributed.is_initialized() else None
