"""`revisit doctor` and `verify`: whether all that an evaluation needs is here, and gives the stored scores."""

from __future__ import annotations

import typer

from revisit.cli import console
from revisit.cli.options import JSON, WORKERS


def doctor(json: bool = JSON) -> None:
    """Check the installation: libraries, decoders, GPU, weights. Also cache, disk, memory and plugins."""
    from revisit.engine.doctor import check_installation

    rows = check_installation()
    content = [dict(zip(("name", "state", "finding"), row, strict=True)) for row in rows]
    marks = {"ok": "ok", "note": "–", "bad": "BAD"}
    cells = [[name, marks[state], finding] for name, state, finding in rows]
    console.print_json_or_table(content, ["check", "state", "finding"], cells, json)
    raise typer.Exit(3 if any(state == "bad" for _, state, _ in rows) else 0)


def verify(
    workers: int = WORKERS,
    json: bool = JSON,
) -> None:
    """Score bundled clips and compare with stored scores. Exit code 1 if any differs too much."""
    from dataclasses import asdict

    from revisit.audit.cards import NOT_COMPARED
    from revisit.audit.golden import rescore_and_compare_golden_clips

    spreads = rescore_and_compare_golden_clips(workers)
    if json:
        console.print_json([{**asdict(spread), "kept": spread.is_within_tolerance} for spread in spreads])
    else:
        compared = [spread for spread in spreads if spread.clips]
        words = {False: "BEYOND", True: "kept"}
        rows = [
            [one.question, str(one.clips), f"{one.largest:.2g}", f"{one.tolerance:g}", words[one.is_within_tolerance]]
            for one in sorted(compared, key=lambda one: one.is_within_tolerance)
        ]
        console.print_table(("question", "clips", "largest difference", "tolerance", ""), rows, numbers=True)
        beyond = [spread.question for spread in compared if not spread.is_within_tolerance]
        changed = [spread.question for spread in spreads if spread.changed]
        if changed:
            console.print_to_stderr(f"newer than the stored scores, and not compared: {', '.join(changed)}")
        console.print_to_stderr(f"no tolerance on the card, and not compared: {', '.join(NOT_COMPARED)}")
        faults = f"{len(beyond)} of {len(compared)} are beyond their tolerance: {', '.join(beyond)}"
        within = f"all {len(compared)} metrics and gates that can be compared are within their tolerance"
        console.print_to_stderr(faults if beyond else within)
    if any(not spread.is_within_tolerance for spread in spreads) or not any(spread.clips for spread in spreads):
        raise typer.Exit(1)
