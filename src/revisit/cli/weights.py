"""`revisit weights`: lists, fetches and verifies the weights of networks."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

import typer

from revisit.cli import console

app = typer.Typer(help="Weights of networks: list, pull, verify, path.", no_args_is_help=True, rich_markup_mode=None)
IDS = typer.Argument(None, help="Ids from `revisit weights list`; by default those chosen by the options.")
SET = typer.Option("", "--set", help="Weights of an observer set: a name from `revisit list sets`, or a YAML file.")
SUITE = typer.Option("", "--suite", help="Weights that a suite's metrics need, in the set (small by default).")
METRIC = typer.Option([], "--metric", "-m", help="Weights that a metric needs, in the set (small by default).")
JSON = typer.Option(False, "--json", help="Print as JSON.")
DEFAULT_SET = "small"
STALE_EVIDENCE = (
    "evidence made with damaged files is still in the cache; to remove all of it: revisit cache prune --all"
)


def chosen(ids: list[str] | None, set: str, suite: str, metric: list[str], *, everything: bool) -> list[str]:
    """The ids that the arguments mean."""
    from revisit.core import UsageError
    from revisit.weights.lock import entries, entry

    known = entries()
    if ids:
        if set or suite or metric:
            raise UsageError("give either ids or --set, --suite and --metric, not both")
        return [entry(id).id for id in ids]
    if suite or metric:
        from revisit.engine.availability import weights_used

        used = weights_used(set or DEFAULT_SET, suite, metric)
        if not used:
            raise UsageError(f"the chosen metrics need no weights in the set {set or DEFAULT_SET!r}")
        return [entry(id).id for id in used]
    if set:
        from revisit.engine.availability import weights_used

        used = weights_used(set)
        return [id for id, one in known.items() if set in one.sets or id in used]
    if not everything:
        raise UsageError(
            "choose weights: ids, --set small, --suite NAME or --metric NAME; `revisit weights list` shows all"
        )
    return list(known)


@app.command("list")
def list_(
    ids: list[str] = IDS, set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """List weights: whether they are installed, size, licence, and the observers that use them."""
    from revisit.engine.availability import users_of_weights
    from revisit.weights.pull import forecast

    users = users_of_weights()
    rows = [facts(id, users) for id in chosen(ids, set, suite, metric, everything=True)]
    if json:
        console.data(rows)
        return
    shown = [
        [
            row["id"],
            row["state"] if row["sources"] or row["state"] != "missing" else "missing (by hand only)",
            amount(row["size"]),
            row["licence"],
            ", ".join(row["sets"]),
            ", ".join(row["used_by"]),
        ]
        for row in rows
    ]
    console.table(["id", "state", "size", "licence", "sets", "used by"], shown)
    here = sum(row["state"] in ("here", "by hand") for row in rows)
    console.message(f"{here} of {len(rows)} installed; {to_fetch(forecast([row['id'] for row in rows]))}")


def facts(id: str, users: dict[str, list[str]]) -> dict[str, Any]:
    """What there is to say about an entry of the lock."""
    from revisit.weights.directories import look, root, source_digest
    from revisit.weights.lock import entry

    one, here = entry(id), look(entry(id))
    return {
        "id": id,
        "title": one.title,
        "state": "gated" if one.gated and here.state == "missing" else here.state,
        "path": str(here.first) if not isinstance(here, str) else str(root() / id / one.files[0].becomes),
        "size": one.size,
        "sha256": source_digest(one),
        "licence": one.licence,
        "gated": one.gated,
        "sets": list(one.sets),
        "needs": list(one.needs),
        "sources": [str(source) for source in one.sources],
        "used_by": users.get(id, []),
        "note": one.note,
    }


@app.command()
def pull(
    ids: list[str] = IDS,
    set: str = SET,
    suite: str = SUITE,
    metric: list[str] = METRIC,
    offline: bool = typer.Option(False, "--offline", help="Do not download; use only files on this machine."),
    again: bool = typer.Option(
        False, "--again", help="Fetch installed weights again; files installed by hand are kept."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what would be fetched, with sizes and licences."),
    json: bool = JSON,
) -> None:
    """Fetch weights, verify them by digest and convert them once."""
    from revisit.weights.pull import forecast
    from revisit.weights.pull import pull as fetch

    wanted = chosen(ids, set, suite, metric, everything=False)
    if dry_run:
        rows = forecast(wanted, again=again)
        if json:
            console.data(rows)
            return
        console.table(
            ["id", "state", "to fetch", "licence", "from"],
            [[r["id"], r["state"], download(r), r["licence"], r["source"]] for r in rows],
        )
        console.message(to_fetch(rows))
        return
    bar = Transfer()
    begun = time.monotonic()
    with console.resumable(), closing(bar):
        outcomes = fetch(wanted, offline=offline, again=again, progress=bar, say=bar.say)
    if json:
        console.data([outcome.__dict__ for outcome in outcomes])
    for outcome in outcomes:
        if outcome.state == "failed":
            console.message(f"revisit: {outcome.said}")
    failed = [outcome.exit_code for outcome in outcomes if outcome.state == "failed"]
    if not json:
        done = sum(outcome.state == "pulled" for outcome in outcomes)
        console.message(
            f"{done} pulled, {len(outcomes) - done - len(failed)} already installed, {len(failed)} failed in "
            f"{time.monotonic() - begun:.0f} s"
        )
    if mended := [outcome.id for outcome in outcomes if outcome.mended]:
        console.message(f"replaced damaged files: {', '.join(mended)}; {STALE_EVIDENCE}")
    raise typer.Exit(min(failed) if failed else 0)


@app.command()
def verify(
    ids: list[str] = IDS, set: str = SET, suite: str = SUITE, metric: list[str] = METRIC, json: bool = JSON
) -> None:
    """Compare installed weights with their digests."""
    from revisit.weights.directories import root
    from revisit.weights.lock import entries
    from revisit.weights.verify import on_this_machine
    from revisit.weights.verify import verify as check

    asked = bool(ids or set or suite or metric)
    wanted = chosen(ids, set, suite, metric, everything=False) if asked else on_this_machine()
    found = [check(id) for id in wanted]
    if json:
        console.data([one.__dict__ for one in found])
    else:
        console.table(["id", "state", "finding"], [[one.id, one.state, one.said] for one in found])
    if not asked:
        console.message(f"verified what is in {root()}: {len(found)} of {len(entries())} weights that the lock names")
    states = [one.state for one in found]
    if "damaged" in states:
        console.message(STALE_EVIDENCE)
    wrong = "damaged" in states or "outdated" in states
    raise typer.Exit(1 if wrong else 3 if "missing" in states else 0)


@app.command()
def path(
    id: str = typer.Argument(None, help="An id; without it, the folder of all weights."), json: bool = JSON
) -> None:
    """Print the folder of the weights."""
    from revisit.weights.directories import root
    from revisit.weights.local_files import file
    from revisit.weights.lock import entry

    found = file(entry(id).id) if id else root()
    console.data({"path": str(found)}) if json else typer.echo(str(found))


def amount(count: int | None) -> str:
    """A number of bytes in a table."""
    if not count:
        return "unknown" if count is None else "nothing"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def download(row: dict[str, Any]) -> str:
    """What a pull would fetch for a row of its forecast."""
    return f"in the archive of {row['archive_of']}" if row["archive_of"] else amount(row["bytes"])


def to_fetch(rows: list[dict[str, Any]]) -> str:
    """What a pull would fetch in all."""
    unknown = sum(row["bytes"] is None for row in rows)
    by_hand = sum(row["state"] == "by hand only" for row in rows)
    rest = f", and {unknown} of unknown size" if unknown else ""
    rest += f"; {by_hand} by hand only" if by_hand else ""
    return f"{amount(sum(row['bytes'] or 0 for row in rows))} to fetch{rest}"


class Transfer:
    """Progress of downloads: one line that is written over on a terminal, a line every few seconds elsewhere."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self.said, self.terminal, self.open = every, time.monotonic(), sys.stderr.isatty(), False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self.said < (0.1 if self.terminal else self.every):
            return
        self.said = now
        of = f" of {total / 1e6:.1f}" if total else ""
        line = console.clean(f"{what}: {done / 1e6:.1f}{of} MB")
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
