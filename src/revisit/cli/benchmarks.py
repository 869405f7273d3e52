"""Commands of benchmarks: `COMMANDS` in commands.py of a suite's folder, or of a plugin's.

It maps where a command goes, such as "mbench" or "import mbench", to a function or to a group of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from revisit import suites

Brought = typer.Typer | Callable[..., Any]
PART = "commands"


class OpenGroup(TyperGroup):
    """A group of commands that benchmarks add to; plugins are looked at where a name is not ours, and for the help."""

    own: Mapping[str, str] = {}  # commands of ours that are imported when they are asked for: module and function

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.brought: dict[str, Brought] = {}  # by benchmarks and plugins

    def list_commands(self, ctx: Any) -> list[str]:
        for name in self.own:
            self._import(name)
        self._take(ctx, _ours())
        self._take(ctx, _plugins())
        return [*self.own, *(name for name in super().list_commands(ctx) if name not in self.own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self._import(cmd_name)
        for brought in (_ours, _plugins):
            if cmd_name not in self.commands:
                self._take(ctx, brought())
        if cmd_name not in self.commands:
            self.list_commands(ctx)  # to name those that are alike
        return super().get_command(ctx, cmd_name)

    def _import(self, name: str) -> None:
        if name in self.own and name not in self.commands:
            module, _, command = self.own[name].partition(".")
            self.commands[name] = _made(getattr(import_module(f"revisit.cli.{module}"), command), name)

    def _take(self, ctx: Any, brought: Sequence[tuple[str, Brought]]) -> None:
        """Add the commands that go into this group, by their last word; none in the place of another."""
        mine = "" if ctx.parent is None else ctx.info_name
        for words, command in brought:
            group, _, name = words.rpartition(" ")
            if group != mine:
                continue
            if name not in self.commands and name not in self.own:
                self.commands[name] = _made(command, name)
                self.brought[name] = command
            elif self.brought.get(name) is not command:
                typer.echo(f"revisit: a plugin's command `{words}` is left out: that name is taken", err=True)
                self.brought[name] = command  # said once


def _made(command: Brought, name: str) -> Any:
    """As the library under typer has it, which is another one in other versions."""
    made: Any
    if isinstance(command, typer.Typer):
        made = get_group(command)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(command)
        made = get_command(alone)
    made.name = name
    return made


@cache
def _ours() -> list[tuple[str, Brought]]:
    """Without the registries, which bring numpy: `revisit --help` can do without."""
    names = [f"{suites.__name__}.{name}.{PART}" for _, name, is_folder in iter_modules(suites.__path__) if is_folder]
    return [brought for name in names if find_spec(name) for brought in import_module(name).COMMANDS.items()]


@cache
def _plugins() -> list[tuple[str, Brought]]:
    from importlib.metadata import entry_points

    if not entry_points(group="revisit.plugins"):
        return []
    from revisit.core.registry import load_part

    known = {id(made) for _, made in _ours()}
    found = [brought for module in load_part(PART) for brought in getattr(module, "COMMANDS", {}).items()]
    return [(words, made) for words, made in found if id(made) not in known]
