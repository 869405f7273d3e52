"""Layouts: films and what models make of them, written as each benchmark has its files, so that its suite reads them.

A suite's `world.py` registers its own: `shoot` writes one film and returns what the index says of it, `index` writes
the index of all, so that films can be shot side by side.
"""
