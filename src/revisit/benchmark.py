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

_BOARDS, _LAYOUTS = "revisit.results.leaderboards", "revisit.worlds.layouts"
_HOMES = {
    "Board": (_BOARDS, "Board"),
    "BoardColumn": (_BOARDS, "BoardColumn"),
    "Film": ("revisit.worlds.film", "Film"),
    "FilmOrder": (f"{_LAYOUTS}.film_orders", "Order"),
    "IndexRow": (f"{_LAYOUTS}.common", "Row"),
    "Layout": (f"{_LAYOUTS}.film_orders", "Layout"),
    "ReferenceModel": (f"{_LAYOUTS}.common", "Model"),
    "RunFacts": (_BOARDS, "RunFacts"),
    "StepCallback": ("revisit.worlds.workers", "StepCallback"),
    "board_of_run": (_BOARDS, "board_of_run"),
    "each_that_applies": (f"{_LAYOUTS}.common", "each_that_applies"),
    "place_of": (f"{_LAYOUTS}.film_orders", "place_of"),
    "register_layout": (f"{_LAYOUTS}.film_orders", "layout"),
    "write_text": (f"{_LAYOUTS}.common", "text"),
    "write_video": (f"{_LAYOUTS}.common", "video"),
}
__all__ = [
    "Board", "BoardColumn", "Film", "FilmOrder", "IndexRow", "Layout", "ReferenceModel", "RunFacts", "StepCallback",
    "board_of_run", "each_that_applies", "place_of", "register_layout", "write_text", "write_video",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a suite need not load the renderer."""
    if name not in _HOMES:
        raise AttributeError(f"revisit.benchmark has nothing called {name!r}; it has {', '.join(__all__)}")
    module, original = _HOMES[name]
    return getattr(import_module(module), original)
