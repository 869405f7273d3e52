"""The HTML report: a folder that opens from disk, loads nothing from elsewhere and runs no script but its own.

Text from outside (file names, prompts, models, reasons, what a judge said) meets the page in two ways only: through
Jinja with autoescaping, and as JSON whose script writes it with `textContent`. What the list of clips needs is in the
page itself; each scene lies in a small file beside it, which is loaded when the scene is opened. Pages on disk may not
fetch files, so these are scripts that hold one text of JSON; the policy lets only our own script load them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from jinja2 import FileSystemBytecodeCache
from markupsafe import Markup

from revisit.core import import_registering_modules
from revisit.engine.leases import Claims
from revisit.engine.run_summary import CurrentResults
from revisit.media.files import atomic_write_path
from revisit.report import incremental
from revisit.report.page_data import page_content
from revisit.report.pages import RunPages
from revisit.report.standalone import csp_source_hash, page_templates, read_asset
from revisit.report.videos import Videos
from revisit.results.run import Run


def write_report(run: Run, *, copy_clips: bool = False, by: Mapping[str, Mapping[str, Any]] | None = None) -> Path:
    """Write RUN/report/index.html with its pictures and scenes beside it; return its path.

    With `copy_clips` the videos go into the folder too, so that it can be sent to someone. `by` holds tables of
    groups of clips (runs/group_by.py), by the expression that made them.
    """
    import_registering_modules()
    claims = Claims(run.path)
    try:
        with claims.hold_write_lock():  # several processes may have shared the run, and end at once
            return _write_report_files(run, copy_clips, by or {})
    finally:
        claims.close()


def _write_report_files(run: Run, copy_clips: bool, by: Mapping[str, Mapping[str, Any]]) -> Path:
    folder = run.path / "report"
    shutil.rmtree(folder / "clips", ignore_errors=True)
    (folder / "scenes").mkdir(parents=True, exist_ok=True)
    videos = Videos(folder, copy_clips)
    pages = RunPages(run, CurrentResults(run.results, run.summary, run.diagnosis), videos)
    basis, lines, missing = incremental.digest_shared_by_scenes(pages), run.lines, incremental.missing_unit_files(pages)
    there = incremental.addresses_of_page_files(folder)
    earlier = incremental.take_intact_scene_parts(folder, basis, there)
    parts: dict[str, incremental.ScenePart] = {}
    for key, scene in pages.scenes.items():
        made_from, part = incremental.scene_digest(pages, scene, lines, missing), earlier.get(key)
        if part is None or part.made_of != made_from or copy_clips:  # a clip is copied anew
            videos.used.clear()
            content = scene_script(pages.scene_content(key)).encode(errors="replace")
            (folder / "scenes" / f"{key}.js").write_bytes(content)
            rows = {case.id: pages.list_row(case) for case in scene.cases}  # while its pictures are in memory
            part = incremental.ScenePart(made_from, len(content), rows, tuple(videos.used))
        pages.rows.update({case.id: (pages.count_answers_with_truth(case), part.rows[case.id]) for case in scene.cases})
        parts[key] = part
    videos.used.clear()
    html, _ = page_html_and_policy(pages, by)
    pictures = {*videos.used, *(picture for part in parts.values() for picture in part.pictures)}
    incremental.remove_page_files(folder, there.difference(pictures, (f"scenes/{key}.js" for key in parts)))
    with atomic_write_path(folder / "index.html") as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    if not copy_clips:
        incremental.write_scene_parts(folder, basis, parts)
    return folder / "index.html"


def page_html_and_policy(
    pages: RunPages, by: Mapping[str, Mapping[str, Any]], live: Mapping[str, object] | None = None
) -> tuple[str, str]:
    """The page, and the policy that it is under. `live` is what a server says of a run that may still be going."""
    style = "".join(map(read_asset, ("base.css", "tables.css", "report.css")))
    style += (files("revisit.web") / "static" / "player.css").read_text(encoding="utf-8")
    scripts = ("common.js", "sort.js", "list.js", "scene.js", *(("live.js",) if live is not None else ()))
    player = (files("revisit.web") / "static" / "player.js").read_text(encoding="utf-8")
    script = "\n".join([player, *map(read_asset, scripts)])
    # 'self' covers a page on a web server, `file:` one on disk, where browsers do not agree on what 'self' is.
    # 'strict-dynamic': the one script that is allowed by its digest may load the scenes, and no markup may.
    policy = (
        f"default-src 'none'; img-src 'self' file: data:; media-src 'self' file:; style-src "
        f"'{csp_source_hash(style)}'; "
        f"script-src '{csp_source_hash(script)}' 'strict-dynamic'; "
        f"connect-src '{'none' if live is None else 'self'}'; base-uri 'none'; form-action 'none'"
    )
    content = {
        **page_content(pages, by),
        "live": live,
        "files": "files" if live is not None else "..",
        "index": json_for_script({**pages.index_content(), "live": live}),
    }
    page = page_templates(_template_cache_if_writable()).get_template("page.html")
    return page.render(policy=policy, style=Markup(style), script=Markup(script), **content), policy


def scene_script(content: Any) -> str:
    """A script that hands one text of JSON to the page; a text, so that no name in it can mean anything to a script."""
    return f"revisitScene({json_for_script(json.dumps(content, ensure_ascii=False, allow_nan=False))});\n"


def json_for_script(content: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor be taken for markup or code."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _template_cache_if_writable() -> FileSystemBytecodeCache | None:
    """Compiled templates lie where Python keeps compiled modules, if it may keep them: to compile takes longest."""
    place = Path(cache_from_source(__file__)).parent
    may = not sys.dont_write_bytecode and os.access(place, os.W_OK)
    return FileSystemBytecodeCache(str(place), "page-%s.cache") if may else None
