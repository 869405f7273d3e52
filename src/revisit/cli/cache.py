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
    days: float = typer.Option(None, min=0, help="Keep evidence used in the last N days."),
    all: bool = typer.Option(False, "--all", help="Remove all evidence."),
    json: bool = JSON,
) -> None:
    """Remove cached evidence; it is made again when needed."""
    import time

    from revisit.core import UsageError
    from revisit.engine.cache import EvidenceCache, cache_root

    if (days is None) != all:
        raise UsageError("say what to remove: --days N keeps what was used in the last N days, --all keeps nothing")
    limit = time.time() - (days or 0) * 86400
    removed = freed = 0
    for file in EvidenceCache(cache_root()).files():
        if all or max(file.stat().st_mtime, file.stat().st_atime) <= limit:
            freed += file.stat().st_size
            removed += 1
            file.unlink()
    if json:
        console.data({"removed": removed, "bytes": freed})
    else:
        typer.echo(f"{removed} pieces of evidence removed, {freed / 1e6:.1f} MB freed")
