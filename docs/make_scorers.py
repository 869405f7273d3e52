"""Write scorers.md and scorers.png from scorers.json, which benchmarks/scorers.py makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from revisit.audit.benchmark_trials import BETTER, KEY, MODELS, SAME, content_digest, draw_figure
from revisit.audit.schema import Content
from revisit.results.display import number_text

HERE = Path(__file__).parent
PAGE, FIGURE = HERE / "scorers.md", HERE / "scorers.png"
TEXT = """\
# The scorers scored

Written by `make docs` from `scorers.json`, which `python benchmarks/scorers.py` makes.

Benchmarks score models. Who scores benchmarks? On generated video nobody knows the right answer. In rendered worlds
we do: a model that shows the truth must come first, and a camera that never moved, a picture without content or a
target that is gone must not earn what the truth earns.

![What published measures give models with known faults]({figure})

Read a row from the left: what the measure gives the perfect model, then what it gives each faulty one. Green: less,
as it should. Grey: the measure says that the question cannot be asked, which is right too. Orange: as much as the
perfect model. Red: more. Pale numbers without a colour are answers to another question: a measure of memory is not
asked whose camera obeys, and one of control not what becomes of the target. The left half is the protocol that
computes what was published, the right half ours with its corrections.

{findings}

## How it was done
```
{command}
```
- **Worlds.** {worlds} rendered worlds, rooms and yards; in each, every benchmark's own cases in its own layout
  ({frames} frames of {width}×{height}, more where its rules need more), played by {models} models: {model_list}.
  Poses, depth and boxes are exact; of pictures without content the camera is at rest.
- **Measures** are those that a suite's card names under `measures`: the published ones of memory and of control. The
  command finds them through the registry; a plugin's are tried as ours are (`examples/plugin/revisit_example/iworld`
  is iWorld-Bench's symmetry in four small files).
- **Networks.** Observers of the set `{set}`. A star marks measures by another network than the published one: they
  say what the formula does, not what the published network would. Measures that a judge answers, such as
  WRBench's two of memory, are left out: the trial would be of the judge. What cannot be scored with this set
  has no row in the figure.
- **Units** are worlds: a model's score in a world is the mean over its films there; intervals (95 %) are over worlds.
  A model is *worse* or *better* than the perfect one where the interval of the difference in the same worlds excludes
  0, and *the same* otherwise. It is *not scored* where that holds for at least half of the worlds.

## All numbers
Means with 95 % intervals over worlds; **bold**: no worse than the perfect model, although the measure is asked about
that fault. A dash: not scored.

{table}
"""


def page(content: Content) -> str:
    """The page of some results."""
    height, width = content["size"]
    command = f"revisit audit --benchmarks --worlds {content['worlds']} --set {content['set']}"
    return TEXT.format(
        figure=FIGURE.name, findings="\n".join(findings(content)), command=command, worlds=content["worlds"],
        frames=content["frames"], width=width, height=height, models=len(MODELS),
        model_list=", ".join(MODELS.values()), set=content["set"], table=table_as_markdown(content),
    )  # fmt: skip


def table_as_markdown(content: Content) -> str:
    """The table with intervals over worlds; in bold what is no worse than the perfect model."""
    head = ["benchmark", "measure", "protocol", "perfect first?", *MODELS.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in content["rows"]:
        arrow = "↑" if row["higher_is_better"] else "↓"
        first = "no score" if row["perfect_first"] is None else "yes" if row["perfect_first"] else "**no**"
        cells = [cell_as_markdown(cell) for cell in row["cells"].values()]
        lines.append(
            f"| {' | '.join([row['benchmark'], row['title'] + ' ' + arrow, row['protocol'], first, *cells])} |"
        )
    return "\n".join(lines)


def cell_as_markdown(cell: Content) -> str:
    """A score with its interval; a dash where there is none."""
    if cell["mean"] is None:
        return "–"
    text = number_text(cell["mean"])
    if cell["interval"] is not None:
        low, high = (number_text(end, cell["mean"]) for end in cell["interval"])
        text += f" [{low}, {high}]"
    return f"**{text}**" if cell["verdict"] in (SAME, BETTER) else text


def findings(content: Content) -> list[str]:
    """What the table says, counted."""
    lines = []
    for published, name in ((True, "as published"), (False, "corrected")):
        rows = [row for row in content["rows"] if row["published"] == published and row["perfect_first"] is not None]
        first = [row for row in rows if row["perfect_first"]]
        lines.append(
            f"- **{name.capitalize()}**, {len(first)} of {len(rows)} measures put the perfect model before every fault "
            f"that they are asked about. {_credit(rows, 'frozen_camera', 'A frozen camera')} "
            f"{_credit(rows, 'opposite_camera', 'A camera that goes the opposite way')}"
        )
    return lines


def _credit(rows: Sequence[Content], model: str, name: str) -> str:
    """Which measures give a model as much as the perfect one, or more."""
    asked = [row for row in rows if row["cells"][model]["verdict"]]
    wrong = [
        f"{row['benchmark']}'s {row['title'].lower()}"
        for row in asked
        if row["cells"][model]["verdict"] in (SAME, BETTER)
    ]
    if not wrong:
        return f"{name} is given less than the perfect one, or no score, by all {len(asked)}."
    return f"{name} is given as much as the perfect one, or more, by {len(wrong)} of {len(asked)}: {', '.join(wrong)}."


def drawn_from(path: Path) -> str:
    """The digest of the results that a figure shows; empty where there is none."""
    data = path.read_bytes() if path.is_file() else b""
    _, found, rest = data.partition(f"{KEY}\0".encode())
    return rest[:16].decode("ascii", "replace") if found else ""


if __name__ == "__main__":
    results: Content = json.loads((HERE / "scorers.json").read_text(encoding="utf-8"))
    PAGE.write_text(page(results), encoding="utf-8")
    if drawn_from(FIGURE) != content_digest(results):
        draw_figure(results, FIGURE)
