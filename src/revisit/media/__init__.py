"""Media: safe reading and writing of clips, images, arrays and text. Only this room opens files from outside."""

from revisit.media.array_clip import why_picture_arrays_are_no_clip
from revisit.media.clip_files import ARRAY_SUFFIXES, CLIP_SUFFIXES, IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_clip_file
from revisit.media.decode import ClipStream, FrameSelection, open_clip, read_clip_info
from revisit.media.digest import clip_digest, file_digest
from revisit.media.encode import encode_mp4, write_picture
from revisit.media.frame_folder import natural_sort_key as natural_order
from revisit.media.limits import Limits
from revisit.media.npz import array_shapes_in_npz, load_npy, load_npz, save_npz, verify_seal_if_present
from revisit.media.pixel_rules import DECODINGS, decoding_build, decoding_by_name
from revisit.media.video_index import frame_count_in_mp4_index, frame_size_in_mp4_index

# Part of every piece of evidence's address: raise it when the rules in decode.py change what frames look like.
DECODING_RULE = 2
