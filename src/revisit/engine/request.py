"""An evaluation request and its plan; saved in run.json, so that the run can be repeated.

Also what a call would change in the run that lies in its folder: nothing of an earlier one is lost in silence.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revisit.core import GATES, METRICS, SUITES, MissingPrerequisite, Suite, UsageError
from revisit.core.text import count_and_noun, join_names, parse_named_values
from revisit.engine.dependencies import ObserverSet, Parameters, asks_judge, merge_parameters
from revisit.engine.parameters import parse_parameters, require_parameters_used
from revisit.engine.plan import Plan, make_plan
from revisit.engine.resume import read_json_object_or_empty
from revisit.engine.run import evaluate, rescore
from revisit.engine.worker_processes import Executor, temporary_environment_variables
from revisit.media.decoder_process import gpu_number_for_decoding
from revisit.networks import settings
from revisit.observers.sets import has_set_file_suffix, load_roles, read_set
from revisit.results.file_types import Details
from revisit.results.run import Run

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge

ALIGNMENTS = ("auto", "index", "time", "stretch")
ONLY = "judge"
EXECUTORS = ("local", "ray")
OWN_FLAGS = ("layout", "reference")  # options of a suite with a flag of their own
SETTINGS = ("set", "protocol", "align", "parameters", "metrics", "limit", "truth", "judge")  # of a request
FLAGS = {"parameters": "--param", "metrics": "-m"}  # of those that the command calls otherwise


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
    parameters: Parameters = field(default_factory=dict)  # that take the place of the protocol's
    truth: bool = False  # references are scored as a row of their own
    only: str = ""  # `judge`: nothing but what a judge is asked, beside the answers that the run has

    @classmethod
    def from_options(
        cls,
        source: Path,
        suite: str = "auto",
        set: str = "lite",
        protocol: str | None = None,
        metrics: Iterable[str] = (),
        limit: int | None = None,
        align: str = "auto",
        roots: Iterable[Path] = (),
        options: Iterable[str] = (),
        judge: str = "",
        params: Iterable[str] = (),
        truth: bool = True,
        only: str = "",
        layout: str = "",
        reference: Path | None = None,
    ) -> Request:
        """The request that these options of the command make; paths become absolute.

        `layout` and `reference` are options of the suite `folder`, which is then the one that reads.
        """
        if judge and "://" not in judge:
            judge = str(Path(judge).resolve())
        if has_set_file_suffix(set):
            set = str(Path(set).resolve())
        if layout or reference:
            suite = "folder" if suite == "auto" else suite
            place = str(reference.resolve()) if reference else ""
            how = {"layout": layout, "reference": place}
            options = [*options, *(f"{name}={value}" for name, value in how.items() if value)]
        return cls(
            str(source.resolve()), suite, set, protocol, tuple(metrics), limit, align,
            tuple(str(folder.resolve()) for folder in roots), tuple(options), judge, parse_parameters(params),
            truth, only,
        )  # fmt: skip

    def chosen_judge(self) -> ChosenJudge | None:
        """The judge that was asked for, or None."""
        if not self.judge:
            return None
        from revisit.judges.settings import judge_from_source  # here, because most runs do without a judge

        return judge_from_source(self.judge)

    def plan(self, overrides: Parameters | None = None, judge: Details | None = None) -> Plan:
        """The plan of this request; `overrides` are parameters that take the place of the protocol's.

        `judge` are the facts of the judge, as a run keeps them; those of the chosen judge by default.
        """
        source = Path(self.source)
        if self.align not in ALIGNMENTS:
            raise UsageError(f"--align takes auto, index, time or stretch, not {self.align!r}")
        if not source.exists():
            raise UsageError(f"{source}: no such file or folder")
        require_not_run_folder(source)
        suite = recognise_suite(source) if self.suite == "auto" else SUITES[self.suite]
        if judge is None and (chosen := self.chosen_judge()) is not None:
            judge = chosen.facts
        observers = load_observer_set(self.set, judge)
        plan = make_plan(
            suite,
            source,
            observers,
            protocol=self.protocol,
            metrics=self._requested_check_ids(suite, observers),
            limit=self.limit,
            align=self.align,
            roots=[Path(root) for root in self.roots],
            options=parse_named_values(self.options),
            overrides=merge_parameters(self.parameters, overrides or {}),
            truth=self.truth,
        )
        require_parameters_used(plan, self.parameters)
        return plan

    def _requested_check_ids(self, suite: Suite, observers: ObserverSet) -> Sequence[str]:
        """The metrics and gates that are asked for, all of the suite's where none is named."""
        if not self.only:
            return self.metrics
        if self.only != ONLY:
            raise UsageError(f"--only takes {ONLY}, not {self.only!r}")
        if observers.judge is None:
            raise UsageError("--only judge asks nobody: add --judge")
        if self.limit is not None:
            raise UsageError("--only judge asks about the clips that the run has; leave --limit out")
        ids = suite.resolve_check_ids(self.metrics) or [
            *suite.default_metrics(judge=True),
            *suite.card.get("gates", ()),
        ]
        judged_ids = [id for id in ids if asks_judge(GATES[id] if id in GATES else METRICS[id], observers)]
        if not judged_ids:
            raise UsageError(f"nothing that the suite {suite.id} asks is put to a judge; leave --only out")
        return judged_ids

    def run(
        self,
        out: Path,
        on_remark: Callable[[str], None] = lambda _: None,
        warned: Callable[[str], None] = warnings.warn,
        **how: Any,
    ) -> Run:
        """Carry it out in a run directory; `how` goes to `evaluate`.

        `on_remark` hears how the source was read, `warned` what of the set cannot run here. Where nothing of the set is
        left but what `lite` has, MissingPrerequisite says what to install.
        """
        require_not_run_folder(Path(self.source))
        require_out_separate_from_source(Path(self.source), out)
        judge = self.chosen_judge()
        plan = self.plan(judge=judge.facts if judge else None)
        options = plan.suite.with_absolute_paths(parse_named_values(self.options))
        kept = replace(self, options=tuple(f"{name}={value}" for name, value in options.items())).as_json()
        if not how.get("fresh") and not self.only and (sentence := replaced_answers_warning(out, plan, kept)):
            warned(sentence)
        warn_or_raise_if_unavailable(plan, warned)
        if sentence := idle_judge_warning(plan):
            warned(sentence)
        if own := sorted({task.observer for _, _, task in plan.tasks.values() if task.module == "__main__"}):
            if how.get("executor") is not None:
                warned(
                    f"{join_names(own)}: what a script registers is unknown to other machines, so that this process "
                    "observes all clips; put it into a module that all of them have"
                )
            how |= {"workers": 0, "executor": None}  # no other process can import what a notebook or script defines
        for remark in plan.remarks:
            on_remark(remark)
        if self.only:  # what was answered before stays
            how["dataset_case_ids"] = {*(case.id for case in plan.cases), *(entry.id for entry in plan.rejected)}
        return evaluate(plan, out, request=kept, judge=judge, **how)

    @property
    def default_run_folder(self) -> Path:
        """The run directory where none is named."""
        source = Path(self.source)
        return Path("runs") / (source.stem if source.is_file() else source.name)

    def as_json(self) -> Details:
        return asdict(self)

    @classmethod
    def of_run(cls, run: Run) -> Request:
        """The request that a run was made from."""
        if not run.facts["request"]:
            raise UsageError(
                f"{run.path} does not say how its clips are read, because it was not made by `revisit eval`; what made "
                "it scores them again"
            )
        return cls.from_json(run.facts["request"])

    @classmethod
    def from_json(cls, content: Details) -> Request:
        lists = {name: tuple(content.get(name, ())) for name in ("metrics", "roots", "options")}
        return cls(**{**content, **lists})


@contextmanager
def temporary_network_settings(device: str, precision: str, batch: int | None) -> Iterator[None]:
    """Set the environment variables of the networks, which workers inherit, and restore them afterwards."""
    chosen = {
        settings.DEVICE: device,
        settings.PRECISION: precision,
        settings.BATCH: "" if batch is None else str(batch),
    }
    with temporary_environment_variables({name: value for name, value in chosen.items() if value}):
        settings.check_all_settings()
        gpu_number_for_decoding()
        yield


def find_executor(name: str, address: str = "", workers: int | None = None) -> Executor | None:
    """The executor of this name; None for the one that a run has by default."""
    if name not in EXECUTORS:
        raise UsageError(f"--executor takes {' or '.join(EXECUTORS)}, not {name!r}")
    if name == "ray":
        from revisit.engine.ray_executor import OnRay

        return OnRay(address, workers)
    if address:
        raise UsageError("--address is that of a Ray cluster; add --executor ray")
    return None


def rescore_run_folder(path: Path) -> Run:
    """A run, scored again as it was asked for."""
    run = Run(path)
    return rescore(Request.of_run(run).plan(judge=run.facts["protocol"].get("judge")), path)


def idle_judge_warning(plan: Plan) -> str:
    """A sentence where a judge was given and nothing of the plan asks it; else nothing."""
    observers = plan.observers
    if observers.judge is None or any(asks_judge(check, observers) for check in plan.checks):
        return ""
    ids = plan.suite.default_metrics(judge=True)
    askers = [id for id in ids if asks_judge(METRICS[id], observers)]
    hint = f"; -m {','.join(askers)} would ask it" if askers else f" by the suite {plan.suite.id}"
    return f"the judge is asked nothing{hint}"


def warn_or_raise_if_unavailable(plan: Plan, warned: Callable[[str], None] = warnings.warn) -> None:
    """Say what of the plan's set cannot run here; raise MissingPrerequisite where nothing is left but `lite`.

    A judge is something beyond `lite`, too: with one the run goes on.
    """
    availability = plan.availability
    if not availability.missing:
        return
    if not availability.running and plan.observers.judge is None:
        raise MissingPrerequisite(availability.missing_observers_sentence)
    warned(availability.missing_observers_sentence)


def load_observer_set(name: str, judge: Details | None = None) -> ObserverSet:
    """The observers of a set, by its name or its YAML file."""
    return ObserverSet(read_set(name).id, load_roles(name, judge=judge is not None), judge)


def recognise_suite(source: Path) -> Suite:
    """The first benchmark that knows the layout, or the folder suite.

    Raises
    ------
    UsageError
        Where a benchmark knows a folder in it: data and predictions of a benchmark side by side are no models.
    """
    benchmarks = [suite for suite in SUITES.values() if suite.id != "folder"]
    claimed = [suite for suite in benchmarks if suite.recognises(source)]
    if claimed:
        return claimed[0]
    folders = sorted(path for path in source.iterdir() if path.is_dir()) if source.is_dir() else []
    for suite in benchmarks:
        if parts := [folder for folder in folders if suite.recognises(folder)]:
            names, title = join_names([folder.name for folder in parts]), suite.card.get("title", suite.id)
            raise UsageError(
                f"{source} is no folder of models: it holds {names} in the layout of {title}; "
                f"evaluate {parts[-1]} (`revisit show {suite.id}` lists layouts and options), or add --suite folder to "
                "take everything here as plain clips"
            )
    return SUITES["folder"]


def is_run_folder(folder: Path) -> bool:
    """Whether a folder is a run directory."""
    facts = read_json_object_or_empty(folder / "run.json")
    return (folder / "plan.json").is_file() and {"suite", "protocol"} <= facts.keys()


def require_not_run_folder(source: Path) -> None:
    """Refuse a run directory in the place of clips."""
    if is_run_folder(source):
        raise UsageError(
            f"{source} is a run, no folder of clips: `revisit eval {source} --rescore` scores it again, and `revisit "
            "report`, `compare` and `table` read it"
        )


def require_out_separate_from_source(source: Path, out: Path) -> None:
    """Refuse a run directory that is the source, or a folder of it that is no run: clips and answers would mix."""
    source, out = source.resolve(), out.resolve()
    if out == source:
        raise UsageError(
            f"--out {out} is the source itself, where a run would write among the clips; choose another folder, such "
            f"as runs/{source.name}"
        )
    if out.is_relative_to(source) and out.is_dir() and any(out.iterdir()) and not is_run_folder(out):
        raise UsageError(
            f"--out {out} is a folder of the source, where a run would write among its files; choose a new folder, "
            "or one elsewhere"
        )


def replaced_answers_warning(out: Path, plan: Plan, request: Details) -> str:
    """A sentence on answers of the run in `out` that this call replaces or leaves out; nothing where it has none.

    Raises
    ------
    UsageError
        Where options of the suite differ, such as --reference, and clips are read or compared otherwise by them.
    """
    facts, earlier = read_json_object_or_empty(out / "run.json"), read_json_object_or_empty(out / "plan.json")
    before = facts.get("request") or {}
    if not earlier or before.get("source") != request["source"] or facts.get("adds"):
        return ""  # no run, that of another source, which is refused elsewhere, or one that calls add to
    _refuse_options_that_change_clips(out, plan, before, request, earlier)
    # As the earlier request was written: JSON has no tuples.
    now = {name: list(value) if isinstance(value, tuple) else value for name, value in request.items()}
    changed = [name for name in SETTINGS if name in before and now[name] != before[name]]
    if not changed:
        return _other_reading_warning(out, plan, earlier)
    asked = {check.id: plan.protocol_with_hash(check) for check in plan.checks}
    hashes = {**earlier.get("gates", {}), **earlier.get("metrics", {})}
    lost = sum(id not in asked for id in hashes)
    answered_anew = sum(id in asked and ("align" in changed or asked[id] != hash_) for id, hash_ in hashes.items())
    present = {case.id for case in plan.cases}
    clips = sum(entry["id"] not in present for entry in earlier.get("cases", ()))
    questions = f"of {count_and_noun(len(hashes), 'question')}"
    losses = [f"{lost} {questions} left out"] if lost else []
    losses += [f"{answered_anew} {questions} answered anew"] if answered_anew else []
    losses += [f"{clips} of {count_and_noun(len(earlier.get('cases', ())), 'clip')} left out"] if clips else []
    if not losses:
        return ""
    settings = ", ".join(
        f"{FLAGS.get(name, f'--{name}')} {_format_setting_value(before[name])} (now {_format_setting_value(now[name])})"
        for name in changed
    )
    return (
        f"{out} was made with {settings}: {', '.join(losses)}; the earlier command brings them back from the cache, "
        "and another --out keeps both"
    )


def _other_reading_warning(out: Path, plan: Plan, earlier: Details) -> str:
    """A sentence where clips of the run in `out` have other names now, as after a manifest was written beside them."""
    present = {case.id for case in plan.cases}
    names = {str(case.clip.path): case.id for case in plan.cases if not case.truth}
    paths = {entry["id"]: entry["clip"]["path"] for entry in earlier.get("cases", ()) if not entry.get("truth")}
    renamed = [f"{id} is {names[path]}" for id, path in paths.items() if id not in present and path in names]
    if not renamed:
        return ""
    return (
        f"{out} holds answers of another reading: {len(renamed)} of its {count_and_noun(len(paths), 'clip')} are "
        f"called otherwise now ({renamed[0]}), and their answers are replaced; another --out keeps both"
    )


def _refuse_options_that_change_clips(
    out: Path, plan: Plan, before: Details, request: Details, earlier: Details
) -> None:
    """Refuse other options of the suite where a clip of the earlier run has another truth by them, or another name."""
    old, new = (dict(option.split("=", 1) for option in one.get("options", ())) for one in (before, request))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    ids = {case.id for case in plan.cases}
    references = {
        entry["id"]: entry.get("reference_digest") for entry in earlier.get("cases", ()) if not entry.get("truth")
    }
    renamed = len(references.keys() - ids) if plan.partial is None else 0
    compared = sum(id in ids and digest != plan.references.get(id) for id, digest in references.items())
    if not names or not (renamed or compared):
        return
    of_clips = f"of its {count_and_noun(len(references), 'clip')} would be"
    effects = [f"{renamed} {of_clips} read otherwise"] if renamed else []
    effects += [f"{compared} {of_clips} compared with another truth or none"] if compared else []
    flags = {name: f"--{name} " if name in OWN_FLAGS else f"--option {name}=" for name in names}
    was, now = (
        " ".join(flag + shlex.quote(one[name]) if name in one else f"no {flag[:-1]}" for name, flag in flags.items())
        for one in (old, new)
    )
    raise UsageError(
        f"{out} holds a run with {was}, and this call has {now}: {' and '.join(effects)}; use the former to go on "
        "with that run, choose another --out to keep both, or --fresh to replace it"
    )


def _format_setting_value(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "all"
    return "none" if value in (None, "", {}) else str(value)
