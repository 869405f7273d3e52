"""`revisit eval` and `plan`: score a dataset or a folder of videos, or say what that takes and decode nothing.

`run_evaluation` is what the suites' own commands evaluate with: progress, report and summary on a terminal.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console, options

if TYPE_CHECKING:
    from revisit.engine.costs import WorkForecast
    from revisit.engine.request import Request
    from revisit.results.run import Run


def eval_(
    ctx: typer.Context,
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    out: Path = options.out_option("Run directory; runs/<name of the source> by default."),
    limit: int = options.LIMIT,
    workers: int = options.WORKERS,
    executor: str = options.EXECUTOR,
    address: str = options.ADDRESS,
    fresh: bool = options.FRESH,
    rescore: bool = options.flag_option("--rescore", "SOURCE is a run: score it again from the cache, decode nothing."),
    align: str = options.ALIGN,
    layout: str = options.LAYOUT,
    reference: Path = options.REFERENCE,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    only: str = typer.Option("", help="judge: ask only what a judge is asked, and keep the other answers."),
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    device: str = typer.Option("", help="Device of networks: cpu, cuda:1, or cuda:0,cuda:1; the first GPU by default."),
    precision: str = typer.Option("", help="On a GPU: float32 for everything, or float16 also for LPIPS."),
    batch: int = typer.Option(None, min=1, help="Frames per batch on a GPU; as many as fit by default."),
    limits: str = typer.Option("", help="Limits for decoding, such as frames=5000,seconds=60,memory=2G."),
    report: bool = typer.Option(True, "--report/--no-report", help="Write the HTML report at the end."),
    show_all: bool = options.ALL,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Score a dataset or a folder of videos. The same command resumes.

    After a metric or a protocol changed, `--rescore` with the run answers again in seconds.
    """
    from revisit.engine.request import Request, find_executor, temporary_network_settings
    from revisit.media import Limits

    if rescore:
        allowed = ("source", "rescore", "report", "show_all", "json", "quiet")
        options.refuse_other_parameters(ctx, allowed, "--rescore, which takes everything from the run")
        raise typer.Exit(rescore_and_print(source, report=report, show_all=show_all, json=json))
    with temporary_network_settings(device, precision, batch):
        request = Request.from_options(
            source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth, only,
            layout, reference,
        )  # fmt: skip
        request = ask_for_layout(request, quiet=quiet or json)
        run = run_evaluation(
            request, out or request.default_run_folder, quiet=quiet, fresh=fresh, workers=workers,
            executor=find_executor(executor, address, workers), limits=Limits.parse(limits),
        )  # fmt: skip
    raise typer.Exit(write_report_and_print_summary(run, report=report, show_all=show_all, json=json, quiet=quiet))


def rescore_and_print(run_folder: Path, *, report: bool, show_all: bool, json: bool) -> int:
    """Score a finished run again from the cache, decode nothing, and print its summary; the exit code."""
    from revisit.engine.request import rescore_run_folder

    run = rescore_run_folder(run_folder)
    # No remark was printed before: all of them go with the summary.
    return write_report_and_print_summary(run, report=report, show_all=show_all, json=json, quiet=True)


def ask_for_layout(request: Request, *, quiet: bool = False) -> Request:
    """The request, with the layout that the user chose where two fit; as it was where nobody can be asked.

    Where nobody is asked, the reader's own remark names the layouts.
    """
    from revisit.datasets.clips import MANIFEST
    from revisit.datasets.folder.read import understand_layout
    from revisit.engine.request import recognise_suite

    source = Path(request.source)
    given = dict(option.split("=", 1) for option in request.options if "=" in option)
    plain = source.is_dir() and not (source / MANIFEST).is_file()
    if quiet or not plain or given.get("layout") or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return request
    if request.suite != "folder" and (request.suite != "auto" or recognise_suite(source).id != "folder"):
        return request
    understood = understand_layout(source, reference=given.get("reference", ""))
    choices = [reading for reading in understood.readings if reading.layout]
    if len(choices) < 2:
        return request
    console.print_to_stderr(f"{len(choices)} readings of {source.name} fit:")
    for number, reading in enumerate(choices, start=1):
        console.print_to_stderr(f"  {number}. {reading.size_text}, as {reading.layout}")
    number = 0
    while not 1 <= number <= len(choices):
        number = typer.prompt("Which one", default=1, type=int, err=True)
    chosen = choices[number - 1].layout
    console.print_to_stderr(f"--layout '{chosen}' says so next time")
    return replace(request, options=(*request.options, f"layout={chosen}"), suite="folder")


def plan(
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    limit: int = options.LIMIT,
    align: str = options.ALIGN,
    layout: str = options.LAYOUT,
    reference: Path = options.REFERENCE,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    workers: int = options.WORKERS,
    json: bool = options.JSON,
) -> None:
    """Show what an evaluation would do, and what is already done."""
    from revisit.core.text import count_and_noun
    from revisit.engine.availability import observed_by_sets_text
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.costs import forecast_judge_usage, forecast_work
    from revisit.engine.request import Request, idle_judge_warning

    request = Request.from_options(
        source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth,
        layout=layout, reference=reference,
    )  # fmt: skip
    selection = request.chosen_judge()
    work = request.plan(judge=selection.facts if selection else None)
    cache = EvidenceCache(cache_root())
    asking = forecast_judge_usage(work, cache, selection) if selection else None
    missing = [key for key in work.tasks if key not in cache]
    takes = forecast_work(work, missing, cache, workers)
    if json:
        facts = {"evidence": len(work.tasks), "missing": len(missing), "forecast": asdict(takes)}
        console.print_json({**work.as_json(), **facts, **({"judge": asdict(asking)} if asking else {})})
        return
    models = Counter(case.model for case in work.cases)
    console.print_table(["model", "cases"], [[model, str(n)] for model, n in sorted(models.items())])
    needed = Counter(task.observer for _, _, task in work.tasks.values())
    todo = Counter(work.tasks[key][2].observer for key in missing)
    rows = [[name, str(count), str(count - todo[name])] for name, count in sorted(needed.items())]
    console.print_table(["observer", "clips", "already observed"], rows)
    console.print_to_stderr(
        f"suite {work.suite.id}, protocol {work.protocol}, set {work.observers.id}, observers "
        f"{observed_by_sets_text(work.as_json())}: {count_and_noun(len(work.cases), 'case')} x "
        f"{len(work.metrics)} metrics; {count_and_noun(takes.clips, 'clip')} to decode, once each"
    )
    console.print_to_stderr(*filter(None, [work.availability.missing_observers_sentence]), *_forecast_sentences(takes))
    if asking and selection:
        usage = f"judge {selection.judge.facts.get('model')}: {asking.as_sentence()}"
        console.print_to_stderr(idle_judge_warning(work) or usage)
        if asking.exceeds(selection.settings.budget):
            console.print_to_stderr("that is more than the judge's budget: the run will stop there, and can be resumed")
    clips = [case.id for case in work.cases if not case.truth]  # the truth has no reference, nor needs one
    reasons = Counter(reason for id in clips for reason in {*work.wanted[id].absent.values()})
    for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], str(one[0]))):
        console.print_to_stderr(f"{count} of {count_and_noun(len(clips), 'clip')}: {reason}")
    console.print_notes(*work.remarks)
    console.print_to_stderr(*(f"unreadable: {name}: {why}" for name, why in work.unreadable.items()))
    for entry in work.rejected:
        console.print_to_stderr(f"{'missing' if entry.missing else 'rejected'}: {entry.id}: {entry.reason}")


def _forecast_sentences(takes: WorkForecast) -> list[str]:
    """What the work takes here, in sentences; none where nothing is left to decode."""
    from revisit.core.text import count_and_noun
    from revisit.media.limits import format_size

    if not takes.clips:
        return []
    workers = count_and_noun(takes.workers, "worker") if takes.workers else "this process"
    size = f", pictures of {takes.megapixels:.2f} megapixels" if takes.megapixels else ""
    guess = f"; never ran here, and guessed: {', '.join(takes.guessed)}" if takes.guessed else ""
    free = "" if takes.memory_free is None else f" of {format_size(round(takes.memory_free))} free"
    temporary = f"; {format_size(round(takes.temporary))} of temporary files" if takes.temporary else ""
    wall, processor = map(_rounded_duration_text, (takes.wall_seconds, takes.processor_seconds))
    sentences = [
        f"time: about {wall} with {workers} ({processor} of one processor), by earlier runs here{size}{guess}",
        f"memory: about {format_size(round(takes.memory))}{free}",
        f"disk: about {format_size(round(takes.disk))} of {format_size(round(takes.disk_free))} free{temporary}",
    ]
    if takes.memory_free is not None and takes.memory > takes.memory_free:
        sentences.append("that is more memory than is free: use fewer --workers")
    if takes.disk > takes.disk_free:
        sentences.append("that is more than the disk has: free some, or set REVISIT_CACHE to another one")
    return sentences


def _rounded_duration_text(seconds: float) -> str:
    """In words, as far as a guess goes."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(1, seconds):.0f} s"


def run_evaluation(request: Request, out: Path, *, quiet: bool = False, command: str = "", **settings: Any) -> Run:
    """The finished run; `settings` go to the engine."""
    from revisit.engine.cache import cache_limit_bytes_from_environment, cache_over_limit_warning, cache_root

    limit = cache_limit_bytes_from_environment()
    command = command or shlex.join(["revisit", *sys.argv[1:]])
    note = (lambda _: None) if quiet else console.print_notes
    display = console.make_progress_display(quiet)
    with console.exit_on_interrupt():
        run = request.run(out, note, console.print_to_stderr, progress=display, command=command, **settings)
    if limit is not None and (over := cache_over_limit_warning(cache_root(), limit)):
        note(over)
    return run


def write_report_and_print_summary(
    run: Run, *, report: bool = True, show_all: bool = False, json: bool = False, quiet: bool = False
) -> int:
    """Write the page and print the summary; the exit code."""
    if report:
        from revisit.report.write_html import write_report

        page = write_report(run)
    if json:
        console.print_json(run.summary)
    else:
        from revisit.cli.run_summary import print_file_notes, print_run_summary

        printed = () if quiet else run.plan["remarks"]  # before the work
        notes = [note for note in run.summary.get("notes", ()) if note not in printed]
        print_run_summary({**run.summary, "notes": notes}, show_all, run.path)
        print_file_notes(run.plan, run.facts["notes"])
    if report:
        console.print_to_stderr(f"report: {page}")
    return run.exit_code
