"""Layouts: films and what models make of them, written as each benchmark has its files, so that its suite reads them.

A suite's `world.py` registers its own: `write_film` writes one film and returns what the lists say of it, `write_lists`
writes the lists of all, so that films can be shot side by side.
"""
