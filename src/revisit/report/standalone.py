"""The templates of pages, and small pages beside the report: they open from disk, and run no script but their own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import BytecodeCache, Environment
from markupsafe import Markup

from revisit.core.text import count_and_noun, printable_text
from revisit.results import display
from revisit.web.templates import Context, template_environment

REPORT = "revisit.report"  # the package of the templates
STYLES = ("base.css", "tables.css", "standalone.css")


def _mapping_or_value_text(value: object) -> str:
    """A value as text; a mapping as its names and items."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    return str(value)


def clamp(value: float) -> float:
    """The number, no less than 0 and no more than 1."""
    return min(max(value, 0.0), 1.0)


def _percent_on_axis(value: float, scale: tuple[float, float], margin: int) -> float:
    """Where a value lies on an axis from one end of a scale to the other, in percent, with margins at both ends."""
    start, end = scale
    return margin + (100 - 2 * margin) * clamp((value - start) / ((end - start) or 1.0))


FILTERS = {
    "number": display.number_text,
    "signed": display.signed_number_text,
    "interval": display.interval_ends_text,
    "coverage": display.scored_of_asked_text,
    "missing": display.unscored_reason_lines,
    "title_of_score": display.score_title,
    "column_head": display.score_title_with_arrow,
    "arrow": display.direction_arrow,
    "pluralize": count_and_noun,
    "printable": printable_text,
    "clamp": clamp,
    "on_axis": _percent_on_axis,
    "one_line": _mapping_or_value_text,
}


def read_asset(name: str) -> str:
    """A style sheet or script of the report."""
    return (files(REPORT) / "templates" / name).read_text(encoding="utf-8")


def page_templates(cache: BytecodeCache | None = None, package: str = REPORT) -> Environment:
    """The templates of the report, or of another package, which write numbers as all surfaces do."""
    environment = template_environment(package, cache)
    environment.filters.update(FILTERS)
    return environment


def html_and_policy_of_template(
    template: str,
    title: str,
    scripts: Sequence[str],
    content: Context,
    style: str = "",
    package: str = REPORT,
) -> tuple[str, str]:
    """The page of a template, in which all text is printable, and the policy that it is under."""
    style = style or "".join(map(read_asset, STYLES))
    script = "\n".join(map(read_asset, scripts))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{csp_source_hash(style)}'; "
        f"script-src '{csp_source_hash(script)}'; base-uri 'none'; form-action 'self'"
    )
    environment = page_templates(package=package).overlay(
        finalize=lambda value: printable_text(value) if type(value) is str else value
    )
    page = environment.get_template(template)
    return page.render(policy=policy, style=Markup(style), script=Markup(script), title=title, **content), policy


def csp_source_hash(text: str) -> str:
    """The name under which a policy allows an inline script or style: the digest of its exact text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
