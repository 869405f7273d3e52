"""`revisit weights`: lists, fetches and verifies the weights of networks."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag_option, metric_option

app = Commands("List, fetch and verify the weights of networks.")
IDS = typer.Argument(None, help="Ids from `revisit weights list`; by default those chosen by the options.")
SET = typer.Option("", "--set", metavar="SET", help="Weights of an observer set, by name or as a YAML file.")
SUITE = typer.Option("", "--suite", help="Weights that a suite's metrics need, in the set (small by default).")
METRIC = metric_option("Weights that these metrics need, in the set (small by default)")
DEFAULT_SET = "small"
STALE_EVIDENCE = "evidence made with damaged files stays in the cache; to remove all of it: revisit cache prune --all"


def select_weights_ids(
    ids: list[str] | None, observer_set: str, suite: str, metric: list[str], *, everything: bool
) -> list[str]:
    """The ids that the arguments mean."""
    from revisit.core import UsageError
    from revisit.weights.lock import read_lock_entries, require_lock_entry

    lock = read_lock_entries()
    if ids:
        if observer_set or suite or metric:
            raise UsageError("give either ids or --set, --suite and --metric, not both")
        return [require_lock_entry(name).id for name in ids]
    if observer_set or suite or metric:
        from revisit.engine.availability import group_set_observers_by_weights

        used = group_set_observers_by_weights(observer_set or DEFAULT_SET, suite, metric)
        if not (suite or metric):
            return [name for name, one in lock.items() if observer_set in one.sets or name in used]
        if not used:
            raise UsageError(f"the chosen metrics need no weights in the set {observer_set or DEFAULT_SET!r}")
        return [require_lock_entry(name).id for name in used]
    if not everything:
        raise UsageError(
            "choose weights: ids, --set small, --suite NAME or --metric NAME; `revisit weights list` shows all"
        )
    return list(lock)


@app.command("list")
def list_weights(
    ids: list[str] = IDS, observer_set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """List weights with state, size, licence and who uses them."""
    from revisit.engine.availability import group_observers_by_weights
    from revisit.weights.pull import forecast_pull

    users = group_observers_by_weights()
    names = select_weights_ids(ids, observer_set, suite, metric, everything=True)
    rows = [weights_facts(name, users) for name in names]
    cells = []
    for row in rows:
        state = row["state"] if row["sources"] or row["state"] != "missing" else "missing (by hand only)"
        sets, observers = ", ".join(row["sets"]), ", ".join(row["used_by"])
        cells.append([row["id"], state, decimal_size_text(row["size"]), row["licence"], sets, observers])
    console.print_json_or_table(rows, ["id", "state", "size", "licence", "sets", "used by"], cells, json)
    if not json:
        installed = sum(row["state"] in ("here", "by hand") for row in rows)
        console.print_to_stderr(f"{installed} of {len(rows)} installed; {total_download_text(forecast_pull(names))}")


def weights_facts(name: str, users: dict[str, list[str]]) -> dict[str, Any]:
    """What there is to say about an entry of the lock."""
    from revisit.weights.lock import require_lock_entry
    from revisit.weights.weights_folder import find_local_weights, source_digest, weights_root

    one, local = require_lock_entry(name), find_local_weights(require_lock_entry(name))
    return {
        "id": name,
        "title": one.title,
        "state": "gated" if one.gated and local.state == "missing" else local.state,
        "path": str(weights_root() / name / one.files[0].becomes if isinstance(local, str) else local.first_file),
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
    offline: bool = flag_option("--offline", "Do not download; use only files on this machine."),
    again: bool = flag_option("--again", "Fetch installed weights again; files installed by hand are kept."),
    dry_run: bool = flag_option("--dry-run", "Show what would be fetched, with sizes and licences."),
    json: bool = JSON,
) -> None:
    """Fetch weights, verify them by digest and convert them once."""
    from revisit.weights.pull import forecast_pull, pull_weights

    names = select_weights_ids(ids, observer_set, suite, metric, everything=False)
    if dry_run:
        rows = forecast_pull(names, again=again)
        cells = [[row["id"], row["state"], download_size_text(row), row["licence"], row["source"]] for row in rows]
        console.print_json_or_table(rows, ["id", "state", "to fetch", "licence", "from"], cells, json)
        if not json:
            console.print_to_stderr(total_download_text(rows))
        return
    bar = Transfer()
    started = time.monotonic()
    with console.exit_on_interrupt(), closing(bar):
        outcomes = pull_weights(names, offline=offline, again=again, progress=bar, say=bar.print_line)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    console.print_to_stderr(*(f"revisit: {outcome.said}" for outcome in failed))
    if json:
        console.print_json([outcome.__dict__ for outcome in outcomes])
    else:
        count = sum(outcome.state == "pulled" for outcome in outcomes)
        counts = f"{count} pulled, {len(outcomes) - count - len(failed)} already installed, {len(failed)} failed"
        console.print_to_stderr(f"{counts} in {time.monotonic() - started:.0f} s")
    if replaced := [outcome.id for outcome in outcomes if outcome.mended]:
        console.print_to_stderr(f"replaced damaged files: {', '.join(replaced)}; {STALE_EVIDENCE}")
    raise typer.Exit(min((outcome.exit_code for outcome in failed), default=0))


@app.command()
def verify(
    ids: list[str] = IDS, observer_set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """Compare installed weights with their digests."""
    from revisit.weights.lock import read_lock_entries
    from revisit.weights.weights_folder import check_local_weights, ids_with_local_files, weights_root

    if selected := bool(ids or observer_set or suite or metric):
        names = select_weights_ids(ids, observer_set, suite, metric, everything=False)
    else:
        names = list(ids_with_local_files())
    results = list(map(check_local_weights, names))
    cells = [[result.id, result.state, result.said] for result in results]
    console.print_json_or_table([result.__dict__ for result in results], ["id", "state", "finding"], cells, json)
    if not selected:
        part = f"{len(results)} of {len(read_lock_entries())} weights that the lock names"
        console.print_to_stderr(f"verified what is in {weights_root()}: {part}")
    states = [result.state for result in results]
    if "damaged" in states:
        console.print_to_stderr(STALE_EVIDENCE)
    wrong = "damaged" in states or "outdated" in states
    raise typer.Exit(1 if wrong else 3 if "missing" in states else 0)


@app.command()
def path(
    name: str = typer.Argument(None, metavar="ID", help="An id; without it, the folder of all weights."),
    json: bool = JSON,
) -> None:
    """Print the folder of the weights."""
    from revisit.weights.lock import require_lock_entry
    from revisit.weights.weights_folder import file, weights_root

    folder = file(require_lock_entry(name).id) if name else weights_root()
    console.print_json_or_text({"path": str(folder)}, str(folder), json)


def decimal_size_text(count: int | None) -> str:
    """A number of bytes in a table."""
    if not count:
        return "unknown" if count is None else "nothing"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def download_size_text(row: dict[str, Any]) -> str:
    """What a pull would fetch for a row of its forecast."""
    return f"in the archive of {row['archive_of']}" if row["archive_of"] else decimal_size_text(row["bytes"])


def total_download_text(rows: list[dict[str, Any]]) -> str:
    """What a pull would fetch in all."""
    unknown = sum(row["bytes"] is None for row in rows)
    by_hand = sum(row["state"] == "by hand only" for row in rows)
    remarks = f", and {unknown} of unknown size" if unknown else ""
    remarks += f"; {by_hand} by hand only" if by_hand else ""
    return f"{decimal_size_text(sum(row['bytes'] or 0 for row in rows))} to fetch{remarks}"


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
        line = console.without_control_characters(f"{what}: {received / 1e6:.1f}{of} MB")
        if self.terminal:
            self.open = True
            typer.echo(f"\r\x1b[K{line}", err=True, nl=False)
        else:
            console.print_to_stderr(line)

    def print_line(self, text: str) -> None:
        """Print a line of its own."""
        self.close()
        console.print_to_stderr(text)

    def close(self) -> None:
        """Wipe the line that is written over."""
        if self.open:
            typer.echo("\r\x1b[K", err=True, nl=False)
            self.open = False
