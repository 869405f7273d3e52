"""What a benchmark of one's own needs beyond `revisit` itself: leaderboards, and layouts of rendered worlds.

Plugins import these names from here; where they live inside the package may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revisit.results.leaderboards import Board, BoardColumn, RunFacts, board_of_run
    from revisit.worlds.film import Film
    from revisit.worlds.layouts.common import Model as ReferenceModel
    from revisit.worlds.layouts.common import Row as IndexRow
    from revisit.worlds.layouts.common import each_that_applies
    from revisit.worlds.layouts.common import text as write_text
    from revisit.worlds.layouts.common import video as write_video
    from revisit.worlds.layouts.film_orders import Layout, place_of
    from revisit.worlds.layouts.film_orders import Order as FilmOrder
    from revisit.worlds.layouts.film_orders import layout as register_layout
    from revisit.worlds.workers import StepCallback

_HOMES = {
    "revisit.results.leaderboards": "Board BoardColumn RunFacts board_of_run",
    "revisit.worlds.film": "Film",
    "revisit.worlds.layouts.common": (
        "IndexRow=Row ReferenceModel=Model each_that_applies write_text=text write_video=video"
    ),
    "revisit.worlds.layouts.film_orders": "FilmOrder=Order Layout place_of register_layout=layout",
    "revisit.worlds.workers": "StepCallback",
}
__all__ = [
    "Board", "BoardColumn", "Film", "FilmOrder", "IndexRow", "Layout", "ReferenceModel", "RunFacts", "StepCallback",
    "board_of_run", "each_that_applies", "place_of", "register_layout", "write_text", "write_video",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a suite need not load the renderer."""
    for module, names in _HOMES.items():
        for public, _, original in (one.partition("=") for one in names.split()):
            if public == name:
                return getattr(import_module(module), original or public)
    raise AttributeError(f"revisit.benchmark has nothing called {name!r}; it has {', '.join(__all__)}")
