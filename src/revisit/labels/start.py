"""Starting: a project from what was asked, or the one that is there, and its server."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from revisit.core import UsageError
from revisit.labels.app import Pages
from revisit.labels.label import read_labels
from revisit.labels.project import FILE, Project, Settings, make, open_project
from revisit.labels.store import Store
from revisit.web.server import Where, checked, needs, serve


@dataclass(frozen=True)
class Wish:
    """What was asked on the command line."""

    runs: tuple[Path, ...]
    settings: Settings = field(default_factory=Settings)
    out: Path | None = None
    names: tuple[str, ...] = ()  # of raters
    gold: Path | None = None
    guide: Path | None = None
    store: str = ""


def project_of(wish: Wish, progress: Callable[[int, int, str], None]) -> Project:
    """The project that is there, or a new one."""
    if not wish.runs:
        raise UsageError("give a run, or the folder of a project")
    folder = wish.out or (wish.runs[0] if (wish.runs[0] / FILE).is_file() else wish.runs[0] / "labels")
    settings = wish.settings
    if (folder / FILE).is_file():
        found = open_project(folder)
        asked = settings != Settings() or wish.gold is not None or wish.guide is not None
        if asked and settings != found.settings:
            raise UsageError(
                f"{folder} was made with other settings; leave them out to continue it, or choose another --out"
            )
        return found
    if settings.of not in ("clips", "reference"):
        raise UsageError(f"--of must be clips or reference, not {settings.of!r}")
    if settings.sampling == "uncertain" and not settings.metric:
        raise UsageError("--sample uncertain needs --metric, the metric whose least certain clips come first")
    gold = read_labels([wish.gold]) if wish.gold else []
    guide = wish.guide.read_text(encoding="utf-8") if wish.guide else ""
    return make(folder, wish.runs, settings, gold=gold, guide=guide, progress=progress)


def start(
    wish: Wish,
    where: Where,
    token: str,
    prepare: bool,
    say: Callable[[str], object],
    progress: Callable[[int, int, str], None],
) -> None:
    """Make or open the project, print the links, and serve until interrupted."""
    needs("starlette"), needs("uvicorn")
    checked(where, token)
    token = token or secrets.token_urlsafe(24)
    project = project_of(wish, progress)
    store = Store(wish.store or project.store, project.name)
    links = [(name, store.add_rater(name)[1]) for name in wish.names]

    def started(address: str) -> None:
        say(f"project: {project.folder} ({len(project.items)} items)")
        say(f"progress, links and files: {address}/admin/enter/{token}")
        for name, link in links:
            say(f"link for {name}: {address}/r/{link}")
        if not store.raters():
            say("there are no raters yet: add them on that page, or with --rater NAME")

    if prepare:
        started(f"http://{where.host}:{where.port}")
        return
    serve(Pages(project, store, token).application(), where, token, started)
