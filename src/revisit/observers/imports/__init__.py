"""Importers: evidence from files that came with a clip, without decoding frames."""
