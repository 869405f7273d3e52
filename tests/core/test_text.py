"""Words of sentences."""

from __future__ import annotations

from revisit.core.text import join_names


def test_of_many_names_the_first_are_given_and_the_others_counted() -> None:
    shown = [join_names(["a", "b", "c", "d"][:count]) for count in range(5)]
    assert shown == ["", "a", "a and b", "a, b and c", "a, b, c and d"]
    assert join_names(list("abcdefg")) == "a, b, c and 4 more"
    assert join_names(list("abc"), 2) == "a and 2 more"
