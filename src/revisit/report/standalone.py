"""Small pages beside the report, in its looks: they open from disk, and run no script but their own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from revisit.core.text import printable_text
from revisit.web.templates import Context, templates

STYLES = ("base.css", "tables.css", "standalone.css")


def asset(name: str) -> str:
    """A style sheet or script of the report."""
    return (files("revisit.report") / "templates" / name).read_text(encoding="utf-8")


def standalone_page(template: str, title: str, scripts: Sequence[str], content: Context) -> tuple[str, str]:
    """The page of a template, and the policy that it is under."""
    style = "".join(map(asset, STYLES))
    script = "\n".join(map(asset, scripts))
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{policy_hash(style)}'",
            f"script-src '{policy_hash(script)}'",
            "base-uri 'none'",
            "form-action 'self'",
        )
    )
    page = templates("revisit.report").get_template(template)
    html = page.render(
        policy=policy, style=Markup(style), script=Markup(script), title=printable_text(title), **content
    )
    return html, policy


def policy_hash(text: str) -> str:
    """The name under which a policy allows an inline script or style: the digest of its exact text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
