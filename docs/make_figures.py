"""Make the figures of README, tutorial and verdict.md from fresh runs, and write them into the pages.

    make figures                     # renders and evaluates the demo and the tutorial: some minutes
    python docs/make_figures.py --pages   # writes figures.json into the pages again

docs/figures.json has what the runs gave: the scores of the demo's clips and what the commands printed. Pages hold parts
between `<!-- figures: NAME -->` and `<!-- end -->`, which are written from it. Tests compare the pages with
figures.json, and figures.json with fresh runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.results.display import number_text, score_title
from revisit.results.results import Results

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", DOCS / "tutorial.md", DOCS / "verdict.md")
FIGURES = DOCS / "figures.json"
PART = re.compile(r"(?s)(<!-- figures: ([\w-]+) -->\n).*?(<!-- end -->)")
COLUMNS = ("target_reappearance.held", "event_outcome", "return_consistency.held", "lighting_consistency")
TABLE = ("target_reappearance.held", "event_outcome", "lighting_consistency")  # README's; what repeats is left out
MODELS = {
    "perfect": "perfect memory",
    "forgets": "forgets the object",
    "resets": "resets its state",
    "drifts": "drifts in appearance",
    "frozen": "frozen camera",
}
DIGITS = 4
NO_SCORE = {"frozen": "never came back", "forgets": "not back"}
Scores = dict[str, dict[str, float | None]]  # clip -> metric -> score


def demo_figures(folder: Path) -> dict[str, Any]:
    """What `revisit demo` gives in an empty folder: the scores of its clips, and the verdict that it prints."""
    import revisit

    printed = _run(["revisit", "demo", "--out", "demo"], folder)
    return {"clips": clip_scores(revisit.load(folder / "demo/run")), "verdict": _verdict_lines(printed)}


def clip_scores(results: Results) -> Scores:
    """The scores of every clip by which figures are compared with fresh runs."""
    scores = {case.id: {id: results.score(case, id) for id in COLUMNS} for case in results.cases}
    return {
        clip: {id: None if value is None else round(value, DIGITS) for id, value in row.items()}
        for clip, row in scores.items()
    }


def tutorial_figures(folder: Path) -> dict[str, Any]:
    """What the commands of the tutorial print, as it shows them, in an empty folder."""
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    printed: dict[str, str] = {}
    for language, name, text in re.findall(r'(?ms)^```(\w*)(?: title="([^"]+)")?\n(.*?)^```', page):
        if name:
            (folder / name).write_text(text, encoding="utf-8")
        for line in text.splitlines() if language == "sh" else ():
            words = shlex.split(line, comments=True)
            printed[" ".join(words[:2])] = _run(words, folder)
    table = (folder / "table.tex").read_text(encoding="utf-8")
    compared = printed["revisit compare"].splitlines()
    return {
        "eval": _verdict_lines(printed["revisit eval"]),
        "compare": [line.rstrip() for line in compared if "  " in line.strip() and "─" not in line],
        "table": [line for line in table.splitlines() if not line.startswith("%")],
    }


def _run(words: Sequence[str], folder: Path) -> str:
    """What a command prints in a folder, with an evidence cache of its own."""
    program = Path(sys.executable).with_name(words[0])
    environment = {**os.environ, "REVISIT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [program, *words[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def _verdict_lines(printed: str) -> list[str]:
    """The lines above the first table."""
    lines = printed.splitlines()
    return [line.rstrip() for line in lines[: next(k for k, line in enumerate(lines) if not line.strip())]]


def parts(figures: Mapping[str, Any]) -> dict[str, str]:
    """Name of a part -> what pages show there."""
    made = {"demo-table": demo_table(figures["demo"]["clips"])}
    shown = {"demo-verdict": figures["demo"]["verdict"]}
    shown |= {f"tutorial-{name}": lines for name, lines in figures.get("tutorial", {}).items()}
    for name, lines in shown.items():
        language = "latex" if name == "tutorial-table" else ""
        made[name] = f"```{language}\n" + "".join(f"{line}\n" for line in lines) + "```\n"
    return made


def demo_table(clips: Scores) -> str:
    """Models by metric: the mean over the clips that have a score, and of how many."""
    heads = ["model", *map(score_title, TABLE)]
    rows = [heads, ["---"] * len(heads)]
    for model, title in MODELS.items():
        mine = [row for clip, row in clips.items() if clip.partition("@")[2].startswith(f"{model}#")]
        row = [title]
        for id in TABLE:
            values = [value for clip in mine if (value := clip[id]) is not None]
            shown = (
                f"{number_text(sum(values) / len(values))} ({len(values)}/{len(mine)})" if values else NO_SCORE[model]
            )
            row.append(shown)
        rows.append(row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def written(text: str, made: Mapping[str, str]) -> str:
    """A page with its parts written anew."""
    return PART.sub(lambda found: found[1] + made.get(found[2], "") + found[3], text)


def take_picture(run: Path) -> None:
    """The first screen of a report, by a Chromium that is installed; the old picture stays without one."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.stderr.write("no Chromium is installed: report-verdict.png was not made\n")
        return
    words = "--headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars"
    shot = f"--screenshot={DOCS / 'report-verdict.png'}"
    page = (run / "report/index.html").resolve().as_uri()
    subprocess.run([browser, *words.split(), shot, "--window-size=1280,960", page], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="only write figures.json into the pages again")
    parser.add_argument("--only", choices=("demo", "tutorial"), help="make the figures of one of them")
    options = parser.parse_args()
    fresh = {}
    for name, make in () if options.pages else (("demo", demo_figures), ("tutorial", tutorial_figures)):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="revisit-") as folder:
                fresh[name] = make(Path(folder))
                if name == "demo":
                    take_picture(Path(folder) / "demo/run")
    figures = {**(json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}), **fresh}
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    made = parts(figures)
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
