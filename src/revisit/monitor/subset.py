"""The clips that a monitor scores: within a budget, and the same ones at every checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from revisit.core import UsageError, digest


class Subset:
    """Names of the clips that are scored.

    Of `names`, all that may come, `clips` are picked by a hash of each name: the choice depends on no order and on no
    rank. Where the names are not known, or the budget is in `seconds`, those that come first are taken until it is
    used up; from the first `settle_choice` on they stay. Ranks share a budget out.
    """

    def __init__(self, names: Collection[str], clips: int | None, seconds: float | None) -> None:
        if clips is not None and clips < 1:
            raise UsageError(f"clips={clips}: a budget is at least one clip")
        if seconds is not None and not seconds > 0:
            raise UsageError(f"seconds={seconds}: a budget is more than no time")
        self.clips, self.seconds = clips, seconds
        in_random_order = sorted(set(names), key=lambda name: (digest(name), name))  # always the same one
        self.allowed: frozenset[str] | None = frozenset(in_random_order[:clips]) if names else None
        self.chosen: list[str] = []  # as they came
        self.settled = False

    def wants(self, name: str, spent: float, ranks: tuple[int, int] = (0, 1)) -> bool:
        """Whether a clip is scored, after so many seconds spent at this checkpoint by this rank."""
        if name in self.chosen:
            return True
        if self.settled or (self.allowed is not None and name not in self.allowed):
            return False
        if self.seconds is not None and self.chosen and spent >= self.seconds:
            return False
        rank, count = ranks
        share = None if self.clips is None else self.clips // count + (rank < self.clips % count)
        return self.allowed is not None or share is None or len(self.chosen) < share

    def add_scored_clip(self, name: str) -> None:
        """Note a clip that was scored."""
        if name not in self.chosen:
            self.chosen.append(name)

    def settle_choice(self) -> None:
        """From now on these clips, and no others; without a budget any may come."""
        self.settled = bool(self.chosen) and (self.clips is not None or self.seconds is not None)

    def restore_choice(self, names: Sequence[str]) -> None:
        """The clips of an earlier process."""
        self.chosen, self.settled = list(names), bool(names)
