"""Loads weights into a network, strictly: every tensor must match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from torch import Tensor, nn

from revisit import weights
from revisit.core import MissingPrerequisite

Net = TypeVar("Net", bound=nn.Module)


def load_strictly(net: Net, path: Path) -> Net:
    """The network with the weights of this file; raises MissingPrerequisite where one lacks, is left or has another
    shape."""
    return fill(net, weights.tensors(path), path)


def fill(net: Net, found: Mapping[str, Tensor], path: Path, called: Callable[[str], str] = str) -> Net:
    """The network with these weights, which came from `path`; `called` says what a tensor of it is called there."""
    wanted = {called(name): tensor for name, tensor in net.state_dict().items()}
    names = dict(zip(wanted, net.state_dict(), strict=True))
    counters = {name for name in wanted if name.endswith("num_batches_tracked")}  # say nothing, and are often left out
    lacking = sorted(wanted.keys() - found.keys() - counters)
    left = sorted(found.keys() - wanted.keys())
    shapes = [
        f"{name} ({tuple(found[name].shape)} instead of {tuple(wanted[name].shape)})"
        for name in sorted(wanted.keys() & found.keys())
        if found[name].shape != wanted[name].shape
    ]
    refuse_others(path, type(net).__name__, lacking, left, shapes)
    own = {names[name]: tensor for name, tensor in found.items()}
    # A network that was made of shapes only takes the tensors themselves.
    net.load_state_dict(own, strict=not counters - found.keys(), assign=any(one.is_meta for one in net.parameters()))
    return net


def refuse_others(path: Path, kind: str, lacking: Sequence[str], left: Sequence[str], shapes: Sequence[str]) -> None:
    """Raise MissingPrerequisite where tensors lack, are left over or have other shapes: the weights of another net."""
    for what, names in (("lacks", lacking), ("has besides", left), ("has other shapes of", shapes)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise MissingPrerequisite(
                f"{path}: this is not a weights file of {kind}: it {what} {', '.join(names[:3])}{more}. "
                "Remove it and fetch the published weights with `revisit weights pull`"
            )
