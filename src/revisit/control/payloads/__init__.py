"""Payloads: a camera path in the form that the loader of a generator takes, and what that loader makes of it.

Each module writes some forms and reads them again from nothing but the files, by the rules of the loader; the reader
tells what is really delivered, which may be coarser than what was meant. To add a form, write both, name them here, and
describe the files in families.yaml.
"""

from revisit.control.payloads import angles, arrays, conditions, documents, tokens, words
from revisit.control.payloads.family import Family, LoadedPath, PayloadError, PayloadRequest
from revisit.core.text import read_package_yaml

WRITERS_AND_READERS = {
    "camera_text": (documents.write_camera_text, documents.read_camera_text),
    "pose_table": (documents.write_pose_table, documents.read_pose_table),
    "latent_folder": (arrays.write_latent_folder, arrays.read_latent_folder),
    "keys_folder": (arrays.write_keys_folder, arrays.read_keys_folder),
    "blender_npz": (arrays.write_blender_npz, arrays.read_blender_npz),
    "pose_lines": (documents.write_pose_lines, documents.read_pose_lines),
    "scene_json": (documents.write_scene_json, documents.read_scene_json),
    "split_json": (documents.write_split_json, documents.read_split_json),
    "unreal_strings": (documents.write_unreal_strings, documents.read_unreal_strings),
    "anchored_npz": (arrays.write_npz_with_first_pose_twice, arrays.read_npz_with_first_pose_twice),
    "pose_folder": (arrays.write_pose_folder, arrays.read_pose_folder),
    "multiview_npz": (arrays.write_multiview_npz, arrays.read_multiview_npz),
    "angles": (angles.write_angle_keyframes, angles.read_angle_keyframes),
    "tokens": (tokens.write_tokens, tokens.read_tokens),
    "token_list": (tokens.write_token_list, tokens.read_tokens),
    "mouse_rates": (conditions.write_mouse_rates, conditions.read_mouse_rates),
    "mouse_units": (conditions.write_mouse_units, conditions.read_mouse_units),
    "named_move": (words.write_move_name, words.read_move_name),
    "prompt": (words.write_sentence, words.read_sentence),
    "camera_commands": (words.write_commands, words.read_commands),
    "w2c_arrays": (arrays.write_w2c_npz, arrays.read_w2c_npz),
}
FAMILIES: dict[str, Family] = {
    id: Family(id, *WRITERS_AND_READERS[id], **facts)
    for id, facts in read_package_yaml(__name__, "families.yaml").items()
}

__all__ = ["FAMILIES", "Family", "LoadedPath", "PayloadError", "PayloadRequest"]
