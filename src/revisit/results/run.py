"""A run directory, read back: its facts, plan, summary, diagnosis and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from revisit.core import SUITES, Case, Record, Rejected, UsageError
from revisit.core.errors import ExitCode
from revisit.core.text import convert_read_errors, parse_json
from revisit.results.file_types import Details, PlanFile, RunFile
from revisit.results.metric_columns import Answers
from revisit.results.record_files import RecordLines, case_from_json, record_from_line
from revisit.results.results import Results
from revisit.results.stand_ins import unscore_truth_of_other_makers


class Run:
    """A run directory, read back. Each file is read once, and again only when it has changed."""

    def __init__(self, path: Path, lines: RecordLines | None = None, results: Results | None = None) -> None:
        """`lines` are its answers and `results` what was made of them, where somebody has read them already."""
        if not (path / "run.json").is_file():
            raise UsageError(f"{path} is not a run (no run.json in it); `revisit eval SOURCE --out DIR` makes one")
        self.path = path
        self._lines = lines
        self._known: dict[str, tuple[Any, Any]] = {}  # what was made -> the state it was made of, and the thing
        if results is not None:
            self._known["results"] = (id(self.plan), self.lines.file_and_bytes_read), results

    @property
    def facts(self) -> RunFile:
        return self._read_json_unless_unchanged("run.json")

    @property
    def plan(self) -> PlanFile:
        return self._read_json_unless_unchanged("plan.json")

    @property
    def summary(self) -> Details:
        return self._read_json_unless_unchanged("summary.json")

    @property
    def diagnosis(self) -> Details:
        """What each clip is found to show; empty where the suite does not ask for what a diagnosis rests on."""
        return self._read_json_unless_unchanged("diagnosis.json") if (self.path / "diagnosis.json").is_file() else {}

    @property
    def lines(self) -> RecordLines:
        self._lines = self._lines or RecordLines(self.path / "records.jsonl")
        return self._lines.read_appended_lines()

    @property
    def results(self) -> Results:
        """The newest answer to each question, in the order of the plan."""
        with convert_read_errors(self.path, "a whole run; run the same eval command again"):
            plan, lines = self.plan, self.lines
            state = id(plan), lines.file_and_bytes_read
            return self._make_unless_unchanged("results", state, lambda: load_results(self.path, plan, lines=lines))

    @property
    def exit_code(self) -> int:
        results = self.results
        refused = any(not entry.missing for entry in results.rejected)
        return ExitCode.FAILED if results.failures or refused else ExitCode.OK

    def _read_json_unless_unchanged(self, name: str) -> Any:
        path = self.path / name
        if not path.is_file():
            raise UsageError(f"{self.path} has no {name}: the run was stopped early; run the same eval command again")
        now = path.stat()
        with convert_read_errors(path, "the JSON that a run writes; run the same eval command again"):
            state = now.st_ino, now.st_mtime_ns, now.st_size
            return self._make_unless_unchanged(name, state, lambda: {**parse_json(path.read_bytes())})

    def _make_unless_unchanged(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        if name not in self._known or self._known[name][0] != state:
            self._known[name] = state, make()
        return self._known[name][1]


def load_results(out: Path, plan: PlanFile, at_hand: Iterable[Case] = (), lines: RecordLines | None = None) -> Results:
    """The results in a folder, in the order of its plan: case by case, gates before metrics.

    `at_hand` are cases that need not be read back from the plan.
    """
    now = {case.id: case for case in at_hand}
    cases = [now.get(entry["id"]) or case_from_json(entry) for entry in plan["cases"]]
    questions = [*plan["gates"], *plan["metrics"]]
    newest = (lines.read_appended_lines() if lines else RecordLines(out / "records.jsonl")).newest
    answers: dict[str, dict[str, Record]] = {}
    for case in cases:
        mine = newest.get(case.id, {})
        answers[case.id] = {id: record_from_line(mine[id], case) for id in questions if id in mine}
    return assemble_results(plan, cases, answers, out, out.resolve().name)


def assemble_results(
    plan: PlanFile,
    cases: Sequence[Case],
    answers: Iterable[Record] | Answers,
    folder: Path | None = None,
    name: str = "",
) -> Results:
    """Answers about the cases of a plan, with what is missing and refused there."""
    is_installed = plan["suite"] in SUITES  # not so of a plugin's suite that is elsewhere
    asks = SUITES[plan["suite"]].asks if is_installed and SUITES[plan["suite"]].card.get("asked_of") else None
    rejected = [Rejected(**entry) for entry in plan["rejected"]]
    return unscore_truth_of_other_makers(Results(cases, answers, rejected, asks=asks, folder=folder, name=name))
