"""A run directory, read back: its facts, plan, summary, diagnosis and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revisit.core import SUITES, Case, Rejected, UsageError
from revisit.core.texts import parse_json, reading
from revisit.results.files import case_from_json, from_line, latest
from revisit.results.results import Results


@dataclass(frozen=True)
class Run:
    """A run directory, read back."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / "run.json").is_file():
            raise UsageError(f"{self.path} is not a run (no run.json in it); `revisit eval SOURCE --out DIR` makes one")

    @property
    def facts(self) -> dict[str, Any]:
        return self._json("run.json")

    @property
    def plan(self) -> dict[str, Any]:
        return self._json("plan.json")

    @property
    def summary(self) -> dict[str, Any]:
        return self._json("summary.json")

    @property
    def diagnosis(self) -> dict[str, Any]:
        """What each clip is found to show; empty where the suite does not ask for what a diagnosis rests on."""
        return self._json("diagnosis.json") if (self.path / "diagnosis.json").is_file() else {}

    @property
    def results(self) -> Results:
        """The newest answer to each question, in the order of the plan."""
        with reading(self.path, "a whole run; run the same eval command again"):
            return results_of(self.path, self.plan)

    @property
    def exit_code(self) -> int:
        results = self.results
        return 1 if results.failures or any(not entry.missing for entry in results.rejected) else 0

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            raise UsageError(f"{self.path} has no {name}: the run was stopped early; run the same eval command again")
        with reading(path, "the JSON that a run writes; run the same eval command again"):
            content: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
            return {**content}


def results_of(out: Path, plan: Mapping[str, Any], known: Iterable[Case] = ()) -> Results:
    """The results in a folder, in the order of its plan: case by case, gates before metrics.

    `known` are cases that need not be read back from the plan.
    """
    now = {case.id: case for case in known}
    cases = [now.get(entry["id"]) or case_from_json(entry) for entry in plan["cases"]]
    questions = [("gate", id) for id in plan["gates"]] + [("metric", id) for id in plan["metrics"]]
    lines = latest(out / "records.jsonl")
    return Results(
        cases,
        [
            from_line(lines[case.id, kind, id], case)
            for case in cases
            for kind, id in questions
            if (case.id, kind, id) in lines
        ],
        [Rejected(**entry) for entry in plan["rejected"]],
        asks=SUITES[plan["suite"]].asks if plan["suite"] in SUITES else lambda question, entry: True,
        folder=out,
        name=out.resolve().name,
    )
