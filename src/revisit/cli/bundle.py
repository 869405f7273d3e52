"""`revisit bundle`: runs to hand in, to check, and to show on a leaderboard of static pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, RUN, flag_option, out_option

if TYPE_CHECKING:
    from revisit.runs.bundle_check import BundleCheck

app = Commands("Pack runs to hand in, check them, and publish a leaderboard.")


@app.command("write")
def write_run_bundle(
    run: Path = RUN, out: Path = out_option("File to write; <run>.zip by default."), json: bool = JSON
) -> None:
    """Put a run and the evidence behind its scores into one file. No path of this machine goes in, and no video."""
    from revisit.results.run import Run
    from revisit.runs.bundles import write_bundle

    path = write_bundle(Run(run), out or Path(f"{run.resolve().name}.zip"))
    console.print_json_or_text({"file": str(path), "bytes": path.stat().st_size}, str(path), json)


@app.command("check")
def check_bundles(
    bundles: list[Path] = typer.Argument(help="Bundles."),
    json: bool = JSON,
) -> None:
    """Score bundles again, and look for all that was planned. Exit code 1 where it differs, 3 where that is open."""
    from dataclasses import asdict

    checks = {str(path): _check_even_damaged_bundle(path) for path in bundles}
    if json:
        console.print_json({name: {"state": result.state, **asdict(result)} for name, result in checks.items()})
    else:
        for name, result in checks.items():
            _print_bundle_check(name, result)
    states = {result.state for result in checks.values()}
    raise typer.Exit(1 if "does not hold" in states else 3 if "holds in part" in states else 0)


def _check_even_damaged_bundle(path: Path) -> BundleCheck:
    """What came of a check; a damaged bundle does not hold."""
    from revisit.runs.bundle_check import BundleCheck, check_bundle
    from revisit.runs.bundles import DamagedBundle

    try:
        return check_bundle(path)
    except DamagedBundle as error:
        return BundleCheck(0, problems=(str(error),))


def _print_bundle_check(name: str, checked: BundleCheck) -> None:
    """Print what came of a check, with at most ten problems."""
    from revisit.core.text import count_and_noun

    counts = f"{checked.scores} of {checked.planned} planned answers came out again"
    console.print_lines(f"{name}: {checked.state}; {counts}")
    for why, count in checked.unchecked.items():
        console.print_to_stderr(f"not checked: {why} ({count_and_noun(count, 'answer')})")
    console.print_notes(*checked.remarks)
    console.print_first_lines_to_stderr([f"differs: {problem}" for problem in checked.problems], 10)


@app.command("site")
def write_leaderboard_site(
    bundles: list[Path] = typer.Argument(help="Bundles."),
    out: Path = out_option("Folder for the pages.", Path("leaderboard")),
    published: bool = flag_option("--published", "With the papers' tables, as protocols of their own."),
    checked: bool = typer.Option(True, "--check/--no-check", help="Score every bundle again first."),
    json: bool = JSON,
) -> None:
    """Write a static leaderboard, a row per model and protocol. Ranks have intervals; datasets differ by content."""
    from revisit.core import SUITES, UsageError
    from revisit.report.site import boards_of_bundles, write_site
    from revisit.runs.bundle_check import check_bundle
    from revisit.runs.bundles import read_bundle

    contents = [read_bundle(path) for path in bundles]
    if len({bundle.name for bundle in contents}) < len(contents):
        raise UsageError("two bundles have one name; rename one of the files")
    checks = {bundle.name: check_bundle(bundle.path) for bundle in contents} if checked else {}
    for name, result in checks.items():
        if result.problems:
            raise UsageError(f"{name} does not hold ({result.problems[0]}); leave it out or see `revisit bundle check`")
        for metric, why in result.not_checked.items():
            console.print_to_stderr(f"{name}: {metric} is shown as not checked: {why}")
    suites = dict.fromkeys(bundle.about["suite"] for bundle in contents) if published else ()
    tables = [SUITES[suite].published for suite in suites if suite in SUITES]
    page = write_site(contents, out, [board for table in tables if table is not None for board in table(False)], checks)
    rows = [board.as_json() for board in boards_of_bundles(contents, checks)]
    console.print_json_or_text({"file": str(page), "boards": rows}, str(page), json)
