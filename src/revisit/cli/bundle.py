"""`revisit bundle`: runs to hand in, to check, and to show on a leaderboard of static pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, RUN, flag, out_option

if TYPE_CHECKING:
    from revisit.runs.bundle_check import BundleCheck

app = Commands("Pack runs to hand in, check them, and publish a leaderboard.")


@app.command("write")
def write(run: Path = RUN, out: Path = out_option("File to write; <run>.zip by default."), json: bool = JSON) -> None:
    """Put a run and the evidence behind its scores into one file. No path of this machine goes in, and no video."""
    from revisit.core import load_all
    from revisit.results.run import Run
    from revisit.runs.bundles import write_bundle

    load_all()
    path = write_bundle(Run(run), out or Path(f"{run.resolve().name}.zip"))
    console.print_result({"file": str(path), "bytes": path.stat().st_size}, str(path), json)


@app.command("check")
def check(
    bundles: list[Path] = typer.Argument(help="Bundles."),
    json: bool = JSON,
) -> None:
    """Score bundles again, and look for all that was planned. Exit code 1 where it differs, 3 where that is open."""
    from dataclasses import asdict

    from revisit.core import load_all

    load_all()
    checks = {str(path): _checked(path) for path in bundles}
    if json:
        console.print_json({name: {"state": result.state, **asdict(result)} for name, result in checks.items()})
    for name, result in checks.items() if not json else ():
        _print_check(name, result)
    states = {result.state for result in checks.values()}
    raise typer.Exit(1 if "does not hold" in states else 3 if "holds in part" in states else 0)


def _checked(path: Path) -> BundleCheck:
    """What came of a check; a damaged bundle does not hold."""
    from revisit.runs.bundle_check import BundleCheck, check_bundle
    from revisit.runs.bundles import DamagedBundle

    try:
        return check_bundle(path)
    except DamagedBundle as error:
        return BundleCheck(0, problems=(str(error),))


def _print_check(name: str, checked: BundleCheck) -> None:
    """Print what came of a check, with at most ten problems."""
    typer.echo(
        console.clean_text(
            f"{name}: {checked.state}; {checked.scores} of {checked.planned} planned answers came out again"
        )
    )
    for why, count in checked.unchecked.items():
        console.message(f"not checked: {why} ({count} {'answer' if count == 1 else 'answers'})")
    console.message(*(f"note: {remark}" for remark in checked.remarks))
    console.print_first([f"differs: {problem}" for problem in checked.problems], 10)


@app.command("site")
def site(
    bundles: list[Path] = typer.Argument(help="Bundles."),
    out: Path = out_option("Folder for the pages.", Path("leaderboard")),
    published: bool = flag("--published", "With the papers' tables, as protocols of their own."),
    checked: bool = typer.Option(True, "--check/--no-check", help="Score every bundle again first."),
    json: bool = JSON,
) -> None:
    """Write a static leaderboard, a row per model and protocol. Ranks have intervals; datasets differ by content."""
    from revisit.core import SUITES, UsageError, load_all
    from revisit.report.site import boards_of, write_site
    from revisit.runs.bundle_check import check_bundle
    from revisit.runs.bundles import read_bundle

    load_all()
    contents = [read_bundle(path) for path in bundles]
    if len({bundle.name for bundle in contents}) < len(contents):
        raise UsageError("two bundles have one name; rename one of the files")
    checks = {bundle.name: check_bundle(bundle.path) for bundle in contents} if checked else {}
    for name, result in checks.items():
        if result.problems:
            raise UsageError(
                f"{name} does not hold ({result.problems[0]}); leave it out, or see `revisit bundle check`"
            )
        for metric, why in result.not_checked.items():
            console.message(f"{name}: {metric} is shown as not checked: {why}")
    suites = dict.fromkeys(bundle.about["suite"] for bundle in contents) if published else ()
    tables = [SUITES[suite].published for suite in suites if suite in SUITES]
    boards = [board for published_boards in tables if published_boards is not None for board in published_boards(False)]
    page = write_site(contents, out, boards, checks)
    console.print_result(
        {"file": str(page), "boards": [board.as_json() for board in boards_of(contents, checks)]}, str(page), json
    )
