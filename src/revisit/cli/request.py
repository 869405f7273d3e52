"""What an evaluation asks for, as the options of `eval` and `plan` say it, and as run.json keeps it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from revisit.engine.run import Run

SOURCE = typer.Argument(help="A folder of videos, a manifest.jsonl, or a benchmark's dataset folder.")
SUITE = typer.Option("auto", help="Suite to read the source as; auto recognises it by its layout.")
SET = typer.Option("lite", "--set", help="Observer set: a name from `revisit list sets`, or a YAML file.")
PROTOCOL = typer.Option(None, help="Protocol of the suite; its first one by default.")
METRIC = typer.Option(
    [],
    "--metric",
    "-m",
    help="Only these metrics, or groups of them such as lcm (repeat it, or use commas); all by default.",
)
LIMIT = typer.Option(None, help="At most so many cases, spread evenly over models; marks the result partial.")
ALIGN = typer.Option("auto", help="How a reference is aligned: auto, index, time or stretch.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the manifest may lead into.")
OPTION = typer.Option(
    [], "--option", "-o", help="name=value for the suite (repeat it); `revisit show SUITE` lists them."
)
PARAM = typer.Option(
    [],
    "--param",
    "-p",
    help="ID.name=value of a metric, gate, evidence or observer in the place of the protocol's (repeat it).",
)
JUDGE = typer.Option(
    "", help="Who answers questions about clips: a judge file (YAML), the url of a server, or recorded answers."
)


@dataclass(frozen=True)
class Request:
    """Everything needed to make the same plan again."""

    source: str
    suite: str = "auto"
    set: str = "lite"
    protocol: str | None = None
    metrics: tuple[str, ...] = ()
    limit: int | None = None
    align: str = "auto"
    roots: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # name=value
    judge: str = ""  # as --judge says it
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # that take the place of the protocol's

    @classmethod
    def of(
        cls,
        source: Path,
        suite: str,
        set: str,
        protocol: str | None,
        metric: list[str],
        limit: int | None,
        align: str,
        root: list[Path],
        option: list[str],
        judge: str = "",
        param: list[str] | None = None,
    ) -> Request:
        """The request that these options make."""
        from revisit.engine.parameters import parse

        roots = tuple(str(folder.resolve()) for folder in root)
        parameters = parse(param or ())
        if judge and "://" not in judge:
            judge = str(Path(judge).resolve())
        return cls(
            str(source.resolve()),
            suite,
            set,
            protocol,
            tuple(metric),
            limit,
            align,
            roots,
            tuple(option),
            judge,
            parameters,
        )

    def chosen_judge(self) -> Any:
        """The judge that was asked for, or None."""
        from revisit.judges.settings import choose_judge

        return choose_judge(self.judge) if self.judge else None

    def plan(self, overrides: Any = None, judge: Any = None) -> Any:
        """The plan of this request; `overrides` are parameters that take the place of the protocol's.

        `judge` are the facts of the judge, as a run keeps them; those of the chosen judge by default.
        """
        from revisit.core import SUITES, UsageError
        from revisit.engine.needs import ObserverSet
        from revisit.engine.parameters import check_used
        from revisit.engine.plan import make_plan
        from revisit.observers.sets import load_roles, read_set

        source = Path(self.source)
        if self.align not in ("auto", "index", "time", "stretch"):
            raise UsageError(f"--align takes auto, index, time or stretch, not {self.align!r}")
        if not source.exists():
            raise UsageError(f"{source}: no such file or folder")
        suite = recognise(source) if self.suite == "auto" else SUITES[self.suite]
        facts = judge if judge is not None or not self.judge else self.chosen_judge().facts
        made = make_plan(
            suite,
            source,
            ObserverSet(read_set(self.set).id, load_roles(self.set, judge=facts is not None), facts),
            protocol=self.protocol,
            metrics=self.metrics,
            limit=self.limit,
            align=self.align,
            roots=[Path(root) for root in self.roots],
            options=dict(map(_named, self.options)),
            overrides=merged(self.parameters, overrides or {}),
        )
        check_used(made, self.parameters)
        return made

    def run(self, out: Path, *, quiet: bool = False, command: str = "", **how: Any) -> Run:
        """Carry it out and return the finished run; `how` goes to `evaluate`."""
        from revisit.cli import console
        from revisit.engine.run import evaluate

        judge = self.chosen_judge()
        try:
            return evaluate(
                self.plan(judge=judge.facts if judge else None),
                out,
                request=self.as_json(),
                judge=judge,
                progress=console.progress(quiet),
                command=command or shlex.join(["revisit", *sys.argv[1:]]),
                **how,
            )
        except KeyboardInterrupt:
            console.message("interrupted; the same command goes on where it stopped")
            raise typer.Exit(130) from None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Request:
        lists = {name: tuple(content.get(name, ())) for name in ("metrics", "roots", "options")}
        return cls(**{**content, **lists})


def merged(*given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Parameters of several sources; the last one counts."""
    found: dict[str, dict[str, Any]] = {}
    for parameters in given:
        for id, values in parameters.items():
            found[id] = {**found.get(id, {}), **values}
    return found


def _named(option: str) -> tuple[str, str]:
    from revisit.core import UsageError

    name, equals, value = option.partition("=")
    if not (name and equals and value):
        raise UsageError(f"--option takes name=value, such as gt=path/to/dataset, not {option!r}")
    return name, value


def recognise(source: Path) -> Any:
    """The first benchmark that knows the layout, or the folder suite."""
    from revisit.core import SUITES

    claimed = [suite for suite in SUITES.values() if suite.id != "folder" and suite.recognises(source)]
    return claimed[0] if claimed else SUITES["folder"]
