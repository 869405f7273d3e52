"""`revisit weights`: lists, fetches and verifies the weights of networks."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag, metric_option

app = Commands("List, fetch and verify the weights of networks.")
IDS = typer.Argument(None, help="Ids from `revisit weights list`; by default those chosen by the options.")
SET = typer.Option(
    "", "--set", metavar="SET", help="Weights of an observer set: a name from `revisit list sets`, or a YAML file."
)
SUITE = typer.Option("", "--suite", help="Weights that a suite's metrics need, in the set (small by default).")
METRIC = metric_option("Weights that these metrics need, in the set (small by default)")
DEFAULT_SET = "small"
STALE_EVIDENCE = (
    "evidence made with damaged files is still in the cache; to remove all of it: revisit cache prune --all"
)


def select_ids(
    ids: list[str] | None, observer_set: str, suite: str, metric: list[str], *, everything: bool
) -> list[str]:
    """The ids that the arguments mean."""
    from revisit.core import UsageError
    from revisit.weights.lock import entries, entry

    lock = entries()
    if ids:
        if observer_set or suite or metric:
            raise UsageError("give either ids or --set, --suite and --metric, not both")
        return [entry(name).id for name in ids]
    if observer_set or suite or metric:
        from revisit.engine.availability import weights_used

        used = weights_used(observer_set or DEFAULT_SET, suite, metric)
        if not (suite or metric):
            return [name for name, one in lock.items() if observer_set in one.sets or name in used]
        if not used:
            raise UsageError(f"the chosen metrics need no weights in the set {observer_set or DEFAULT_SET!r}")
        return [entry(name).id for name in used]
    if not everything:
        raise UsageError(
            "choose weights: ids, --set small, --suite NAME or --metric NAME; `revisit weights list` shows all"
        )
    return list(lock)


@app.command("list")
def list_(
    ids: list[str] = IDS, observer_set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """List weights with state, size, licence and who uses them."""
    from revisit.engine.availability import users_of_weights
    from revisit.weights.pull import forecast

    users = users_of_weights()
    rows = [weights_row(name, users) for name in select_ids(ids, observer_set, suite, metric, everything=True)]
    if json:
        console.print_json(rows)
        return
    cells = [
        [
            row["id"],
            row["state"] if row["sources"] or row["state"] != "missing" else "missing (by hand only)",
            size_text(row["size"]),
            row["licence"],
            ", ".join(row["sets"]),
            ", ".join(row["used_by"]),
        ]
        for row in rows
    ]
    console.print_table(["id", "state", "size", "licence", "sets", "used by"], cells)
    installed = sum(row["state"] in ("here", "by hand") for row in rows)
    console.message(f"{installed} of {len(rows)} installed; {total_text(forecast([row['id'] for row in rows]))}")


def weights_row(name: str, users: dict[str, list[str]]) -> dict[str, Any]:
    """What there is to say about an entry of the lock."""
    from revisit.weights.lock import entry
    from revisit.weights.weights_folder import find_local, root, source_digest

    one, local = entry(name), find_local(entry(name))
    return {
        "id": name,
        "title": one.title,
        "state": "gated" if one.gated and local.state == "missing" else local.state,
        "path": str(local.first) if not isinstance(local, str) else str(root() / name / one.files[0].becomes),
        "size": one.size,
        "sha256": source_digest(one),
        "licence": one.licence,
        "gated": one.gated,
        "sets": list(one.sets),
        "needs": list(one.needs),
        "sources": [str(source) for source in one.sources],
        "used_by": users.get(name, []),
        "note": one.note,
    }


@app.command()
def pull(
    ids: list[str] = IDS,
    observer_set: str = SET,
    suite: str = SUITE,
    metric: list[str] = METRIC,
    offline: bool = flag("--offline", "Do not download; use only files on this machine."),
    again: bool = flag("--again", "Fetch installed weights again; files installed by hand are kept."),
    dry_run: bool = flag("--dry-run", "Show what would be fetched, with sizes and licences."),
    json: bool = JSON,
) -> None:
    """Fetch weights, verify them by digest and convert them once."""
    from revisit.weights.pull import forecast
    from revisit.weights.pull import pull as fetch

    names = select_ids(ids, observer_set, suite, metric, everything=False)
    if dry_run:
        rows = forecast(names, again=again)
        if json:
            console.print_json(rows)
            return
        console.print_table(
            ["id", "state", "to fetch", "licence", "from"],
            [[r["id"], r["state"], download_text(r), r["licence"], r["source"]] for r in rows],
        )
        console.message(total_text(rows))
        return
    bar = Transfer()
    started = time.monotonic()
    with console.resumable(), closing(bar):
        outcomes = fetch(names, offline=offline, again=again, progress=bar, say=bar.say)
    if json:
        console.print_json([outcome.__dict__ for outcome in outcomes])
    for outcome in outcomes:
        if outcome.state == "failed":
            console.message(f"revisit: {outcome.said}")
    failed = [outcome.exit_code for outcome in outcomes if outcome.state == "failed"]
    if not json:
        count = sum(outcome.state == "pulled" for outcome in outcomes)
        console.message(
            f"{count} pulled, {len(outcomes) - count - len(failed)} already installed, {len(failed)} failed in "
            f"{time.monotonic() - started:.0f} s"
        )
    if replaced := [outcome.id for outcome in outcomes if outcome.mended]:
        console.message(f"replaced damaged files: {', '.join(replaced)}; {STALE_EVIDENCE}")
    raise typer.Exit(min(failed) if failed else 0)


@app.command()
def verify(
    ids: list[str] = IDS, observer_set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """Compare installed weights with their digests."""
    from revisit.weights.lock import entries
    from revisit.weights.verify import installed_ids
    from revisit.weights.verify import verify as check
    from revisit.weights.weights_folder import root

    selected = bool(ids or observer_set or suite or metric)
    names = select_ids(ids, observer_set, suite, metric, everything=False) if selected else installed_ids()
    results = [check(name) for name in names]
    if json:
        console.print_json([result.__dict__ for result in results])
    else:
        console.print_table(["id", "state", "finding"], [[result.id, result.state, result.said] for result in results])
    if not selected:
        console.message(f"verified what is in {root()}: {len(results)} of {len(entries())} weights that the lock names")
    states = [result.state for result in results]
    if "damaged" in states:
        console.message(STALE_EVIDENCE)
    wrong = "damaged" in states or "outdated" in states
    raise typer.Exit(1 if wrong else 3 if "missing" in states else 0)


@app.command()
def path(
    name: str = typer.Argument(None, metavar="ID", help="An id; without it, the folder of all weights."),
    json: bool = JSON,
) -> None:
    """Print the folder of the weights."""
    from revisit.weights.local_files import file
    from revisit.weights.lock import entry
    from revisit.weights.weights_folder import root

    folder = file(entry(name).id) if name else root()
    console.print_result({"path": str(folder)}, str(folder), json)


def size_text(count: int | None) -> str:
    """A number of bytes in a table."""
    if not count:
        return "unknown" if count is None else "nothing"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def download_text(row: dict[str, Any]) -> str:
    """What a pull would fetch for a row of its forecast."""
    return f"in the archive of {row['archive_of']}" if row["archive_of"] else size_text(row["bytes"])


def total_text(rows: list[dict[str, Any]]) -> str:
    """What a pull would fetch in all."""
    unknown = sum(row["bytes"] is None for row in rows)
    by_hand = sum(row["state"] == "by hand only" for row in rows)
    remarks = f", and {unknown} of unknown size" if unknown else ""
    remarks += f"; {by_hand} by hand only" if by_hand else ""
    return f"{size_text(sum(row['bytes'] or 0 for row in rows))} to fetch{remarks}"


class Transfer:
    """Progress of downloads: one line that is written over on a terminal, a line every few seconds elsewhere."""

    def __init__(self) -> None:
        self.printed_at, self.terminal, self.open = time.monotonic(), sys.stderr.isatty(), False

    def __call__(self, what: str, received: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self.printed_at < (0.1 if self.terminal else 5):
            return
        self.printed_at = now
        of = f" of {total / 1e6:.1f}" if total else ""
        line = console.clean_text(f"{what}: {received / 1e6:.1f}{of} MB")
        if self.terminal:
            self.open = True
            typer.echo(f"\r\x1b[K{line}", err=True, nl=False)
        else:
            console.message(line)

    def say(self, text: str) -> None:
        """Print a line of its own."""
        self.close()
        console.message(text)

    def close(self) -> None:
        """Wipe the line that is written over."""
        if self.open:
            typer.echo("\r\x1b[K", err=True, nl=False)
            self.open = False
