"""Payloads: a camera path in the form that the loader of a generator takes, and what that loader makes of it.

Each module writes some forms and reads them again from nothing but the files, by the rules of the loader; the reader
tells what is really delivered, which may be coarser than what was meant. To add a form, write both, name them here, and
describe the files in families.yaml.
"""

from revisit.control.payloads import angles, arrays, conditions, documents, tokens, words
from revisit.control.payloads.family import Family, LoadedPath, PayloadError, PayloadRequest
from revisit.core.text import package_yaml

WRITERS_AND_READERS = {
    "camera_text": (documents.write_camera_text, documents.read_camera_text),
    "pose_table": (documents.write_table, documents.read_table),
    "latent_folder": (arrays.write_latent_folder, arrays.read_latent_folder),
    "keys_folder": (arrays.write_keys_folder, arrays.read_keys_folder),
    "blender_npz": (arrays.write_blender, arrays.read_blender),
    "pose_lines": (documents.write_lines, documents.read_lines),
    "scene_json": (documents.write_scene, documents.read_scene),
    "split_json": (documents.write_split, documents.read_split),
    "unreal_strings": (documents.write_strings, documents.read_strings),
    "anchored_npz": (arrays.write_anchored, arrays.read_anchored),
    "pose_folder": (arrays.write_folder, arrays.read_folder),
    "multiview_npz": (arrays.write_multiview, arrays.read_multiview),
    "angles": (angles.write, angles.read),
    "tokens": (tokens.write, tokens.read),
    "token_list": (tokens.write_list, tokens.read),
    "mouse_rates": (conditions.write_rates, conditions.read_rates),
    "mouse_units": (conditions.write_units, conditions.read_units),
    "named_move": (words.write_name, words.read_name),
    "prompt": (words.write, words.read),
    "camera_commands": (words.write_commands, words.read_commands),
    "w2c_arrays": (arrays.write_w2c, arrays.read_w2c),
}
FAMILIES: dict[str, Family] = {
    id: Family(id, *WRITERS_AND_READERS[id], **facts) for id, facts in package_yaml(__name__, "families.yaml").items()
}

__all__ = ["FAMILIES", "Family", "LoadedPath", "PayloadError", "PayloadRequest"]
