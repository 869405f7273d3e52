"""Results: what a run found, as a type with the operations that every table needs."""

from revisit.results.results import Cell, Paired, Rank, Results

__all__ = ["Cell", "Paired", "Rank", "Results"]
