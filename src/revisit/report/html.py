"""The HTML report: a folder that opens from disk, loads nothing from elsewhere and runs no script but its own.

Text from outside (file names, prompts, models, reasons) meets the page in two ways only: through
Jinja with autoescaping, and as JSON in a data block whose script writes it with `textContent`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from revisit.media.files import replacing
from revisit.report.clips import clips
from revisit.report.data import gate_titles, metric_cards, page
from revisit.report.videos import Videos
from revisit.results.run import Run

QUESTION = "When the camera looks away and comes back, is the world still there?"


def write_report(run: Run, *, copy_clips: bool = False, by: Mapping[str, Mapping[str, Any]] | None = None) -> Path:
    """Write RUN/report/index.html with its pictures beside it; return its path.

    With `copy_clips` the videos go into the folder too, so that it can be sent to someone. `by` holds tables of
    groups of clips (engine/by.py), by the expression that made them.
    """
    summary, facts = run.summary, run.facts
    folder = run.path / "report"
    for ours in ("frames", "clips"):
        shutil.rmtree(folder / ours, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    results, cards, gates = run.results, metric_cards(summary, facts), gate_titles(run)
    listed = clips(run, results, cards, gates, Videos(folder, copy_clips))
    html = _render(question=QUESTION, clips=data_block(listed), **page(run, results, cards, gates, by or {}))
    with replacing(folder / "index.html") as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return folder / "index.html"


def data_block(content: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor be taken for markup or code."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _render(**content: Any) -> str:
    style, script = _asset("report.css"), _asset("report.js")
    environment = Environment(
        loader=PackageLoader("revisit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # 'self' covers a page on a web server, `file:` one on disk, where browsers do not agree on what 'self' is.
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src 'self' file: data:",
            "media-src 'self' file:",
            f"style-src '{policy_hash(style)}'",
            f"script-src '{policy_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return environment.get_template("page.html").render(
        policy=policy, style=Markup(style), script=Markup(script), **content
    )


def _asset(name: str) -> str:
    return (files("revisit.report") / "templates" / name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """The name under which a policy allows an inline script or style: the digest of its exact text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
