"""What a call would change in the run that lies in its folder: nothing of an earlier one is lost in silence."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import count_and_noun
from revisit.engine.plan import Plan
from revisit.engine.resume import read_json_object_or_empty
from revisit.results.file_types import Details

OWN_FLAGS = ("layout", "reference")  # options of a suite with a flag of their own
SETTINGS = ("set", "protocol", "align", "parameters", "metrics", "limit", "truth", "judge")  # of a request
FLAGS = {"parameters": "--param", "metrics": "-m"}  # of those that the command calls otherwise


def is_run_folder(folder: Path) -> bool:
    """Whether a folder is a run directory."""
    facts = read_json_object_or_empty(folder / "run.json")
    return (folder / "plan.json").is_file() and {"suite", "protocol"} <= facts.keys()


def require_not_run_folder(source: Path) -> None:
    """Refuse a run directory in the place of clips."""
    if is_run_folder(source):
        raise UsageError(
            f"{source} is a run, no folder of clips: `revisit eval {source} --rescore` scores it again, and `revisit "
            "report`, `compare` and `table` read it"
        )


def require_out_separate_from_source(source: Path, out: Path) -> None:
    """Refuse a run directory that is the source, or a folder of it that is no run: clips and answers would mix."""
    source, out = source.resolve(), out.resolve()
    if out == source:
        raise UsageError(
            f"--out {out} is the source itself, where a run would write among the clips; choose another folder, such "
            f"as runs/{source.name}"
        )
    if out.is_relative_to(source) and out.is_dir() and any(out.iterdir()) and not is_run_folder(out):
        raise UsageError(
            f"--out {out} is a folder of the source, where a run would write among its files; choose a new folder, "
            "or one elsewhere"
        )


def replaced_answers_warning(out: Path, plan: Plan, request: Details) -> str:
    """A sentence on answers of the run in `out` that this call replaces or leaves out; nothing where it has none.

    Raises
    ------
    UsageError
        Where options of the suite differ, such as --reference, and clips are read or compared otherwise by them.
    """
    facts, earlier = read_json_object_or_empty(out / "run.json"), read_json_object_or_empty(out / "plan.json")
    before = facts.get("request") or {}
    if not earlier or before.get("source") != request["source"] or facts.get("adds"):
        return ""  # no run, that of another source, which is refused elsewhere, or one that calls add to
    _refuse_options_that_change_clips(out, plan, before, request, earlier)
    # As the earlier request was written: JSON has no tuples.
    now = {name: list(value) if isinstance(value, tuple) else value for name, value in request.items()}
    changed = [name for name in SETTINGS if name in before and now[name] != before[name]]
    if not changed:
        return _other_reading_warning(out, plan, earlier)
    asked = {check.id: plan.protocol_with_hash(check) for check in plan.checks}
    hashes = {**earlier.get("gates", {}), **earlier.get("metrics", {})}
    lost = sum(id not in asked for id in hashes)
    answered_anew = sum(id in asked and ("align" in changed or asked[id] != hash_) for id, hash_ in hashes.items())
    present = {case.id for case in plan.cases}
    clips = sum(entry["id"] not in present for entry in earlier.get("cases", ()))
    questions = f"of {count_and_noun(len(hashes), 'question')}"
    losses = [f"{lost} {questions} left out"] if lost else []
    losses += [f"{answered_anew} {questions} answered anew"] if answered_anew else []
    losses += [f"{clips} of {count_and_noun(len(earlier.get('cases', ())), 'clip')} left out"] if clips else []
    if not losses:
        return ""
    settings = ", ".join(
        f"{FLAGS.get(name, f'--{name}')} {_format_setting_value(before[name])} (now {_format_setting_value(now[name])})"
        for name in changed
    )
    return (
        f"{out} was made with {settings}: {', '.join(losses)}; the earlier command brings them back from the cache, "
        "and another --out keeps both"
    )


def _other_reading_warning(out: Path, plan: Plan, earlier: Details) -> str:
    """A sentence where clips of the run in `out` have other names now, as after a manifest was written beside them."""
    present = {case.id for case in plan.cases}
    names = {str(case.clip.path): case.id for case in plan.cases if not case.truth}
    paths = {entry["id"]: entry["clip"]["path"] for entry in earlier.get("cases", ()) if not entry.get("truth")}
    renamed = [f"{id} is {names[path]}" for id, path in paths.items() if id not in present and path in names]
    if not renamed:
        return ""
    return (
        f"{out} holds answers of another reading: {len(renamed)} of its {count_and_noun(len(paths), 'clip')} are "
        f"called otherwise now ({renamed[0]}), and their answers are replaced; another --out keeps both"
    )


def _refuse_options_that_change_clips(
    out: Path, plan: Plan, before: Details, request: Details, earlier: Details
) -> None:
    """Refuse other options of the suite where a clip of the earlier run has another truth by them, or another name."""
    old, new = (dict(option.split("=", 1) for option in one.get("options", ())) for one in (before, request))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    ids = {case.id for case in plan.cases}
    references = {
        entry["id"]: entry.get("reference_digest") for entry in earlier.get("cases", ()) if not entry.get("truth")
    }
    renamed = len(references.keys() - ids) if plan.partial is None else 0
    compared = sum(id in ids and digest != plan.references.get(id) for id, digest in references.items())
    if not names or not (renamed or compared):
        return
    of_clips = f"of its {count_and_noun(len(references), 'clip')} would be"
    effects = [f"{renamed} {of_clips} read otherwise"] if renamed else []
    effects += [f"{compared} {of_clips} compared with another truth or none"] if compared else []
    flags = {name: f"--{name} " if name in OWN_FLAGS else f"--option {name}=" for name in names}
    was, now = (
        " ".join(flag + shlex.quote(one[name]) if name in one else f"no {flag[:-1]}" for name, flag in flags.items())
        for one in (old, new)
    )
    raise UsageError(
        f"{out} holds a run with {was}, and this call has {now}: {' and '.join(effects)}; use the former to go on "
        "with that run, choose another --out to keep both, or --fresh to replace it"
    )


def _format_setting_value(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "all"
    return "none" if value in (None, "", {}) else str(value)
