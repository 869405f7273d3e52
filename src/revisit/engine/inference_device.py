"""The device of the networks: how much memory it has, frames that wait on it, and uploads from shared memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

SHARE = 0.25  # of the device's memory that a batch may take; a few are at work at a time
WAITING = 0.1  # of it that frames which wait may take
PATIENCE = 60.0  # seconds that an upload waits for memory which others hold
NO_MEMORY = ("out of memory", "ALLOC_FAILED")  # how libraries below torch say it


class DeviceMemory:
    """Memory of the device that networks run on; frames that wait on it are bounded."""

    def __init__(self, device: str) -> None:
        self.device, self.gpu = device, device.startswith("cuda")
        self.set_current_device_of_thread()
        self.held = 0  # bytes of frames that wait
        self.room = threading.Condition()
        self.limit = int(self.capacity_bytes() * WAITING)

    def set_current_device_of_thread(self) -> None:
        """Make the device the current one of this thread: streams and memory figures are of that one."""
        if self.gpu:
            import torch

            torch.cuda.set_device(int(self.device.partition(":")[2] or 0))

    def capacity_bytes(self) -> int:
        """Bytes of the device."""
        if self.gpu:
            import torch

            return int(torch.cuda.get_device_properties(self.device).total_memory)
        return 4 << 30

    def upload(self, slot: Any, shape: Sequence[int], dtype: str) -> tuple[Any, int]:
        """A chunk of frames on the device, and its bytes; waits while too many others wait there."""
        import torch

        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self.room:
            self.room.wait_for(lambda: self.held + size <= self.limit or self.held == 0)
            self.held += size
        try:
            return self.copy(slot[:size].view(getattr(torch, dtype)).view(*shape), size), size
        except BaseException:
            self.release_bytes(size)
            raise

    def copy(self, there: Any, size: int) -> Any:
        """What lies in shared memory, on the device."""
        import torch

        if not self.gpu:
            return there.clone()
        try:
            return self._copy_to_gpu(there)
        except torch.OutOfMemoryError:  # others use this GPU, too: wait until ours have left it, and try once more
            with self.room:
                self.room.wait_for(lambda: self.held <= size, timeout=PATIENCE)
            torch.cuda.empty_cache()
            return self._copy_to_gpu(there)

    def _copy_to_gpu(self, there: Any) -> Any:
        import torch

        stream, copied = torch.cuda.Stream(), torch.cuda.Event(blocking=True)  # sleeps: cores are for those who decode
        with torch.cuda.stream(stream):
            tensor = there.to(self.device, non_blocking=True)
            copied.record()
        copied.synchronize()
        return tensor

    def release_bytes(self, size: int) -> None:
        with self.room:
            self.held -= size
            self.room.notify_all()


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a batch failed because it was too large."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in NO_MEMORY)


def map_shared_file_as_tensor(file_descriptor: int, gpu: bool) -> Any:
    """A file in shared memory as a flat tensor; with a GPU it is pinned, so that copies need no second buffer."""
    import torch

    with os.fdopen(file_descriptor, "r+b") as opened:
        flat = torch.from_numpy(np.memmap(opened, dtype=np.uint8, mode="r+"))
    if gpu:
        torch.cuda.cudart().cudaHostRegister(flat.data_ptr(), flat.numel(), 0)  # a failure only makes it slower
    return flat


def unpin_if_on_gpu(flat: Any, gpu: bool) -> None:
    """Let go of a file in shared memory."""
    if gpu and flat is not None:
        import torch

        torch.cuda.cudart().cudaHostUnregister(flat.data_ptr())
