"""`revisit cache`: inspect and clean the evidence cache."""

from __future__ import annotations

import typer

from revisit.cli import console

app = typer.Typer(help="The evidence cache: path, info, verify, prune.", no_args_is_help=True, rich_markup_mode=None)
JSON = typer.Option(False, "--json", help="Print as JSON.")


@app.command()
def path(json: bool = JSON) -> None:
    """Print the folder of the evidence cache."""
    from revisit.engine.cache import cache_root

    console.data({"path": str(cache_root())}) if json else typer.echo(str(cache_root()))


@app.command()
def info(json: bool = JSON) -> None:
    """Count files and bytes."""
    from revisit.engine.cache import EvidenceCache, cache_root

    sizes = [file.stat().st_size for file in EvidenceCache(cache_root()).files()]
    if json:
        console.data({"path": str(cache_root()), "files": len(sizes), "bytes": sum(sizes)})
    else:
        typer.echo(f"{cache_root()}: {len(sizes)} pieces of evidence, {sum(sizes) / 1e6:.1f} MB")


@app.command()
def verify(json: bool = JSON) -> None:
    """Check all cached evidence and remove damaged files."""
    from revisit.engine.cache import EvidenceCache, cache_root

    cache = EvidenceCache(cache_root())
    damaged = [file.name for file in cache.files() if not cache.sound(file.stem)]
    if json:
        console.data({"removed": damaged})
    else:
        typer.echo(f"{len(damaged)} damaged pieces removed")
    raise typer.Exit(1 if damaged else 0)


@app.command()
def prune(
    to: str = typer.Option("", "--to", metavar="SIZE", help="Keep so much (such as 10GB), the evidence used last."),
    days: float = typer.Option(None, min=0, help="Keep evidence used in the last N days."),
    all: bool = typer.Option(False, "--all", help="Remove all evidence."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be removed, and remove nothing."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json: bool = JSON,
) -> None:
    """Remove cached evidence, all of it or what was not used for longest; it is made again when needed."""
    import sys

    from revisit.core import UsageError
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.pruning import size_of, unused

    if all == bool(to or days is not None):
        raise UsageError("say what to remove: --to SIZE and --days N keep what was used last, --all keeps nothing")
    found = unused(EvidenceCache(cache_root()), to=size_of(to) if to else None, days=days)
    freed, kept = sum(one.bytes for one in found.old), sum(one.bytes for one in found.kept)
    told = f"{len(found.old)} pieces of evidence ({freed / 1e6:.1f} MB); {len(found.kept)} stay ({kept / 1e6:.1f} MB)"
    torn = sum(one.bytes for one in found.torn)
    if found.torn:
        told += f"; and {len(found.torn)} unfinished files that a kill left ({torn / 1e6:.1f} MB)"
    facts = {"removed": len(found.old), "bytes": freed, "kept": len(found.kept), "kept_bytes": kept}
    facts |= {"torn": len(found.torn), "torn_bytes": torn}
    if dry_run:
        console.data({**facts, "dry_run": True}) if json else typer.echo(f"would remove {told}")
        return
    gone = [*found.old, *found.torn]
    if gone and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"this would remove {told}: pass --yes to do it, or --dry-run to look first")
        typer.confirm(f"Remove {told}?", abort=True, err=True)
    for one in gone:
        one.path.unlink(missing_ok=True)
    console.data(facts) if json else typer.echo(f"removed {told}")
