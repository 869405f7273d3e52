"""The help of the commands: few words in groups, whole lines, one style, and old names that still work."""

from __future__ import annotations

import json
import re

import pytest
import typer.main
from typer.testing import CliRunner

from revisit.cli.benchmarks import OpenGroup
from revisit.cli.help import PlainCommand, PlainGroup, argument_rows, first_sentence, option_rows
from revisit.cli.main import MOVED, PANELS, app
from revisit.core import SUITES

WHOLE = typer.main.get_command(app)


def commands(command=WHOLE, context=None):
    """Every command of the package with its context, the whole first."""
    context = context or typer.Context(command, info_name="revisit")
    yield command, context
    if isinstance(command, PlainGroup):
        names = command.list_commands(context, **({"plugins": False} if isinstance(command, OpenGroup) else {}))
        for name in names:
            inner = command.get_command(context, name)
            yield from commands(inner, typer.Context(inner, info_name=name, parent=context))


ALL = list(commands())
NAMES = [context.command_path for _, context in ALL]


def helped(words: list[str], columns: int) -> str:
    done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    return done.output


def test_few_words_in_groups():
    context = typer.Context(WHOLE, info_name="revisit")
    names = WHOLE.list_commands(context, plugins=False)
    assert len(names) == len(set(names))
    assert len(set(names) - set(SUITES)) <= 31  # and one word for a benchmark that has commands of its own
    assert list(PANELS["Everyday"]) == ["demo", "eval", "report", "view", "compare", "trend", "list", "show"]
    assert {name for panel in WHOLE.command_names_by_panel(context).values() for name in panel} >= set(names)


@pytest.mark.parametrize("columns", [80, 100])
def test_the_first_page_has_a_line_for_each_command(columns):
    page = helped([], columns)
    assert "..." not in page
    assert all(len(line) <= columns for line in page.splitlines())
    rows = re.findall(r"(?m)^  ([a-z]+)  +\S.*\.$", page)
    assert len(rows) == len([name for name in NAMES if name.count(" ") == 1])


@pytest.mark.parametrize(("command", "context"), ALL, ids=NAMES)
def test_help_is_whole_and_in_one_style(command, context):
    assert isinstance(command, PlainCommand | PlainGroup)
    page = helped(context.command_path.split()[1:], 100)
    assert not re.search(r"<(list|str|int|float|Path|path|file)\b|TEXT|INTEGER|\bcommand\.\.\.", page)
    assert all(len(line) <= 100 for line in page.splitlines())
    said = "".join(page.split())  # lines may break at a hyphen
    assert "".join(first_sentence(command.help).split()) in said and len(first_sentence(command.help)) <= 80
    for name, meaning in [*argument_rows(command, context), *option_rows(command, context)]:
        assert meaning and "".join(meaning.split()) in said, name


def test_dash_o_is_the_path_to_write_to():
    for command, context in ALL:
        for parameter in command.params:
            if "-o" in parameter.opts:
                assert parameter.opts[0] == "--out" and parameter.metavar == "PATH", context.command_path


def test_whatever_evaluates_a_run_takes_out_and_fresh():
    """Messages about a run that is there already name both."""
    options = {
        context.command_path: {option for parameter in command.params for option in parameter.opts}
        for command, context in ALL
        if context.command_path.split()[1:2] in [["eval"], *([suite] for suite in SUITES)]
    }
    evaluate = {path: names for path, names in options.items() if {"--set", "--workers"} <= names}
    lacking = [path for path, names in evaluate.items() if not {"--out", "--fresh"} <= names]
    assert len(evaluate) == 7 and not lacking


def test_dash_o_is_not_taken_for_an_option_of_a_suite(revisit, tmp_path):
    (tmp_path / "v").mkdir()
    assert "is given as --option gt=data" in revisit("eval", "v", "-o", "gt=data", check=2).stderr


@pytest.mark.parametrize("old", MOVED)
def test_old_names_say_what_they_are_now(old, revisit):
    new = MOVED[old].split()
    done = revisit(*old.split(), "--help")
    assert done.stderr == f"note: `revisit {old}` is now `revisit {MOVED[old]}`\n"
    assert done.stdout == revisit(*new, "--help").stdout
    assert old.split()[-1] not in re.findall(r"(?m)^  (\w+)  ", revisit(*old.split()[:-1], "--help").stdout)


def test_old_names_print_what_the_new_ones_print(revisit, make_clip, tmp_path):
    for model in ("one", "two"):
        make_clip(tmp_path / f"videos/{model}/a.mp4", seed=len(model))
    revisit("eval", "videos", "-m", "motion_amount,flicker", "--workers", 0, "--no-report")
    for old, new in {
        ("verdict", "runs/videos", "--json"): ("show", "runs/videos", "--json"),
        ("verdict", "runs/videos", "--all"): ("show", "runs/videos", "--all"),
        ("cite", "runs/videos"): ("show", "runs/videos", "--bibtex"),
        ("models", "runs/videos", "--json"): ("show", "runs/videos", "--models", "--json"),
        ("models",): ("show", "--models"),
        ("score", "runs/videos", "--json"): ("eval", "runs/videos", "--rescore", "--json", "--no-report"),
    }.items():
        before, after = revisit(*old), revisit(*new)
        assert before.stdout == after.stdout and before.stdout, old
    assert {"answers", "moments"} <= json.loads(revisit("show", "runs/videos", "--json").stdout).keys()
    assert not (tmp_path / "runs/videos/report").exists(), "score never wrote a page"
    assert "report: " in revisit("eval", "runs/videos", "--rescore").stderr


def test_what_does_not_go_together_is_refused(revisit, make_clip, tmp_path):
    make_clip(tmp_path / "v/a.mp4")
    revisit("eval", "v", "-m", "motion_amount", "--workers", 0, "--no-report")
    for words, sentence in (
        (("eval", "runs/v", "--rescore", "-m", "psnr"), "--metric does not go with --rescore"),
        (("show", "psnr", "--all"), "--all does not go with 'psnr'"),
        (("show", "runs/v", "runs/v"), "only --bibtex and --models take several runs"),
        (("show", "--bibtex"), "--bibtex takes the runs"),
        (("show", "runs/v", "--models", "--out", "x"), "--out does not go with --models"),
        (("audit", "--seeds", 1, "sweep", "runs/v", "-p", "flicker.x=1"), "--seeds does not go with `audit sweep`"),
        (("generate", "records.jsonl", "--model", "mine"), "--model does not go with a file of records"),
        (("generate", "records.jsonl", "--generator", "spatia"), "needs --generator, --command and --out"),
        (("camera", "presets", "--degrees", "nan"), "'--degrees': nan is not a number"),
    ):
        assert sentence in revisit(*words, check=2).stderr, words
