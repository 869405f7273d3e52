"""The templates of pages, and small pages beside the report: they open from disk, and run no script but their own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import BytecodeCache, Environment
from markupsafe import Markup

from revisit.core.text import pluralize, printable_text
from revisit.results import display
from revisit.web.templates import Context, templates

STYLES = ("base.css", "tables.css", "standalone.css")


def _one_line(value: object) -> str:
    """A value as text; a mapping as its names and items."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    return str(value)


FILTERS = {
    "number": display.number,
    "signed": display.signed_number,
    "interval": display.interval_ends_text,
    "coverage": display.coverage_text,
    "missing": display.unscored_lines,
    "title_of_score": display.metric_title,
    "column_head": display.column_head,
    "arrow": display.arrow,
    "pluralize": pluralize,
    "one_line": _one_line,
}


def asset(name: str) -> str:
    """A style sheet or script of the report."""
    return (files("revisit.report") / "templates" / name).read_text(encoding="utf-8")


def page_templates(cache: BytecodeCache | None = None) -> Environment:
    """The templates of the report, which write numbers as all surfaces do."""
    environment = templates("revisit.report", cache)
    environment.filters.update(FILTERS)
    return environment


def standalone_page(template: str, title: str, scripts: Sequence[str], content: Context) -> tuple[str, str]:
    """The page of a template, in which all text is printable, and the policy that it is under."""
    style = "".join(map(asset, STYLES))
    script = "\n".join(map(asset, scripts))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{policy_hash(style)}'; script-src '{policy_hash(script)}'; "
        "base-uri 'none'; form-action 'self'"
    )
    environment = page_templates().overlay(
        finalize=lambda value: printable_text(value) if type(value) is str else value
    )
    page = environment.get_template(template)
    html = page.render(policy=policy, style=Markup(style), script=Markup(script), title=title, **content)
    return html, policy


def policy_hash(text: str) -> str:
    """The name under which a policy allows an inline script or style: the digest of its exact text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
