"""Making or opening a labelling project, and starting its server."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from revisit.core import UsageError
from revisit.core.optional import import_optional
from revisit.core.text import convert_read_errors, count_and_noun
from revisit.labels import project as projects
from revisit.labels.app import RaterPages
from revisit.labels.label import read_label_files
from revisit.web.server import ListenAddress, require_token_if_public, serve_until_interrupted


@dataclass(frozen=True)
class ProjectRequest:
    """Options of `revisit annotate`."""

    runs: tuple[Path, ...]
    settings: projects.ProjectSettings = field(default_factory=projects.ProjectSettings)
    out: Path | None = None
    names: tuple[str, ...] = ()  # of raters
    gold: Path | None = None
    guide: Path | None = None
    store: str = ""
    raters: int | None = None  # of each item, where --raters says so; else all that are named


def open_or_make_project(
    request: ProjectRequest,
    progress: Callable[[int, int, str], None],
    warned: Callable[[str], None] = warnings.warn,
) -> projects.Project:
    """The project that is there, or a new one."""
    if not request.runs:
        raise UsageError("give a run, or the folder of a project")
    folder = request.out or (
        request.runs[0] if (request.runs[0] / projects.FILE).is_file() else request.runs[0] / "labels"
    )
    settings = request.settings
    if (folder / projects.FILE).is_file():
        project = projects.open_project(folder)
        others = replace(settings, raters=project.settings.raters)  # how many raters may change as it goes on
        has_settings = (
            replace(settings, raters=projects.RATERS) != projects.ProjectSettings() or request.gold or request.guide
        )
        if has_settings and others != project.settings:
            advice = "leave them out to continue it, or choose another --out"
            raise UsageError(f"{folder} was made with other settings; {advice}")
        return project
    if settings.of not in ("clips", "reference"):
        raise UsageError(f"--of must be clips or reference, not {settings.of!r}")
    if settings.sampling == "uncertain" and not settings.metric:
        raise UsageError("--sample uncertain needs --metric, the metric whose least certain clips come first")
    gold, guide = read_label_files([request.gold] if request.gold else []), ""
    if request.guide:
        with convert_read_errors(request.guide, "a text that raters can be shown"):
            guide = request.guide.read_text(encoding="utf-8-sig")
    project = projects.make_project(
        folder, request.runs, settings, gold=gold, guide=guide, progress=progress, warned=warned
    )
    return projects.set_rater_count(project, settings.raters, follows=request.raters is None)


def open_and_serve_project(
    request: ProjectRequest,
    where: ListenAddress,
    token: str,
    prepare: bool,
    say: Callable[[str], object],
    progress: Callable[[int, int, str], None],
    data: Callable[[dict[str, object]], object] | None = None,
    warned: Callable[[str], None] = warnings.warn,
) -> None:
    """Make or open the project, print the links, and serve until interrupted; `data` gets them instead of `say`.

    `warned` hears of clips that cannot be shown.
    """
    for module in ("starlette", "uvicorn"):
        import_optional(module, "annotate")
    require_token_if_public(where, token)
    token = token or secrets.token_urlsafe(24)
    project = open_or_make_project(request, progress, warned)
    store = project.open_store(request.store)
    links = [(name, store.add_rater(name)[1]) for name in request.names]
    if request.raters is not None:
        project = projects.set_rater_count(project, request.raters, follows=False)
    elif request.names and projects.FOLLOWS in project.facts:  # items go to all that were ever named
        project = projects.set_rater_count(project, len(store.raters()), follows=True)
    raters = project.settings.raters

    def announce_links(address: str) -> None:
        if data is not None:
            data({
                "project": str(project.folder), "items": len(project.items), "raters": raters,
                "admin": f"{address}/admin/enter/{token}",
                "links": {name: f"{address}/r/{link}" for name, link in links},
            })  # fmt: skip
            return
        say(f"project: {project.folder} ({len(project.items)} items, each for {count_and_noun(raters, 'rater')})")
        say(f"progress, links and files: {address}/admin/enter/{token}")
        for name, link in links:
            say(f"link for {name}: {address}/r/{link}")
        if not store.raters():
            say("there are no raters yet: add them on that page, or with --rater NAME")
        elif len(store.raters()) < raters:
            say(f"an item is done after {count_and_noun(raters, 'answer')}, and fewer raters are there: add some")

    if prepare:
        announce_links(f"http://{where.host}:{where.port}")
        return
    serve_until_interrupted(RaterPages(project, store, token).make_application(), where, token, announce_links)
