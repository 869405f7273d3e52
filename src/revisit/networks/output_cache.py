"""Cache of a network's features of reference pictures, in an unnamed temporary file of bounded size.

Models are compared with one reference one after the other, in one process. Features of the reference's frames are the
same for all of them, but too large for memory; the system removes the file with the process.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from typing import IO

import numpy as np
import torch
from torch import Tensor

ROOM = 4 << 30  # bytes: 430 frames of LPIPS with AlexNet at a longer side of 640


class FeatureCache:
    """Lists of tensors by the digest of the picture that they were computed from."""

    def __init__(self, room: int = ROOM) -> None:
        self.room, self.used = room, 0
        self._places: dict[bytes, tuple[int, list[tuple[int, ...]]]] = {}
        self._file: IO[bytes] | None = None

    def cached_or_made(self, picture: Tensor, make: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """What `make` returns for this picture, float32 on the CPU; made once while there is room."""
        key = hashlib.blake2b(picture.contiguous().numpy().data, digest_size=16).digest() + str(picture.shape).encode()
        if key in self._places:
            return self._map_from_file(*self._places[key])
        tensors = [one.contiguous() for one in make()]
        size = sum(one.numel() * 4 for one in tensors)
        if self.used + size > self.room:  # most of it belongs to pictures that are done with
            self._places.clear()
            self.used = 0
        if self.used + size <= self.room:
            self._append_to_file(key, tensors)
        return tensors

    def _append_to_file(self, key: bytes, tensors: Sequence[Tensor]) -> None:
        try:
            self._file = self._file or tempfile.TemporaryFile(prefix="revisit-")  # noqa: SIM115 - goes with the process
            self._file.seek(self.used)
            for one in tensors:
                self._file.write(one.numpy().data)
            self._file.flush()
        except OSError:  # a full disk: everything is made again then
            self.room = 0
            self._places.clear()
            return
        self._places[key] = self.used, [tuple(one.shape) for one in tensors]
        self.used += sum(one.numel() * 4 for one in tensors)

    def _map_from_file(self, place: int, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
        assert self._file is not None
        tensors = []
        for shape in shapes:
            # A private view of the file: reading it costs more than the comparison that it is for.
            there = np.memmap(self._file, np.float32, "c", place, shape)
            tensors.append(torch.from_numpy(there))
            place += there.nbytes
        return tensors
