"""Suite: a benchmark is a reader of cases, a list of metrics, and a way to summarise records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revisit.core.cases import Case, Rejected
from revisit.core.registry import Registry


@dataclass(frozen=True)
class Suite:
    """A benchmark. `card` is the content of its card.yaml: title, citation, licence, protocols."""

    id: str
    card: Mapping[str, Any]
    read: Callable[..., Iterable[Case | Rejected]]  # (source, roots, **options) -> cases, in a stable order
    recognises: Callable[[Path], bool]  # is this folder or file laid out as this suite expects?
    metrics: Callable[[], Sequence[str]]
    summarise: Callable[..., dict[str, Any]]  # (cases, rejected, records) -> tables
    # (run folder, facts of the run, cases, rejected, records) -> further files by name: text, or content for JSON
    export: Callable[..., dict[str, Any]] | None = None
    # (**options) -> parameters that options set besides the protocol, by the id of a metric, gate or observer
    settings: Callable[..., Mapping[str, Mapping[str, Any]]] | None = None

    @property
    def title(self) -> str:
        return str(self.card.get("title", self.id))

    @property
    def exports(self) -> Sequence[str]:
        """Names, or patterns of names, of the files that `export` makes."""
        return self.card.get("exports") or ()

    @property
    def options(self) -> Mapping[str, str]:
        """What `read` takes besides the source: name -> what it means."""
        return self.card.get("options") or {}

    @property
    def protocols(self) -> Mapping[str, Mapping[str, Any]]:
        """Protocol name -> metric, gate or evidence id -> parameters."""
        return self.card.get("protocols") or {"default": {}}


SUITES: Registry[Suite] = Registry("suite")


def suite(made: Suite) -> Suite:
    """Register a suite."""
    SUITES.add(made.id, made)
    return made
