"""Commands of benchmarks: `COMMANDS` in commands.py of a suite's folder, or of a plugin's.

It maps where a command goes, such as "mbench" or "import mbench", to a function or to a group of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, ClassVar

import typer
from typer.main import get_command, get_group

from revisit.cli.help import Commands, PlainCommand, PlainGroup, first_sentence

Source = typer.Typer | Callable[..., Any]  # a group of commands, or the function of one
SUITES, PART = "revisit.suites", "commands"  # where our benchmarks lie, and the file that has their commands


class OpenGroup(PlainGroup):
    """A group of commands that benchmarks add to; plugins are looked at where a name is not ours, and for the help."""

    own: ClassVar[Mapping[str, str]] = {}  # module and function of our commands, imported when they are asked for

    def __init__(self, *positional: Any, **settings: Any) -> None:
        super().__init__(*positional, **settings)
        self.sources: dict[str, Source] = {}  # functions and groups that are commands once they are asked for
        self.refused: set[str] = set()  # commands of plugins whose names are taken

    def list_commands(self, ctx: Any, *, plugins: bool = True) -> list[str]:
        self._add_commands_of_group(ctx, _commands_of_own_suites())
        if plugins:
            self._add_commands_of_group(ctx, _commands_of_plugins())
        of_this_file = [name for name in super().list_commands(ctx) if name not in self.sources]
        return list(dict.fromkeys([*self.own, *of_this_file, *self.sources]))  # whatever was called before

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        for find in (_commands_of_own_suites, _commands_of_plugins):
            if cmd_name not in self.commands and cmd_name not in self.own:
                self._add_commands_of_group(ctx, find())
        if self._find_command_source(cmd_name) is not None and cmd_name not in self.commands:
            self.commands[cmd_name] = _to_click_command(self.sources[cmd_name], cmd_name)
        elif cmd_name not in self.commands:  # all of them, to name those that are alike
            self.commands.update({name: self.get_command(ctx, name) for name in self.list_commands(ctx)})
        return super().get_command(ctx, cmd_name)

    def command_summary(self, ctx: Any, name: str) -> str:
        source = self._find_command_source(name)
        if source is None or isinstance(source, typer.Typer):
            return source.summary if isinstance(source, Commands) else super().command_summary(ctx, name)
        return first_sentence(source.__doc__)

    def _find_command_source(self, name: str) -> Source | None:
        if name in self.own and name not in self.sources:
            module, _, command = self.own[name].partition(".")
            self.sources[name] = getattr(import_module(f"revisit.cli.{module}"), command)
        return self.sources.get(name)

    def _add_commands_of_group(self, ctx: Any, additions: Sequence[tuple[str, Source]]) -> None:
        """Add the commands that go into this group, by their last word; none in the place of another."""
        mine = "" if ctx.parent is None else ctx.info_name
        for words, source in additions:
            group, _, name = words.rpartition(" ")
            if group != mine or self.sources.get(name) is source or words in self.refused:
                continue
            if name in self.own or name in self.sources or name in self.commands:
                typer.echo(f"revisit: a plugin's command `{words}` is left out: that name is taken", err=True)
                self.refused.add(words)  # said once
            else:
                self.sources[name] = source


def _to_click_command(command: Source, name: str) -> Any:
    """As the library under typer has it, which is another one in other versions."""
    compiled: Any
    if isinstance(command, typer.Typer):
        compiled = get_group(command)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name, cls=PlainCommand)(command)
        compiled = get_command(single)
    compiled.name = name
    return compiled


@cache
def names_of_own_suites() -> list[str]:
    """Names of the folders of our suites."""
    package = find_spec(SUITES)
    assert package is not None
    return [name for _, name, is_folder in iter_modules(package.submodule_search_locations) if is_folder]


@cache
def _commands_of_own_suites() -> list[tuple[str, Source]]:
    """Without the registries, which bring numpy: `revisit --help` can do without."""
    names = [f"{SUITES}.{name}.{PART}" for name in names_of_own_suites()]
    return [addition for name in names if find_spec(name) for addition in import_module(name).COMMANDS.items()]


@cache
def _commands_of_plugins() -> list[tuple[str, Source]]:
    from importlib.metadata import entry_points

    if not entry_points(group="revisit.plugins"):
        return []
    from revisit.core.registry import import_part_of_benchmarks

    ours = {id(command) for _, command in _commands_of_own_suites()}
    additions = [pair for module in import_part_of_benchmarks(PART) for pair in getattr(module, "COMMANDS", {}).items()]
    return [(words, command) for words, command in additions if id(command) not in ours]
