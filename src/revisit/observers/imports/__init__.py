"""Importers: evidence from files that came with a clip; no frame is looked at."""
