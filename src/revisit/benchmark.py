"""What a benchmark of one's own needs beyond `revisit` itself: boards, layouts of rendered worlds.

Plugins import these from here; where they live inside the package may change.
"""

from revisit.results.leaderboards import Board, RunFacts, board_of_run
from revisit.results.leaderboards import Column as BoardColumn
from revisit.worlds.film import Film
from revisit.worlds.layouts.common import Model as ReferenceModel
from revisit.worlds.layouts.common import Row as IndexRow
from revisit.worlds.layouts.common import Tell, each_that_applies
from revisit.worlds.layouts.common import text as write_text
from revisit.worlds.layouts.common import video as write_video
from revisit.worlds.layouts.film_orders import Layout, place_of
from revisit.worlds.layouts.film_orders import Order as FilmOrder
from revisit.worlds.layouts.film_orders import layout as register_layout

__all__ = [
    "Board", "BoardColumn", "Film", "FilmOrder", "IndexRow", "Layout", "ReferenceModel", "RunFacts", "Tell",
    "board_of_run", "each_that_applies", "place_of", "register_layout", "write_text", "write_video",
]  # fmt: skip
