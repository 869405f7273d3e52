"""Finished runs: split them into groups, compare them, cite what they used, and bundle them for others to check."""
