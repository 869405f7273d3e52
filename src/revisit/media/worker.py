"""Worker: the process that decodes one clip and nothing else. Started by `decoder_process.py`, never imported.

Run as `python -I -S worker.py`, it uses the standard library and PyAV only, so that it starts in about a tenth of a
second, and OpenCV where a protocol takes OpenCV's pixels. Where it is forked from a process that has loaded PyAV
(`serve_decoder_forks`), it starts in a hundredth. It limits its own memory, processor time and files before it
touches the clip:
after its imports it can open no file and no connection at all. A video arrives as a file descriptor that is already
open, an image as bytes on standard input. Where a GPU decodes (REVISIT_DECODE=cuda), its driver opens files at any time
and sets aside more addresses than there is memory: then neither is limited, and clips should be from people you trust.

On standard input: one line of JSON (the job); for folders the images, each after its length in
eight bytes; after the header one line of JSON (the wanted frame numbers, or null for all).
On standard output: messages of a four-byte tag, a four-byte length and the content.
HEAD (JSON: what is known of the clip), FRAM (JSON: pixel format, colour matrix, range, length of the rows of each
plane; the planes follow as they are) for every wanted frame in order, then TAIL (JSON) when all is well or FAIL
(JSON: problem, a sentence).
"""

import contextlib
import ctypes
import errno
import fcntl
import importlib
import io
import json
import math
import os
import pkgutil
import resource
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from typing import Any, NoReturn

# Names of decoders. Whatever else a file asks for is not even opened to look at it.
DECODERS = (
    "h264", "hevc", "vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d", "mpeg4", "mjpeg", "prores", "ffv1", "gif",
    "huffyuv", "rawvideo",
)  # fmt: skip
# Those that a GPU decodes, too, and whose samples are laid down to the last bit by their standard.
EXACT = ("h264", "hevc", "vp8", "vp9")
ATTACHED_PICTURE = 0x400  # AV_DISPOSITION_ATTACHED_PIC
RGB_MATRIX, FULL_RANGE = 0, 2  # as FFmpeg numbers them
OPENCV_NO_MEMORY = -4  # cv2.Error.StsNoMem
Json = dict[str, Any]  # the job, or a message
STOPPED = "the file is truncated or damaged; generate or download it again"


class Problem(Exception):
    """A sentence about the clip, without its name."""


def main(av: Any = None) -> None:
    """Decode one clip; `av` is PyAV where it is loaded already, by the process that this one was forked from."""
    job = json.loads(sys.stdin.buffer.readline())
    try:
        limit_process_and_tie_to_parent(job, job["parent"] if av is None else SERVER)
        sys.path += job["paths"]
        av = av or import_all_av_modules()
        pixels = PIXELS[job["decoding"]](job)
        if job["gpu"] is None:  # where the driver of a GPU may open nothing, later frames are silently wrong
            # What is open stays open; nothing else can be opened from here on.
            set_resource_limit(resource.RLIMIT_NOFILE, 0)
        frames, facts = open_video_frames(av, job, pixels) if "fd" in job else open_image_frames(av, job, pixels)
        send_clip(frames, facts, job, pixels)
    except Problem as problem:
        send_message(b"FAIL", {"problem": str(problem)})
    except (MemoryError, BlockingIOError):  # the second: no memory for a thread
        send_message(b"FAIL", {"problem": "", "memory": True})
    except ImportError as error:
        library = "PyAV and OpenCV" if job["decoding"] in ("opencv", "webp") else "PyAV"
        advice = f"reinstall {library}, or raise the limit with --limits memory={2 * job['memory']}"
        reason = " ".join(str(error).split())[:200]  # some fill a page
        send_message(b"FAIL", {"problem": f"the decoder cannot start ({reason}); {advice}"})
    except Exception as error:
        if getattr(error, "code", None) == OPENCV_NO_MEMORY or getattr(error, "errno", None) == errno.ENOMEM:
            send_message(b"FAIL", {"problem": "", "memory": True})
            return
        send_message(b"FAIL", {"problem": f"the decoder failed ({type(error).__name__}: {error}); {STOPPED}"})


def import_all_av_modules() -> Any:
    """PyAV with all its modules: some are imported on first use, when no file can be opened any more."""
    import av

    for module in pkgutil.walk_packages(av.__path__, "av."):
        if not module.name.endswith((".__main__", ".datasets")):  # the second downloads; a third of all the time
            importlib.import_module(module.name)
    av.logging.set_level(None)
    return av


def limit_process_and_tie_to_parent(job: Json, parent: int) -> None:
    """Limit this process and tie its life to the parent's."""
    set_resource_limit(resource.RLIMIT_CORE, 0)
    set_resource_limit(resource.RLIMIT_FSIZE, 0)
    decoders = 2 if job["decoding"] == "opencv" else 1
    # With some to spare: first a signal that tells why.
    set_resource_limit(resource.RLIMIT_CPU, decoders * job["seconds"] * job["threads"] + 1, spare=5)
    if job["gpu"] is None:  # CUDA sets aside more addresses than any machine has memory
        set_resource_limit(resource.RLIMIT_AS, job["memory"])
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        if os.getppid() != parent:  # it died before the first of these calls
            os._exit(1)


def set_resource_limit(kind: int, value: int, spare: int = 0) -> None:
    """Set a limit for good where the system lets us; macOS does not know all of them."""
    try:
        hard = resource.getrlimit(kind)[1]
        hard = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
        resource.setrlimit(kind, (min(value, hard), hard))
    except (OSError, ValueError):
        pass


def send_clip(frames: Iterator[Any], facts: Json, job: Json, pixels: Any) -> None:
    """Send the header, then every wanted frame, then the trailer."""
    count = facts["count"]
    first = next(frames, None)
    if first is None:
        raise Problem(f"none of its {count} frames can be decoded; {STOPPED}")
    size = first.width, first.height
    require_pixels_within_limit(*size, job)
    # Not every PyAV reads the orientation of images.
    rotation, mirrored = display_rotation_and_mirroring(first) if "fd" in job else (0, False)
    if rotation % 90:
        what = f"a rotation by {rotation} degrees" + (" of the mirrored picture" if mirrored else "")
        facts["notes"].append(f"its display matrix asks for {what}, which was not applied")
        rotation, mirrored = 0, False
    send_message(b"HEAD", {**facts, "width": size[0], "height": size[1], "rotation": rotation, "mirrored": mirrored})
    indices = json.loads(sys.stdin.buffer.readline())
    indices = None if indices is None else set(indices)
    decoded = 0
    for frame in chain([first], frames):
        if decoded == count:
            raise Problem(f"decoding gave more frames than the {count} its container holds; re-encode the clip")
        if frame.is_corrupt:
            raise Problem(f"decoding stopped after {decoded} of {count} frames; {STOPPED}")
        if (frame.width, frame.height) != size:
            where = job["names"][decoded] if "names" in job else f"frame {decoded}"
            raise Problem(
                f"{where} has {frame.width}x{frame.height} pixels and the first frame {size[0]}x{size[1]}; all frames "
                "of a clip must have the same size"
            )
        pixels.follow(decoded)
        if indices is None or decoded in indices:
            pixels.send(frame)
        decoded += 1
    if decoded < count:
        raise Problem(f"decoding stopped after {decoded} of {count} frames; {STOPPED}")
    pixels.end(count)
    send_message(b"TAIL", {})


def display_rotation_and_mirroring(frame: Any) -> tuple[int, bool]:
    """What the display matrix does to the frame: degrees counterclockwise, 0 to 359, and whether left and right change
    places before it is turned.
    """
    side_data = frame.side_data
    # By number, because PyAV 19 iterates over its keys and earlier versions over its values.
    for data in (side_data[k] for k in range(len(side_data))):
        if data.type.name == "DISPLAYMATRIX":
            matrix = struct.unpack("=9i", bytes(data)[:36])
            a, b, _, c, d = matrix[:5]
            mirrored = a * d < b * c
            if mirrored:
                a, b = -a, -b
            return round(-math.degrees(math.atan2(b, a))) % 360, mirrored
    return 0, False


# Videos


def open_video_frames(av: Any, job: Json, pixels: Any) -> tuple[Iterator[Any], Json]:
    """The frames of a video as they are decoded, and what its container says."""
    if isinstance(pixels, WebPPixels):
        return open_animated_webp(job, pixels)
    file = os.fdopen(job["fd"], "rb", buffering=0)
    try:
        facts = probe_video_timing(av, file, job)
    except av.error.FFmpegError as error:
        raise Problem(f"its container cannot be read; {STOPPED} ({ffmpeg_error_text(error)})") from None
    return decode_video_frames(av, file, job, facts), facts


def open_video_stream(av: Any, file: Any, job: Json, decoders: str, **hardware: Any) -> tuple[Any, Any]:
    """The container and its video stream. The file is handed over open, so no protocol is ever asked for."""
    file.seek(0)
    options = {"codec_whitelist": decoders, "protocol_whitelist": "none", "max_pixels": str(job["pixels"])}
    # Titles in some other encoding are no reason to refuse a clip; PyAV 19 replaces what it cannot read by itself.
    lenient = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
    container = av.open(file, format=job["demuxer"], options=options, buffer_size=1 << 18, **lenient, **hardware)
    for stream in container.streams.video:
        if not int(getattr(stream, "disposition", 0)) & ATTACHED_PICTURE:  # the still picture that music files carry
            return container, stream
    sound = bool(container.streams.audio)
    raise Problem("it has sound but no picture" if sound else "it holds no video stream; give the clip itself")


def probe_video_timing(av: Any, file: Any, job: Json) -> Json:
    """Number, times and rate of the frames, read from the packets; no decoder is opened yet."""
    container, stream = open_video_stream(av, file, job, decoders="none")
    context = stream.codec_context
    if context is None or context.name not in DECODERS:
        name = "an unknown codec" if context is None else f"the codec {context.name}"
        raise Problem(f"its picture uses {name}; convert it to H.264, HEVC, VP9 or AV1")
    require_pixels_within_limit(context.width, context.height, job)
    pts: list[int | None] = []
    for packet in container.demux(stream):
        if packet.is_corrupt:
            raise Problem(f"reading stopped after {len(pts)} frames; {STOPPED}")
        is_hidden = context.name in ("vp8", "libvpx") and packet.size and not bytes(packet)[0] & 0x10
        if not packet.size or packet.is_discard or is_hidden:  # VP8 has packets that are only referred to, never shown
            continue
        pts.append(packet.pts)
        require_count_within_limit(len(pts), job)
    if not pts:
        raise Problem(f"it holds no frames; {STOPPED}")
    notes = []
    if len(container.streams.video) > 1:
        notes.append(f"it has {len(container.streams.video)} video streams; the first was used")
    declared = float(stream.average_rate or 0)
    times, fps = frame_times_and_rate(pts, stream.time_base, declared, job["default_fps"], notes)
    container.close()
    return {"count": len(pts), "times": times, "fps": fps, "notes": notes}


def frame_times_and_rate(
    pts: list[int | None], base: Fraction, declared: float, default: float, notes: list[str]
) -> tuple[list[float], float]:
    """Seconds of each frame since the first, and the average rate."""
    stamps = sorted(p for p in pts if p is not None)
    if len(stamps) < len(pts) or (len(pts) > 1 and stamps[0] == stamps[-1]):
        fps = declared or default
        notes.append(f"its frames have no timestamps; {fps:g} frames per second were assumed")
        return [i / fps for i in range(len(pts))], fps
    times = [float((p - stamps[0]) * base) for p in stamps]
    if len(times) == 1:
        return times, declared or default
    fps = (len(times) - 1) / times[-1]
    if abs(declared - fps) < 0.01 * fps:
        fps = declared  # timestamps are rounded to the container's ticks, the declared rate is not
    gaps = [b - a for a, b in pairwise(times)]
    spread = max(gaps) - min(gaps)
    if spread > max(0.05 / fps, 2.5e-3):  # containers round to a millisecond
        notes.append(
            f"variable frame rate: {1000 * min(gaps):.0f} to {1000 * max(gaps):.0f} ms between frames, {fps:.4g} "
            "frames per second on average"
        )
    return times, fps


def decode_video_frames(av: Any, file: Any, job: Json, facts: Json) -> Iterator[Any]:
    """Frames in presentation order. The first error ends the clip: concealed damage would be judged as content."""
    decoded = 0
    try:
        stream, frames = stream_and_decoded_frames(av, file, job, facts)
        for frame in frames:
            aspect = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
            if not decoded and aspect and aspect != 1:
                ratio = f"{aspect.numerator}:{aspect.denominator}"
                facts["notes"].append(f"pixels are not square (SAR {ratio}): used as stored")
            yield frame
            decoded += 1
    except (MemoryError, BlockingIOError):
        raise
    except av.error.FFmpegError as error:
        # Decoders often call a lack of memory invalid data. Is there room for one more frame?
        bytearray(16 * stream.width * stream.height)
        raise Problem(
            f"decoding stopped after {decoded} of {facts['count']} frames; {STOPPED} ({ffmpeg_error_text(error)})"
        ) from None


def stream_and_decoded_frames(av: Any, file: Any, job: Json, facts: Json) -> tuple[Any, Iterator[Any]]:
    """The stream and its frames, from the GPU if that was asked for and gives the same samples as the CPU."""
    if job["gpu"] is not None:
        try:
            return stream_and_gpu_frames(av, file, job)
        except (av.error.FFmpegError, NotImplementedError, RuntimeError, Problem) as error:
            reason = str(error) if isinstance(error, Problem) else ffmpeg_error_text(error)
            facts["notes"].append(f"decoded on the CPU, because the GPU does not decode it ({reason})")
    container, stream = open_cpu_decoder(av, file, job)
    return stream, container.decode(stream)


def open_cpu_decoder(av: Any, file: Any, job: Json) -> tuple[Any, Any]:
    """The container and its video stream, to be decoded by FFmpeg itself."""
    container, stream = open_video_stream(av, file, job, decoders=",".join(DECODERS))
    stream.thread_type = "AUTO"
    stream.codec_context.thread_count = job["threads"]
    stream.codec_context.options = {"err_detect": "explode", "max_pixels": str(job["pixels"])}
    return container, stream


def stream_and_gpu_frames(av: Any, file: Any, job: Json) -> tuple[Any, Iterator[Any]]:
    """The stream and its frames as NVDEC decodes them; the first one is compared with the CPU's, sample by sample."""
    container, stream = open_cpu_decoder(av, file, job)
    if stream.codec_context.name not in EXACT:
        raise Problem(f"codec {stream.codec_context.name}")
    expected = next(container.decode(stream), None)
    if expected is None or expected.format.name not in ("yuv420p", "yuvj420p"):
        raise Problem("no frame" if expected is None else f"pixel format {expected.format.name}")
    container.close()  # both read the same file
    hardware = av.codec.hwaccel.HWAccel("cuda", device=job["gpu"], allow_software_fallback=False)
    container, stream = open_video_stream(av, file, job, decoders=",".join(EXACT), hwaccel=hardware)
    stream.codec_context.options = {"err_detect": "explode", "max_pixels": str(job["pixels"])}
    frames = container.decode(stream)
    first = next(frames, None)
    if first is None or first.format.name != "nv12":
        raise Problem("no frame" if first is None else f"it gives {first.format.name}")
    if not is_same_yuv420_picture(expected, first):
        raise Problem("its samples differ from the CPU's")
    return stream, chain([first], frames)


def is_same_yuv420_picture(planar: Any, interleaved: Any) -> bool:
    """Whether a frame in yuv420p and one in nv12 are the same picture, in the same colours."""
    if int(planar.colorspace) != int(interleaved.colorspace) or int(planar.color_range) != int(interleaved.color_range):
        return False
    for plane, (samples, stride) in zip(planar.planes, split_nv12_planes(interleaved), strict=True):
        expected = memoryview(plane)
        for row in range(plane.height):
            start = row * plane.line_size
            if expected[start : start + plane.width] != samples[row * stride : row * stride + plane.width]:
                return False
    return True


def split_nv12_planes(frame: Any) -> list[tuple[bytes, int]]:
    """Luma, blue and red of a frame in nv12, which has the last two in turn, each with the length of its rows."""
    luma, chroma = frame.planes
    pairs = bytes(chroma)
    return [
        (bytes(luma), luma.line_size),
        (pairs[::2], chroma.line_size // 2),
        (pairs[1::2], chroma.line_size // 2),
    ]


# Folders of images


def open_image_frames(av: Any, job: Json, pixels: Any) -> tuple[Iterator[Any], Json]:
    """The images of a folder, decoded one by one as they arrive."""
    count, fps = len(job["names"]), job["fps"]
    require_count_within_limit(count, job)
    facts = {"count": count, "fps": fps, "times": [i / fps for i in range(count)], "notes": []}
    return decode_images_from_stdin(av, job, pixels), facts


def decode_images_from_stdin(av: Any, job: Json, pixels: Any) -> Iterator[Any]:
    for name in job["names"]:
        (length,) = struct.unpack(">Q", sys.stdin.buffer.read(8))
        data = sys.stdin.buffer.read(length)
        require_pixels_within_limit(*png_size(data), job, name)
        context = av.CodecContext.create(job["decoder"], "r")
        context.thread_count = 1
        context.options = {"err_detect": "explode", "max_pixels": str(job["pixels"])}
        try:
            frames = context.decode(av.Packet(data)) or context.decode(None)
        except MemoryError:
            raise
        except av.error.FFmpegError as error:
            kind = {"mjpeg": "jpeg"}.get(job["decoder"], job["decoder"])
            raise Problem(
                f"{name} is not a complete {kind} image; write it again ({ffmpeg_error_text(error)})"
            ) from None
        if not frames:
            raise Problem(f"{name} holds no image; write it again")
        pixels.image = data
        yield frames[0]


def png_size(data: bytes) -> tuple[int, int]:
    """Size written in a PNG header, (0, 0) for anything else."""
    width, height = struct.unpack(">II", data[16:24]) if data.startswith(b"\x89PNG") and len(data) >= 24 else (0, 0)
    return width, height


# Animated WebP, which FFmpeg does not know


class Picture:
    """A frame of an animation, with what is asked of a frame of PyAV."""

    is_corrupt = False
    side_data = ()

    def __init__(self, bgr: Any) -> None:
        self.bgr = bgr
        self.height, self.width = bgr.shape[:2]


def open_animated_webp(job: Json, pixels: Any) -> tuple[Iterator[Any], Json]:
    """The pictures of an animated WebP file, and what its chunks say. Sizes are checked before anything is decoded."""
    data = FileAt(job["fd"]).read()
    width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
    require_pixels_within_limit(width, height, job)
    durations = []
    at = 12
    while at + 8 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"ANMF":
            durations.append(int.from_bytes(data[at + 20 : at + 23], "little"))
            require_count_within_limit(len(durations), job)
        at += 8 + length + length % 2
    if not durations:
        raise Problem(f"it holds no frames; {STOPPED}")
    notes: list[str] = []
    stamps: list[int | None] = [None] * len(durations)
    if min(durations) > 0:
        stamps = [0, *accumulate(durations[:-1])]
    declared = 1000 * len(durations) / sum(durations) if min(durations) > 0 else 0
    times, fps = frame_times_and_rate(stamps, Fraction(1, 1000), declared, job["default_fps"], notes)
    facts = {"count": len(durations), "times": times, "fps": fps, "notes": notes}
    return pixels.pictures(data), facts


# Pixels. Whoever makes them, every frame is decoded by PyAV, too: it stops at damage that other readers conceal.


class Planes:
    """The planes as they are decoded; the reader makes RGB of them by our own rules."""

    image = b""  # the file of the frame that was decoded last, in a folder of images

    def __init__(self, job: Json) -> None:
        self.job = job

    def follow(self, number: int) -> None:
        """Go on to the frame of this number, whether it is wanted or not."""

    def send(self, frame: Any) -> None:
        """Send the frame that was decoded last."""
        send_planes(frame)

    def end(self, count: int) -> None:
        """Called after the last frame of a clip that was decoded whole."""


class PyAVPixels(Planes):
    """RGB as PyAV's own conversion makes it, which is swscale's."""

    def send(self, frame: Any) -> None:
        send_rgb_rows("rgb24", frame.reformat(format="rgb24").planes[0])


class OpenCVPixels(Planes):
    """BGR as OpenCV reads it: videos through its FFmpeg, images through its own decoders."""

    def __init__(self, job: Json) -> None:
        super().__init__(job)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or it takes memory for every core
        os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"] = str(job["pixels"])
        only = (
            "protocol_whitelist;none",
            f"format_whitelist;{job.get('demuxer')}",
            "codec_whitelist;" + ",".join(DECODERS),
        )
        os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "|".join(only)
        import cv2
        import numpy

        cv2.setNumThreads(job["threads"])
        self.cv2: Any = cv2  # its stubs take no files of Python's
        self.numpy = numpy
        self.capture: Any = None  # of a video, once its first frame is wanted or passed

    def follow(self, number: int) -> None:
        if "fd" not in self.job:
            return
        if self.capture is None:
            threads = [self.cv2.CAP_PROP_N_THREADS, self.job["threads"]]
            self.capture = self.cv2.VideoCapture(FileAt(self.job["fd"]), self.cv2.CAP_FFMPEG, threads)
            if not self.capture.isOpened():
                raise Problem("OpenCV cannot open it, though PyAV can; convert it to H.264 in mp4")
            self.capture.set(self.cv2.CAP_PROP_ORIENTATION_AUTO, 0)  # whoever reads the frames turns them
        if not self.capture.grab():
            raise Problem(f"OpenCV reads only {number} of its frames, and PyAV more; convert it to H.264 in mp4")

    def send(self, frame: Any) -> None:
        if self.capture is None:
            color = self.cv2.IMREAD_COLOR | self.cv2.IMREAD_IGNORE_ORIENTATION
            picture = self.cv2.imdecode(self.numpy.frombuffer(self.image, dtype=self.numpy.uint8), color)
        else:
            picture = self.capture.retrieve()[1]
        if picture is None or picture.shape != (frame.height, frame.width, 3) or picture.dtype != self.numpy.uint8:
            what = "nothing" if picture is None else f"{picture.shape[1]}x{picture.shape[0]} pixels"
            raise Problem(f"OpenCV reads {what} where PyAV reads {frame.width}x{frame.height}; re-encode the clip")
        send_rgb_rows("bgr24", self.numpy.ascontiguousarray(picture).reshape(frame.height, -1))

    def end(self, count: int) -> None:
        if self.capture is not None and self.capture.grab():
            raise Problem(f"OpenCV reads more than the {count} frames that PyAV reads; re-encode the clip")


class FileAt(io.BufferedIOBase):
    """An open file with a position of its own: PyAV reads through the same descriptor."""

    def __init__(self, fd: int) -> None:
        self.fd, self.at, self.size = fd, 0, os.fstat(fd).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = os.pread(self.fd, self.size - self.at if size is None or size < 0 else size, self.at)
        self.at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.size}[whence])
        return self.at


class WebPPixels(OpenCVPixels):
    """BGR of an animated WebP file, as libwebp decodes it for OpenCV."""

    def follow(self, number: int) -> None:
        pass

    def pictures(self, data: bytes) -> Iterator[Any]:
        """All pictures of the animation, each composed with those before it."""
        if not hasattr(self.cv2, "imdecodeanimation"):
            advice = "`pip install -U opencv-python-headless`, or convert the clip to mp4"
            raise Problem(f"animated WebP takes OpenCV 4.11 or newer: {advice}")
        read, animation = self.cv2.imdecodeanimation(self.numpy.frombuffer(data, dtype=self.numpy.uint8))
        if not read:
            raise Problem(f"the animation cannot be decoded; {STOPPED}")
        for picture in animation.frames:
            yield Picture(picture)

    def send(self, frame: Any) -> None:
        rows = self.numpy.ascontiguousarray(frame.bgr[..., :3])
        if rows.dtype != self.numpy.uint8 or rows.ndim != 3:
            raise Problem("its pictures do not have 8 bits; convert the clip to mp4")
        send_rgb_rows("bgr24", rows.reshape(frame.height, -1))


PIXELS = {"": Planes, "pyav": PyAVPixels, "opencv": OpenCVPixels, "webp": WebPPixels}


# Sentences and messages


def require_pixels_within_limit(width: int, height: int, job: Json, name: str = "a frame") -> None:
    if width * height > job["pixels"]:
        raise Problem(
            f"{name} has {width}x{height} pixels, more than the {job['pixels'] / 1e6:.3g} million allowed; if this is "
            f"intended, raise the limit with --limits pixels={width * height}"
        )


def require_count_within_limit(count: int, job: Json) -> None:
    if count > job["frames"]:
        raise Problem(
            f"it has more than {job['frames']} frames; cut it, or raise the limit with --limits frames={2 * count}"
        )


def ffmpeg_error_text(error: Any) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)


def send_message(tag: bytes, content: Json) -> None:
    write_to_stdout(struct.pack(">4sI", tag, len(data := json.dumps(content).encode())) + data)


def send_planes(frame: Any) -> None:
    """Send the planes straight from the decoder's memory; the reader cuts the padding off and makes RGB of them.

    Nothing is converted here: what swscale makes of a frame depends on the processor and on its version.
    """
    name = frame.format.name
    colour = {"matrix": int(frame.colorspace), "range": int(frame.color_range)}
    if name == "nv12":  # of a GPU; the samples are those of yuv420p
        samples = split_nv12_planes(frame)
        send_message(b"FRAM", {"format": "yuv420p", **colour, "strides": [stride for _, stride in samples]})
        for plane, _ in samples:
            write_to_stdout(plane)
        return
    colours = [c.plane for c in frame.format.components if not c.is_alpha]
    planes = [frame.planes[k] for k in sorted({*colours, *([1] if name == "pal8" else [])})]
    if any(plane.line_size < 0 for plane in planes):
        raise Problem("its rows are stored bottom-up; re-encode the clip")
    strides = [plane.buffer_size // plane.height for plane in planes]
    send_message(b"FRAM", {"format": name, **colour, "strides": strides})
    for plane in planes:
        write_to_stdout(memoryview(plane))


def send_rgb_rows(name: str, rows: Any) -> None:
    """Send a frame whose pixels are made, in one plane of 8-bit RGB or BGR."""
    stride = rows.line_size if hasattr(rows, "line_size") else rows.strides[0]
    send_message(b"FRAM", {"format": name, "matrix": RGB_MATRIX, "range": FULL_RANGE, "strides": [stride]})
    write_to_stdout(memoryview(rows).cast("B"))


def write_to_stdout(data: Any) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(1, view) :]
    except BrokenPipeError:
        os._exit(1)  # nobody listens any more


# The server


SERVER = os.getpid()  # the process that decoders are forked from, in one that was


def serve_decoder_forks(folder: str) -> None:
    """Load PyAV from this folder, and fork a decoder for each message on standard input, a socket.

    With it come the decoder's standard input and output, a pipe for its process id and later its exit code, and the
    clip, if it is a video. This process never sees a clip. It ends with the process that started it.
    """
    requests = socket.socket(fileno=0)
    sys.path.append(folder)
    av = import_all_av_modules()
    sys.path.pop()
    pipes: dict[int, int] = {}  # process id -> where its exit code is wanted

    def report_ended_children(*_: object) -> None:
        while pipes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            pipe = pipes.pop(pid)
            with contextlib.suppress(OSError):  # nobody wants to know
                os.write(pipe, struct.pack("=i", os.waitstatus_to_exitcode(status)))
            os.close(pipe)

    signal.signal(signal.SIGCHLD, report_ended_children)
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1, 4)
        if not message:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until its pipe is known
        with contextlib.suppress(OSError):  # no room for a process: its pipe is closed without a word
            pid = os.fork()
            if not pid:
                run_as_forked_decoder(av, files)
            pipes[pid] = files.pop(2)
            os.write(pipes[pid], struct.pack("=i", pid))
        for file in files:
            os.close(file)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def run_as_forked_decoder(av: Any, files: list[int]) -> NoReturn:
    """Be a decoder that holds its standard input and output, and the clip as file 3; and nothing else."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()
        del files[2]
        above = [fcntl.fcntl(file, fcntl.F_DUPFD, 16) for file in files]
        for file, place in zip(above, (0, 1, 3), strict=False):
            os.dup2(file, place)
        os.closerange(3 if len(above) < 3 else 4, 1 << 20)
        main(av)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve_decoder_forks(*sys.argv[1:]) if sys.argv[1:] else main()
