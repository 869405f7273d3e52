"""Loads weights into a network, strictly: every tensor must match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.core.text import join_names

Net = TypeVar("Net", bound=nn.Module)


def load_strictly(net: Net, path: Path) -> Net:
    """The network with the weights of this file; raises MissingPrerequisite where one lacks, is left or has another
    shape."""
    return load_tensors_strictly(net, weights.tensors(path), path)


def load_tensors_strictly(net: Net, tensors: Mapping[str, Tensor], path: Path) -> Net:
    """The network with these weights, which came from `path`."""
    expected = net.state_dict()
    counters = {name for name in expected if name.endswith("num_batches_tracked")}  # unused here, often left out
    missing = sorted(expected.keys() - tensors.keys() - counters)
    unexpected = sorted(tensors.keys() - expected.keys())
    shapes = [
        f"{name} ({tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)})"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]
    raise_for_mismatched_tensors(path, type(net).__name__, missing, unexpected, shapes)
    net.load_state_dict(dict(tensors), strict=not counters - tensors.keys())
    return net


def fold_batch_norms(net: Net, pairs: Mapping[type, Sequence[tuple[str, str]]]) -> Net:
    """The network, to be used as it is, with batch norms folded into the convolutions before them.

    `pairs` names both in each kind of module; a module may lack some of them.
    """
    net.eval()
    for part in net.modules():
        for convolves, normalises in pairs.get(type(part), ()):
            if hasattr(part, convolves):
                setattr(part, convolves, fuse_conv_bn_eval(getattr(part, convolves), getattr(part, normalises)))
                setattr(part, normalises, nn.Identity())
    return net


def raise_for_mismatched_tensors(
    path: Path, kind: str, missing: Sequence[str], unexpected: Sequence[str], shapes: Sequence[str]
) -> None:
    """Raise MissingPrerequisite where tensors are missing, unexpected or of other shapes: another network's weights."""
    for what, names in (("lacks", missing), ("has besides", unexpected), ("has other shapes of", shapes)):
        if names:
            raise MissingPrerequisite(
                f"{path}: this is not a weights file of {kind}: it {what} {join_names(names)}. "
                "Remove it and fetch the published weights with `revisit weights pull`"
            )
