"""Write commands.md from the help of the commands: run `make docs` after changing one, or a test fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from revisit.cli.help import Row, argument_rows, help_paragraphs, option_rows, usage_pieces
from revisit.cli.main import MOVED, app

PAGE = Path(__file__).parent / "commands.md"
INTRODUCTION = """# Commands

Written by `make docs` from the help of the commands; `revisit COMMAND --help` prints the same. `-o` is always the path
to write to. Data goes to stdout, messages to stderr.
"""


def page() -> str:
    """All commands of the package by panel: usage, description and options of each."""
    whole: Any = typer.main.get_command(app)
    context = typer.Context(whole, info_name="revisit")
    ours = whole.list_commands(context, plugins=False)
    panels = {
        title: [name for name in names if name in ours]
        for title, names in whole.command_names_by_panel(context).items()
    }
    parts = [INTRODUCTION, f"{whole.epilog}\n", _overview(panels)]
    for title, names in panels.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _sections(whole, context, name, "###")
    parts.append("## Old names\n\nThey still work, and say what they are called now.\n")
    parts.append(_table(("old", "now"), [(f"`revisit {old}`", f"`revisit {new}`") for old, new in MOVED.items()]))
    return "\n".join(parts)


def _overview(panels: dict[str, list[str]]) -> str:
    rows = [(title, ", ".join(f"[`{name}`](#revisit-{name})" for name in names)) for title, names in panels.items()]
    return _table(("group", "commands"), rows)


def _sections(group: Any, context: Any, name: str, level: str) -> Iterator[str]:
    """A command, and those within it."""
    command = group.get_command(context, name)
    inner = typer.Context(command, info_name=name, parent=context)
    yield f"{level} revisit {_path(inner)}\n"
    yield f"```\nrevisit {_path(inner)} {' '.join(usage_pieces(command, inner))}\n```\n"
    yield f"{help_paragraphs(command)}\n"
    rows = [*argument_rows(command, inner), *(row for row in option_rows(command, inner) if row[0] != "--help")]
    if rows:
        yield _table(("argument or option", "meaning"), [(f"`{left}`", meaning) for left, meaning in rows])
    if hasattr(command, "list_commands"):
        listed: dict[str, bool] = {"plugins": False} if hasattr(command, "sources") else {}
        for subcommand in command.list_commands(inner, **listed):
            yield from _sections(command, inner, subcommand, f"{level}#")


def _path(context: Any) -> str:
    """The words of a command after `revisit`."""
    return str(context.command_path).partition(" ")[2]


def _table(heads: Sequence[str], rows: Sequence[Row]) -> str:
    return "".join(
        f"| {' | '.join(row)} |\n" for row in [heads, ("---",) * len(heads), *(map(_cell, row) for row in rows)]
    )


def _cell(text: str) -> str:
    """Text as Markdown shows it in a table: what is not code has no tags and no emphasis."""
    parts = text.replace("|", "\\|").replace("  [", " [").split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
