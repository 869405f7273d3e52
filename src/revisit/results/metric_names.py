"""Metrics of finished runs by the names that somebody typed: ids or groups, with commas, and typos answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from revisit.core import METRICS, SUITES, UsageError
from revisit.core.text import split_commas, suggest_names
from revisit.results.score_names import strip_held_suffix


def resolve_score_ids(names: Iterable[str], available: Sequence[str], where: object, suite: str = "") -> list[str]:
    """Ids of scores that a run has, from ids (also of what is held to the truth) and groups, joined by commas or not.

    Parameters
    ----------
    names
        What was typed, such as ``["psnr,ssim", "fidelity"]``.
    available
        Metrics that the run, or one of the runs, asked.
    where
        What the run is called in a sentence.
    suite
        The suite whose groups may be named.

    Examples
    --------
    >>> resolve_score_ids(["psnr,ssim"], ["ssim", "psnr"], "runs/a")
    ['psnr', 'ssim']
    """
    groups = SUITES[suite].groups if suite in SUITES else {}
    chosen: dict[str, None] = {}
    for name in split_commas(names):
        members = [id for id in groups.get(name, ()) if id in available]
        if strip_held_suffix(name) in available:
            chosen[name] = None
        elif members:
            chosen.update(dict.fromkeys(members))
        elif name in METRICS or name in groups:
            raise UsageError(f"{name} was not asked in {where}; the same eval command with `-m {name}` adds it")
        else:
            hint = suggest_names(name, dict.fromkeys([*available, *METRICS, *groups]))
            raise UsageError(f"there is no metric called {name!r}; {hint}")
    return list(chosen)
