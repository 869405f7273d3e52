"""Importers of files that only this benchmark uses."""
