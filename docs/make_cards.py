"""Write the pages that come from the code: metrics.md and metrics/ (cards), reasons.md, checklist.md and others.

All come from the code: run `make docs` after changing a card; a test fails when the page and the code differ.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revisit import catalog
from revisit.audit import cards as audited
from revisit.audit.cards import load_saved_audit, saved_metric_audit
from revisit.core import GATES, KINDS, METRICS, SUITES
from revisit.weights.lock import read_lock_entries

HERE = Path(__file__).parent
# Pages of cards: the title of each, and the chapters of metrics on it. A suite's own metrics are on the suite's page.
PAGES = {
    "memory": ("Memory: what came back", ("target_return", "returning", "outcome", "judged")),
    "departures": ("Departures from the reference", ("target_departure", "look_departure", "camera_departure")),
    "fidelity": ("Fidelity: frame by frame", ("fidelity",)),
    "look": ("Look and integrity", ("appearance", "integrity", "distribution")),
    "motion": ("Motion, cuts and drift", ("motion", "cuts", "drift")),
    "camera": ("Camera", ("camera", "camera_path")),
    **{suite.id: (suite.title, ()) for suite in SUITES.values() if suite.id != "folder"},
}
# Libraries that pyproject.toml names for users, with the licence that each states of itself.
LIBRARIES = {
    "base": {
        "numpy": "BSD-3-Clause", "av": "BSD-3-Clause", "opencv-python-headless": "Apache-2.0", "typer": "MIT",
        "rich": "MIT", "pyyaml": "MIT", "pydantic": "MIT", "jinja2": "BSD-3-Clause", "openpyxl": "MIT",
        "threadpoolctl": "BSD-3-Clause", "httpx": "BSD-3-Clause", "msgspec": "BSD-3-Clause",
    },
    "networks, local": {
        "torch": "BSD-3-Clause and others", "transformers": "Apache-2.0", "safetensors": "Apache-2.0",
        "onnxruntime": "MIT",
    },
    "cpu": {"openvino": "Apache-2.0"},
    "poses": {"pycolmap": "BSD-3-Clause"},
    "figures": {"matplotlib": "PSF-based"},
    "ray": {"ray": "Apache-2.0", "fsspec": "BSD-3-Clause"},
    "tables": {"pandas": "BSD-3-Clause", "pyarrow": "Apache-2.0"},
    "wandb": {"wandb": "MIT", "pillow": "MIT-CMU"},
    "tensorboard": {"tensorboard": "Apache-2.0"},
    "mlflow": {"mlflow-skinny": "Apache-2.0"},
    "lightning": {"lightning": "Apache-2.0"},
    "webdataset": {"webdataset": "BSD-3-Clause"},
    "datasets": {"datasets": "Apache-2.0"},
    "annotate": {"starlette": "BSD-3-Clause", "uvicorn": "BSD-3-Clause"},
    "postgres": {"psycopg": "LGPL-3.0-only"},
}  # fmt: skip
FACTS = (
    "unit",
    "range",
    "noise_floor",
    "better",
    "needs",
    "gates",
    "suites",
    "parameters",
    "paper",
    "upstream",
    "responds_to",
    "blind_to",
    "machines",
    "spread",
)


def pages() -> dict[Path, str]:
    """Every page that is written from the code."""
    cards = {HERE / f"metrics/{name}.md": _family(name) for name in PAGES}
    cards |= {HERE / "metrics/gates.md": _gates(), HERE / "metrics/observers.md": _observers()}
    return {
        HERE / "metrics.md": _overview(),
        **cards,
        HERE / "reasons.md": reasons(),
        HERE / "licences.md": licences(),
        HERE / "checklist.md": _checklist(),
        HERE / "audit-results.md": results_page(),
        HERE / "port-a-benchmark.md": port_page(),
    }


YAML_FILES = {"card.yaml": "Title, protocols, options, groups.", "published.yaml": "The printed tables."}


def port_page() -> str:
    """The guide to porting a benchmark, with the table of the files that it is about as they are now."""
    page = (HERE / "port-a-benchmark.md").read_text(encoding="utf-8")
    folder = HERE.parent / "src/revisit/suites/worldmark"
    rows, total = [], 0
    for path in sorted(folder.rglob("*.py")) + sorted(folder.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        else:
            about = YAML_FILES.get(path.name) or text.removeprefix("# ").partition(": ")[0].partition(".")[0] + "."
        total += text.count("\n")
        rows.append(f"| `{path.relative_to(folder).as_posix()}` | {text.count(chr(10))} | {about} |")
    table = "\n".join(["| file | lines | what it holds |", "|---|---|---|", *rows, f"| all | {total} | |"])
    before, mark, rest = page.partition("<!-- files -->\n")
    return f"{before}{mark}{table}\n<!-- end of files -->{rest.partition('<!-- end of files -->')[2]}"


def _page_of(id: str) -> str:
    _, _, inside = METRICS[id].fn.__module__.partition("revisit.suites.")
    chapter = METRICS[id].family
    found = [name for name, (_, chapters) in PAGES.items() if name == inside.split(".")[0] or chapter in chapters]
    if not found:
        raise SystemExit(f"no page for the metrics of {chapter!r}; add it to PAGES in {__file__}")
    return found[0]


def _overview() -> str:
    """All metrics in one table per page of cards."""
    text = (
        "# Metric cards\n\nWritten by `make docs` from the code; `revisit show ID` prints the same card. A card says "
    )
    text += (
        "what a metric measures, what it notices and what it is blind to, how far its scores move between machines, "
    )
    text += "and how it did in the [audit](audit.md). Also: [gates](metrics/gates.md), "
    text += "[observers](metrics/observers.md), and [why there is no score](reasons.md).\n"
    for name, (title, _) in PAGES.items():
        text += f"\n## [{title}](metrics/{name}.md)\n\n| metric | title | better | what |\n|---|---|---|---|\n"
        for id in _metrics_on(name):
            card = catalog.card_of_id(id)
            what = METRICS[id].summary.replace("|", "\\|")
            text += f"| [`{id}`](metrics/{name}.md#{id}) | {card['title']} | {card['better']} | {what} |\n"
    return text


def _metrics_on(name: str) -> list[str]:
    return [id for id in METRICS if _page_of(id) == name]


def _family(name: str) -> str:
    """The cards of one page."""
    text = f"# {PAGES[name][0]}\n\nWritten by `make docs` from the code. [All metrics](../metrics.md)\n"
    for id in _metrics_on(name):
        card = catalog.card_of_id(id)
        text += _head(card) + _facts(card)
        text += _audit(id, card["version"])
    return text


def _audit(metric: str, version: int) -> str:
    """The audit of a metric, its failures folded in; empty without one."""
    audit = saved_metric_audit(metric, version)
    if audit is None:
        return ""
    text = f"\n\nAudit ({audited.grid_text()}). {audited.levels_text(audit)}."
    if audit["failing"]:
        text += "\n\nDoes not do what it should:\n"
        text += "".join(f"\n- {fault['sentence']}" for fault in audit["failing"])
    text += '\n\n<details markdown="1"><summary>Failure by failure</summary>\n\n'
    text += "| failure | claimed | AUC | tau | effect | scored | finding |\n|---|---|---|---|---|---|---|\n"
    kinds = load_saved_audit()["kinds"]
    for kind, cell in audit["kinds"].items():
        claimed = "yes" if cell["claimed"] else ""
        auc, tau = audited.two_decimals_or_dash(cell["auc"]), audited.two_decimals_or_dash(cell["tau"])
        text += (
            f"| {kinds[kind]['title']} | {claimed} | {auc} | {tau} | {audited.effect_text(cell)} "
            f"| {cell['n']}/{cell['of']} | {cell['response']} |\n"
        )
    return text + "\n</details>\n"


def _head(card: Mapping[str, Any]) -> str:
    head = f'\n<a id="{card["id"]}"></a>\n\n## {card["title"]} (`{card["id"]}`)\n\n'
    return head + f"Version {card['version']}. {card['description']}\n\n"


def _gates() -> str:
    text = "# Gates\n\nWritten by `make docs` from the code. A gate decides whether a clip poses the test.\n"
    return text + "".join(_head(card) + _facts(card) for card in map(catalog.card_of_id, GATES))


def _observers() -> str:
    text = "# Observers\n\nWritten by `make docs` from the code. An observer makes evidence out of frames or files.\n\n"
    text += "| id | version | makes | frames | what |\n|---|---|---|---|---|\n"
    for row in catalog.list_rows_of_kind("observers"):
        what = row["what"].replace("|", "\\|")
        text += f"| `{row['id']}` | {row['v']} | {row['makes']} | {row['frames']} | {what} |\n"
    return text


def _checklist() -> str:
    """The page of what the benchmarks have, by the module beside this one."""
    spec = importlib.util.spec_from_file_location("checklist", HERE / "checklist.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["checklist"] = importlib.util.module_from_spec(spec)  # where its types look for each other
    spec.loader.exec_module(module)
    return str(module.page())


def reasons() -> str:
    """The page of the kinds of reasons."""
    parts = [
        "# Why there is no score\n\nWritten by `make docs` from the code.\n\n"
        "What cannot be scored is unscored, with a reason: one of the kinds below, and a sentence about the clip. "
        "Tables count reasons by kind and show their titles. The list is closed: records, exports and plugins hold no "
        "others, and no code reads the sentence, so its words may change.\n"
    ]
    asked = {kind: facts for kind, facts in KINDS.items() if not facts.lacking}
    for title, text, kinds in (
        (
            "The question could not be asked",
            "Something was not given, or is not in the observer set or on this machine. Where this holds for all "
            "clips, the metric counts as not asked.",
            {kind: facts for kind, facts in KINDS.items() if facts.lacking},
        ),
        ("It was asked, and there is no answer", "The clip counts in the coverage of the metric.", asked),
    ):
        parts.append(f"\n## {title}\n\n{text}\n\n| kind | in tables | meaning |\n|---|---|---|\n")
        parts += [f"| `{kind}` | {facts.title} | {facts.meaning} |\n" for kind, facts in kinds.items()]
    return "".join(parts)


def licences() -> str:
    """The page of licences: our code, libraries and weights."""
    text = "# Licences\n\nWritten by `make docs`. Revisit itself is under Apache-2.0.\n\n## Libraries\n\n"
    text += (
        "They are installed beside Revisit, not shipped with it. `make sbom` lists all that an install brings, with "
    )
    text += "versions and licences, as CycloneDX.\n\n| extra | library | licence |\n|---|---|---|\n"
    text += "".join(f"| {extra} | {name} | {of} |\n" for extra, some in LIBRARIES.items() for name, of in some.items())
    text += "\nThe wheels of PyAV and OpenCV carry FFmpeg (LGPL) and codecs with terms of their own. Who passes on a "
    text += "whole environment, such as a container, passes these on, too.\n\n## Weights\n\nNo weights are shipped. "
    text += "`revisit weights pull` fetches them from where they are published, under these licences, as far as known; "
    text += "some forbid commercial use. [Weights](weights.md) says where each comes from.\n\n"
    text += "| weights | network | sets | licence |\n|---|---|---|---|\n"
    for id, entry in read_lock_entries().items():
        gated = " (to be accepted first)" if entry.gated else ""
        text += f"| `{id}` | {entry.title} | {', '.join(entry.sets)} | {entry.licence}{gated} |\n"
    return text


def results_page() -> str:
    """What the saved audit found, as a page of the documentation."""
    saved = load_saved_audit()
    if not saved:
        return "# Results of the audit\n\nNone are saved; `revisit audit --save-results` makes them.\n"
    kinds, metrics, rows, grid = saved["kinds"], saved["metrics"], saved["diagonal"], saved["grid"]
    strengths = ", ".join(f"{strength:g}" for strength in [0, *grid["strengths"]])
    passed = sum(row["passes"] for row in rows.values())
    memory = sorted(id for id, metric in metrics.items() if metric["memory"])
    fooled = [id for id in memory for fault in metrics[id]["failing"] if fault["problem"].startswith("frozen camera")]
    text = "# Results of the audit\n\nWritten by `make docs` from the saved results; [audit.md](audit.md) says how to "
    text += f"read them. Rendered worlds, set {grid['set']}, {len(grid['seeds'])} scenes, strengths {strengths}, "
    text += f"{grid['clips']} clips of {grid['frames']} frames.\n\n## Failure by failure\n\n"
    text += f"{passed} of {len(rows)} failures have a metric with AUC ≥ 0.95 at full strength and tau ≥ 0.8 in "
    text += "strength; metrics that claim the failure are in bold.\n\n"
    text += "| failure | noticed, in order, by |\n|---|---|\n"
    for kind, row in rows.items():
        named = [f"**{id}**" if id in row["claimed"] else id for id in row["metrics"]]
        text += f"| {kinds[kind]['title']} | {', '.join(named) or 'none'} |\n"
    text += f"\n## Memory metrics and the frozen camera\n\n{', '.join(memory)}.\n\n"
    text += f"Fooled by a frozen camera: {', '.join(fooled) or 'none of them'}.\n"
    text += "\n## Metrics that do not do what they claim\n\n"
    for id, metric in metrics.items():
        text += "".join(f"- `{id}`: {fault['sentence']}\n" for fault in metric["failing"])
    text += (
        "\n## AUC at full strength\n\nClaimed ones in bold; a dash where fewer than half of the clips were scored.\n\n"
    )
    text += f"| metric | {' | '.join(kinds[kind]['title'] for kind in kinds)} |\n|---|{'---|' * len(kinds)}\n"
    for id, metric in metrics.items():
        cells = [_cell(metric["kinds"][kind]) for kind in kinds]
        text += f"| `{id}` | {' | '.join(cells)} |\n"
    return text


def _cell(cell: Mapping[str, Any]) -> str:
    text = "–" if cell["response"] in ("unscored", "no clips") else audited.two_decimals_or_dash(cell["auc"])
    return f"**{text}**" if cell["claimed"] else text


def _facts(card: dict[str, object]) -> str:
    lines = []
    for name in FACTS:
        value = card.get(name)
        if value in (None, "", [], {}):
            continue
        if isinstance(value, list) and name in catalog.SENTENCES:
            lines += [f"- {name}: {line}\n" for line in value]
            continue
        if isinstance(value, list):
            value = ", ".join("open" if item is None else str(item) for item in value)
        if isinstance(value, dict):
            value = ", ".join(f"{key} = {item}" for key, item in value.items())
        lines.append(f"- {name.replace('_', ' ')}: {value}\n")
    return "".join(lines)


if __name__ == "__main__":
    (HERE / "metrics").mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
