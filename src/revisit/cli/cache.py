"""`revisit cache`: inspect and clean the cache."""

from __future__ import annotations

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag_option

app = Commands("Show, verify and prune the cache of evidence.")


@app.command()
def path(json: bool = JSON) -> None:
    """Print the folder of the cache."""
    from revisit.engine.cache import cache_root

    console.print_json_or_text({"path": str(cache_root())}, str(cache_root()), json)


@app.command()
def info(json: bool = JSON) -> None:
    """Count files and bytes."""
    from revisit.engine import cache

    limit = cache.cache_limit_bytes_from_environment()
    files = {folder: cache.list_cache_files(cache.cache_root(), folder) for folder in cache.FOLDERS}
    folders = {name: {"files": len(some), "bytes": sum(file.bytes for file in some)} for name, some in files.items()}
    totals = {part: sum(facts[part] for facts in folders.values()) for part in ("files", "bytes")}
    bound = "" if limit is None else f"; {cache.LIMIT} is {cache.format_byte_size(limit)}"
    lines = [f"{cache.cache_root()}: {totals['files']} files, {cache.format_byte_size(totals['bytes'])}{bound}"]
    for folder, facts in folders.items():
        lines.append(f"  {folder:8} {facts['files']:8} files {cache.format_byte_size(facts['bytes']):>12}")
    content = {"path": str(cache.cache_root()), **totals, "folders": folders, "limit": limit}
    console.print_json_or_text(content, "\n".join(lines), json)


@app.command()
def verify(json: bool = JSON) -> None:
    """Check all cached evidence and remove damaged files."""
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.media.files import file_exists

    cache = EvidenceCache(cache_root())
    faulty = [file for file in cache.files() if not cache.verify_or_drop(file.stem)]
    damaged = [file.name for file in faulty if not file_exists(file)]
    console.print_json_or_text({"removed": damaged}, f"{len(damaged)} damaged pieces removed", json)
    console.print_to_stderr(*cache.problems.values())
    raise typer.Exit(1 if faulty else 0)


@app.command()
def prune(
    to: str = typer.Option("", metavar="SIZE", help="Keep so much (such as 10GB) of what was used last."),
    days: float = typer.Option(None, min=0, help="Keep what was used in the last N days."),
    everything: bool = flag_option("--all", "Remove all that can be made again."),
    dry_run: bool = flag_option("--dry-run", "Say what would be removed, and remove nothing."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json: bool = JSON,
) -> None:
    """Remove what was not used for longest.

    Down to REVISIT_CACHE_LIMIT, or as the options say. Evidence, converted networks, copies of clips for the browser
    and clips out of shards go, and are made again when needed; answers of judges and weights stay.
    """
    import sys

    from revisit.core import UsageError
    from revisit.engine import cache

    if everything and (to or days is not None):
        raise UsageError("--all keeps nothing, --to SIZE and --days N keep what was used last: say one of them")
    room = cache.parse_byte_size(to) if to else None
    if not (everything or to or days is not None):
        room = cache.cache_limit_bytes_from_environment()
        if room is None:
            raise UsageError(f"say what to keep: --to SIZE, --days N or {cache.LIMIT}=SIZE; or --all to keep nothing")
    files = cache.plan_pruning(cache.cache_root(), max_bytes=room, max_age_days=days)
    sizes = [sum(file.bytes for file in some) for some in (files.old, files.kept, files.torn)]
    old, kept, torn = map(cache.format_byte_size, sizes)
    text = f"{len(files.old)} pieces ({old}); {len(files.kept)} stay ({kept})"
    text += f"; and {len(files.torn)} unfinished files that a kill left ({torn})" if files.torn else ""
    facts = {"removed": len(files.old), "bytes": sizes[0], "kept": len(files.kept), "kept_bytes": sizes[1]}
    facts |= {"torn": len(files.torn), "torn_bytes": sizes[2]}
    if dry_run:
        console.print_json_or_text({**facts, "dry_run": True}, f"would remove {text}", json)
        return
    removals = [*files.old, *files.torn]
    if removals and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"this would remove {text}: pass --yes to do it, or --dry-run to look first")
        typer.confirm(f"Remove {text}?", abort=True, err=True)
    for file in removals:
        file.remove()
    console.print_json_or_text(facts, f"removed {text}", json)
