"""Results: what a run found, as a type with the operations that every table needs."""

from revisit.results.cells import Cell
from revisit.results.pairing import Paired, Rank
from revisit.results.results import Results

__all__ = ["Cell", "Paired", "Rank", "Results"]
