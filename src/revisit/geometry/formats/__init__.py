"""Formats: camera paths as other programs write them, to and from a Trajectory.

Text and JSON come as a string, npz files as a mapping of arrays; this room opens no files. What a file gets
wrong is told in one sentence: where, what was found, and what was expected.
"""

from revisit.geometry.formats.arrays import (
    from_c2w_array,
    from_depth_anything,
    from_mapanything,
    from_vggt,
    from_vipe,
    from_w2c_array,
)
from revisit.geometry.formats.documents import from_unreal_rows, parse_c2w_document, parse_transforms, parse_unreal
from revisit.geometry.formats.tables import parse_camera_table
from revisit.geometry.formats.text import parse_colmap, parse_kitti, parse_realestate10k, parse_tum
from revisit.geometry.formats.write import format_colmap, format_kitti, format_tum

__all__ = [
    "format_colmap", "format_kitti", "format_tum", "from_c2w_array", "from_depth_anything", "from_mapanything",
    "from_unreal_rows", "from_vggt", "from_vipe", "from_w2c_array", "parse_c2w_document", "parse_camera_table",
    "parse_colmap", "parse_kitti", "parse_realestate10k", "parse_transforms", "parse_tum", "parse_unreal",
]  # fmt: skip
