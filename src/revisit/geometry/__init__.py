"""Geometry: rotations, camera poses and scripts, alignment of paths, and pose file formats."""
