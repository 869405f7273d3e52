"""Media: safe reading and writing of clips, images, arrays and text. Only this room opens files from outside."""

from revisit.media.array_clip import why_no_frames
from revisit.media.clip_files import ARRAY_SUFFIXES, CLIP_SUFFIXES, IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_clip_file
from revisit.media.decode import ClipStream, FrameSelection, open_clip
from revisit.media.digest import clip_digest, file_digest
from revisit.media.encode import encode_mp4, write_picture
from revisit.media.frame_count import announced_frames, announced_size
from revisit.media.frame_folder import natural as natural_order
from revisit.media.limits import Limits
from revisit.media.npz import load_npz, npz_shapes, require_seal, save_npz
from revisit.media.pixel_rules import DECODINGS, decoding_build, decoding_of

# Part of every piece of evidence's address: raise it when the rules in decode.py change what frames look like.
DECODING_RULE = 2

__all__ = [
    "ARRAY_SUFFIXES", "CLIP_SUFFIXES", "DECODINGS", "DECODING_RULE", "IMAGE_SUFFIXES", "VIDEO_SUFFIXES", "ClipStream",
    "FrameSelection", "Limits", "announced_frames", "announced_size", "clip_digest", "decoding_build", "decoding_of",
    "encode_mp4", "file_digest", "is_clip_file", "load_npz", "natural_order", "npz_shapes", "open_clip", "require_seal",
    "save_npz", "why_no_frames", "write_picture",
]  # fmt: skip
