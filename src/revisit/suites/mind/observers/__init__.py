"""Observers that only this benchmark uses."""
