"""Revisit: how well does a video world model remember?"""

__version__ = "0.1.0"
