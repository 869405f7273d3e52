"""Decodings: by whose rules the pixels of a clip are made (docs/media.md).

Ours are the same on every machine. A protocol that is to give the numbers of another program may name the library
through which that program reads clips: that library then makes the pixels, in the guarded process that decodes. Those
differ between its versions and between processors, so that evidence made with them is addressed by both.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from revisit.core import MissingPrerequisite, UsageError


@dataclass(frozen=True)
class Decoding:
    """A library that makes the pixels of a clip in the place of our own rules."""

    rule: int  # raise it when what we ask of the library changes
    modules: tuple[str, ...]  # that the decoding process imports


DECODINGS: Mapping[str, Decoding] = {
    "opencv": Decoding(1, ("cv2", "numpy")),  # cv2.VideoCapture for videos, cv2.imdecode for images
    "pyav": Decoding(1, ()),  # PyAV's conversion to rgb24, which is swscale's
}


def decoding_by_name(name: str) -> Decoding:
    """The decoding of this name.

    Parameters
    ----------
    name
        `opencv` or `pyav`.

    Returns
    -------
    Decoding
        What makes the pixels.

    Raises
    ------
    UsageError
        Where there is no decoding of that name.

    Examples
    --------
    >>> decoding_by_name("opencv").modules
    ('cv2', 'numpy')
    """
    if name not in DECODINGS:
        raise UsageError(f"there is no decoding called {name!r}; a protocol may name {' or '.join(DECODINGS)}")
    return DECODINGS[name]


@cache
def decoding_build(name: str) -> str:
    """The versions and the processor that the pixels of a decoding depend on.

    Raises
    ------
    MissingPrerequisite
        Where the library is not installed, or too old.
    """
    decoding_by_name(name)
    import av

    swscale = ".".join(map(str, av.library_versions["libswscale"]))
    if name == "pyav":
        return f"PyAV {av.__version__}, swscale {swscale}, {platform.machine()}"
    import cv2

    list_backends = getattr(cv2.videoio_registry, "getStreamBufferedBackends", None)
    if list_backends is None or cv2.CAP_FFMPEG not in list_backends():
        raise MissingPrerequisite(
            "this protocol reads clips as OpenCV does, which takes OpenCV 4.11 or newer with FFmpeg; the installed "
            f"{cv2.__version__} cannot: `pip install -U opencv-python-headless`"
        )
    return f"OpenCV {cv2.__version__}, {platform.machine()}"
