"""One style of help for all commands: usage, summary, arguments, options, and commands in panels.

Parameters are shown by their own names (`--metric METRIC`, `RUN...`): what typer shows of types differs by version.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

WIDTH = 100  # columns at most; a narrower terminal gets less
PLAIN = (str, int, float)  # types of defaults that are shown as they are

Function = TypeVar("Function", bound=Callable[..., Any])
Row = tuple[str, str]  # a name, and what it means


def first_sentence(text: str | None) -> str:
    """The first sentence of a command's description."""
    first, _, _ = " ".join((text or "").strip().split("\n\n")[0].split()).partition(". ")
    return first if first.endswith(".") else f"{first}."


def help_paragraphs(command: Any) -> str:
    """All that a command says of itself, a paragraph in each line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n"))


def usage_pieces(command: Any, ctx: Any) -> list[str]:
    """What follows the name of a command: its arguments, [OPTIONS], and the command within a group."""
    arguments = map(_argument_usage, filter(_is_argument, command.get_params(ctx)))
    if not hasattr(command, "list_commands"):
        return [*arguments, "[OPTIONS]"]
    return ["[OPTIONS] [COMMAND]"] if command.invoke_without_command else ["COMMAND [OPTIONS]"]


def argument_rows(command: Any, ctx: Any) -> list[Row]:
    """The arguments of a command, each with its meaning."""
    arguments = filter(_is_argument, command.get_params(ctx))
    return [(_argument_usage(param), _parameter_help(param)) for param in arguments]


def option_rows(command: Any, ctx: Any) -> list[Row]:
    """The options of a command, each with its meaning and default."""
    options = [param for param in command.get_params(ctx) if not _is_argument(param) and not param.hidden]
    return [(_option_usage(param), _parameter_help(param)) for param in options]


def _is_argument(param: Any) -> bool:
    return str(param.param_type_name) == "argument"


def _argument_usage(param: Any) -> str:
    """`RUN`, `RUN...` for several, `[RUN]` where it may be left out."""
    name = (param.metavar or param.name.upper()) + ("..." if param.nargs != 1 else "")
    return name if param.required else f"[{name}]"


def _option_usage(param: Any) -> str:
    """`-m, --metric METRIC`, or `--report / --no-report`."""
    names = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        return f"{names} / {', '.join(param.secondary_opts)}"
    return names if param.is_flag else f"{names} {param.metavar or param.name.strip('_').upper()}"


def _parameter_help(param: Any) -> str:
    notes = [f"env var: {param.envvar}"] if param.envvar else []
    if param.required and not _is_argument(param):
        notes.append("required")
    elif default := _default_text(param):
        notes.append(f"default: {default}")
    return f"{param.help}  [{'; '.join(notes)}]" if notes else param.help or ""


def _default_text(param: Any) -> str:
    """The default as text; nothing where it is no value that a user would write."""
    if isinstance(param.show_default, str):
        return param.show_default
    value = param.default
    if param.show_default is False or value is None:
        return ""
    if isinstance(value, bool):
        names = param.opts if value else param.secondary_opts
        return names[0].lstrip("-") if param.secondary_opts else ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, PLAIN) or hasattr(value, "__fspath__") else ""


class _PlainHelp:
    """How commands and groups of them write their help."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return usage_pieces(self, ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_help_sections(formatter, {"Arguments": argument_rows(self, ctx), "Options": option_rows(self, ctx)})


class PlainCommand(_PlainHelp, TyperCommand):
    """A command with help in our style, which takes no `nan` or `inf` for a number."""

    def invoke(self, ctx: Any) -> Any:
        params: Sequence[Any] = self.get_params(ctx)
        for param in params:
            value = ctx.params.get(param.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is not a number to work with", ctx, param)
        return super().invoke(ctx)


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands, listed with their whole summaries, in panels where it has some."""

    def command_names_by_panel(self, ctx: Any) -> Mapping[str, Sequence[str]]:
        """Names of the commands by the heading that they stand under."""
        return {"Commands": self.list_commands(ctx)}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def command_summary(self, ctx: Any, name: str) -> str:
        """The first sentence of a command's description."""
        return first_sentence(self.get_command(ctx, name).help)  # type: ignore[union-attr]  # a name that is listed

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)), default=0)
        for title, names in self.command_names_by_panel(ctx).items():
            rows = [(name.ljust(width), self.command_summary(ctx, name)) for name in names]
            _write_help_sections(formatter, {title: rows})


def _write_help_sections(formatter: Any, sections: Mapping[str, Iterable[Row]]) -> None:
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(list(rows))


class Commands(typer.Typer):
    """A group of commands to add to, with help in our style."""

    def __init__(self, help: str, *, cls: type[TyperGroup] = PlainGroup, **settings: Any) -> None:
        super().__init__(
            cls=cls, help=help, no_args_is_help=not settings.get("invoke_without_command"), add_completion=False,
            rich_markup_mode=None, pretty_exceptions_enable=False, context_settings={"max_content_width": WIDTH},
            **settings,
        )  # fmt: skip
        self.summary = first_sentence(help)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        return super().command(name, cls=PlainCommand, **settings)
