"""Templates of pages: text from outside is escaped, and a name that nobody gave is an error."""

from __future__ import annotations

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined

Context = dict[str, object]  # what a template, or a script of a page, is given


def template_environment(package: str, bytecode_cache: BytecodeCache | None = None) -> Environment:
    """The templates of a package."""
    return Environment(
        loader=PackageLoader(package),
        bytecode_cache=bytecode_cache,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
