"""Suite: a benchmark, as a reader of cases, a list of metrics, and a summary of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from revisit.core.cases import Case, Rejected, Remark
from revisit.core.errors import UsageError
from revisit.core.grouping import group_items
from revisit.core.metric import GATES, METRICS, Gate, Metric
from revisit.core.reasons import Details
from revisit.core.registry import Registry
from revisit.core.text import did_you_mean_question, parse_package_yaml, split_commas


@dataclass(frozen=True)
class Suite:
    """A benchmark: a reader of cases, a list of metrics, and a summary of records.

    Parameters
    ----------
    id
        Name of the suite in commands.
    card
        Content of its card.yaml: title, citation, licence, protocols.
    read
        Function `(source, roots, **options)` that yields cases and rejected entries in a stable order.
    recognises
        Function of a path: is this folder or file laid out as the suite expects?
    metrics
        Function without arguments: ids of the metrics that are asked.
    summarise
        Function of `Results`: tables, such as `revisit.standard_summary`.
    export
        Function (run folder, facts of the run, Results): further files by name.
    settings
        Function of the options: parameters that they set, by the id of a metric, gate or observer.
    boards
        Function (facts of a run, part of the dataset): its leaderboards; one with all metrics by default.
    board_of_files
        Function (folder, part of the dataset): the board of result files by the benchmark's own scripts, or None.
    published
        Function (with the supplement): the tables of the paper, as boards.
    jobs
        Function (dataset, out, what is wanted): the clips that a generator shall make.
    accompany
        Function of a manifest of clips: writes what the benchmark's own tools look for beside them.
    dataset
        Tools that recognise and describe the suite's dataset, and find what cannot be scored.

    Examples
    --------
    >>> playlist = revisit.Suite(
    ...     "playlist", {"title": "A list of videos"}, read=lambda source, roots=(): (),
    ...     recognises=lambda source: source.suffix == ".playlist", metrics=lambda: ["flicker"],
    ...     summarise=revisit.standard_summary,
    ... )
    >>> playlist.title
    'A list of videos'
    """

    id: str
    card: Details
    read: Callable[..., Iterable[Case | Rejected | Remark]]
    recognises: Callable[[Path], bool]
    metrics: Callable[[], Sequence[str]]
    summarise: Callable[..., Any]
    export: Callable[..., dict[str, Any]] | None = None
    settings: Callable[..., Mapping[str, Details]] | None = None
    boards: Callable[..., Sequence[Any]] | None = None
    board_of_files: Callable[..., Any] | None = None
    published: Callable[[bool], Sequence[Any]] | None = None
    jobs: Callable[..., Any] | None = None
    accompany: Callable[[Path], Sequence[str]] | None = None
    dataset: Any = None

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

    def with_absolute_paths(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options; those that are files or folders, by the `paths` of the card, hold from any working folder."""
        paths = self.card.get("paths") or ()
        return {name: _absolute_paths(value) if name in paths else value for name, value in options.items()}

    @property
    def protocols(self) -> Mapping[str, Details]:
        """Protocol name -> metric, gate or evidence id -> parameters."""
        return self.card.get("protocols") or {"default": {}}

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Names for several metrics at once: those of the card, or else the chapters of its metrics."""
        if self.card.get("groups"):
            return dict(self.card["groups"])
        chapters = group_items(self.metrics(), lambda id: METRICS[id].family)
        return {name: ids for name, ids in chapters.items() if not _is_metric_or_gate_id(name)}

    @property
    def memory_or_control_by_metric(self) -> Mapping[str, str]:
        """Published measures of memory and control -> which of the two; `revisit audit --benchmarks` tries them."""
        return {id: kind for kind, ids in (self.card.get("measures") or {}).items() for id in ids}

    @property
    def published_protocol(self) -> str:
        """The protocol that computes what was published: `upstream`, or else `paper`; empty where there is neither."""
        return next((name for name in ("upstream", "paper") if name in self.protocols), "")

    @property
    def heading_by_metric(self) -> Mapping[str, str]:
        """Metrics of its own -> the heading of tables that each stands under."""
        return {id: heading for heading, ids in (self.card.get("headings") or {}).items() for id in ids}

    def default_metrics(self, *, judge: bool) -> list[str]:
        """Ids of the metrics that are asked where none is named; with a judge also those that only one can answer."""
        return [*self.metrics(), *((self.card.get("judged") or ()) if judge else ())]

    def resolve_check_ids(self, names: Iterable[str]) -> list[str]:
        """Ids of metrics and gates, from ids and names of groups, which may be joined by commas."""
        ids: dict[str, None] = {}
        for name in split_commas(names):
            if _is_metric_or_gate_id(name):
                ids[name] = None
            elif name in self.groups:
                ids.update(dict.fromkeys(self.groups[name]))
            else:
                hint = did_you_mean_question(name, [*METRICS, *GATES, *self.groups])
                raise UsageError(
                    f"there is no metric or group of metrics called {name!r}; {hint + ' The' if hint else 'the'} "
                    f"groups of the suite {self.id} are {', '.join(self.groups)}"
                )
        return list(ids)

    def checks_asked_of(self, checks: Sequence[Metric | Gate], case: Case) -> list[Metric | Gate]:
        """Those metrics and gates that are asked of a case; most suites ask all of every case."""
        if not self.card.get("asked_of"):
            return list(checks)
        return [check for check in checks if self.asks(check.id, case)]

    def asks(self, id: str, entry: Case | Rejected | Details) -> bool:
        """Whether a metric or gate is asked of a case: `asked_of` in the card may keep it to some of them.

        It names fields of the case, or of its annotations, and the values for which the question is asked. `entry` may
        also be one that was rejected, which counts wherever nothing speaks against it, and either as plan.json has it.
        """
        where = (self.card.get("asked_of") or {}).get(id)
        if not where:
            return True
        facts: Details = entry if isinstance(entry, Mapping) else vars(entry)
        if "annotations" in facts:
            return all(facts.get(name, facts["annotations"].get(name)) in values for name, values in where.items())
        return all(facts[name] in values for name, values in where.items() if name in facts)


def _absolute_paths(value: str) -> str:
    """The path, or each of several that are joined by commas, from the root."""
    whole = Path(value).expanduser()
    parts = [value] if whole.exists() else value.split(",")
    return ",".join(str(Path(part.strip()).expanduser().absolute()) if part.strip() else part for part in parts)


def read_card(package: str | None) -> Details:
    """Read the card.yaml in the folder of a suite, with the people.yaml beside it, where there is one, as `people`.

    Parameters
    ----------
    package
        `__package__` of the suite.

    Returns
    -------
    dict
        The content, for `Suite`.

    Examples
    --------
    >>> revisit.read_card("revisit.suites.folder")["title"]
    'Any folder of videos'
    """
    card: Details = parse_package_yaml((files(package or "") / "card.yaml").read_text(encoding="utf-8"))
    people = files(package or "") / "people.yaml"
    return {**card, "people": parse_package_yaml(people.read_text(encoding="utf-8"))} if people.is_file() else card


def metrics_of(suite_id: str) -> list[str]:
    """List the metrics that name a suite in their `suites`.

    Parameters
    ----------
    suite_id
        Id of the suite.

    Returns
    -------
    list of str
        Ids of the metrics, sorted.

    Examples
    --------
    >>> "flicker" in revisit.metrics_of("folder")
    True
    """
    return [id for id in METRICS if suite_id in METRICS[id].suites]


def _is_metric_or_gate_id(name: str) -> bool:
    return name in METRICS or name in GATES


SUITES: Registry[Suite] = Registry("suite")


def suite(benchmark: Suite) -> Suite:
    """Register a benchmark, so that commands and `revisit.evaluate` know it.

    Parameters
    ----------
    benchmark
        The suite.

    Returns
    -------
    Suite
        The same.

    Examples
    --------
    >>> revisit.suite(
    ...     revisit.Suite("mine", {}, lambda source: (), lambda source: False, list, revisit.standard_summary)
    ... ).id
    'mine'
    """
    return SUITES.add(benchmark.id, benchmark)
