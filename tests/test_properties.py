"""Properties that hold for any input: manifests, plans, the protocol's hash, caches and records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from revisit.core import (
    DERIVED,
    GATES,
    METRICS,
    OBSERVERS,
    Case,
    Clip,
    GateResult,
    Reason,
    Record,
    Score,
    Suite,
    Target,
    digest,
    evidence,
    evidence_id,
    gate,
    metric,
    observer,
)
from revisit.datasets.clips import read_manifest
from revisit.engine import dependencies
from revisit.engine.cache import EvidenceCache
from revisit.engine.dataset_cases import select_stratified_cases
from revisit.engine.dependencies import ObserverSet, protocol_facts, short_hash
from revisit.engine.plan import make_plan
from revisit.evidence.judged import JudgeFrames
from revisit.media import encode_mp4
from revisit.observers.sets import load_roles
from revisit.results.record_files import (
    RecordLines,
    RecordWriter,
    case_from_json,
    case_to_json,
    record_from_line,
    record_to_line,
)
from revisit.results.tables import standard_summary
from tests.conftest import moving_frames

QUICK = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
NAMES = st.text(min_size=1, max_size=12)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_subnormal=False) | st.text(max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


# Manifests


@QUICK
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["id", "model", "video", "seed", "prompt", "annotations", "fps"]), JSON),
        max_size=6,
    )
)
def test_every_line_of_a_manifest_is_a_case_or_a_reason_and_ids_are_unique(lines):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "manifest.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        entries = list(read_manifest(path))
        assert len(entries) == len(lines)
        ids = [entry.id for entry in entries if isinstance(entry, Case)]
        assert len(ids) == len(set(ids))
        for entry in entries:
            if not isinstance(entry, Case):
                assert entry.reason.strip() and "\n" not in entry.reason
            else:
                assert entry.clip.path.resolve().is_relative_to(path.parent.resolve())


# Plans


def cases(names: list[tuple[str, str, int]]) -> list[Case]:
    return [
        Case(f"{sample}@{model}#{seed}", "t", model, sample, Clip(Path(f"{model}/{sample}.mp4")), seed=seed)
        for sample, model, seed in names
    ]


KEYS = st.lists(st.tuples(NAMES, st.sampled_from("abc"), st.integers(0, 2)), max_size=25, unique=True)


@QUICK
@given(KEYS, st.integers(1, 30), st.randoms(use_true_random=False))
def test_a_limited_choice_is_fair_and_does_not_depend_on_the_order(names, limit, chance):
    made = cases(names)
    chosen = select_stratified_cases(made, limit)
    shuffled = list(made)
    chance.shuffle(shuffled)
    assert {case.id for case in chosen} == {case.id for case in select_stratified_cases(shuffled, limit)}
    assert len(chosen) == min(limit, len(made))
    counts = [sum(case.model == model for case in chosen) for model in "abc" if any(c.model == model for c in made)]
    left = [sum(case.model == model for case in made) for model in "abc" if any(c.model == model for c in made)]
    assert all(many <= few + 1 or few == whole for many in counts for few, whole in zip(counts, left, strict=True))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    for seed in range(3):
        encode_mp4(folder / f"{seed}.mp4", moving_frames(6, seed=seed), fps=8)
    return folder


@evidence(id="test_level")
@dataclass(frozen=True)
class Level:
    index: np.ndarray
    mean: np.ndarray


@observer(id="test.level", version=1, kind="frame", makes=Level, size=16)
def level(batch, *, gain: float = 1.0):
    return Level(batch.index, gain * np.array([rgb.mean() for rgb in batch.rgb]))


@gate(id="test_level_gate", version=1, title="a gate", needs=(Level,))
def level_gate(seen, *, least: float = 0.0):
    """Open."""
    return GateResult("open", "seen")


@metric(
    id="test_level_mean",
    version=1,
    title="level",
    unit="score",
    range=(0, None),
    higher_is_better=True,
    needs=(Level,),
    gates=("test_level_gate",),
)
def level_mean(seen, *, power: float = 1.0):
    """The mean level."""
    return Score(float(seen.mean.mean()))


def plan_of(made: list[Case], **more: Any):
    suite = Suite(
        "t",
        {"protocols": {"p": {}}},
        lambda source, roots: made,
        lambda source: True,
        lambda: ["test_level_mean"],
        standard_summary,
    )
    return make_plan(suite, Path(), ObserverSet("test", {"test_level": level}), **more)


@QUICK
@given(names=st.lists(st.tuples(NAMES, st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=8))
def test_a_plan_is_the_same_every_time_and_its_ids_are_unique(clips, names):
    made = [
        replace(case, clip=Clip(clips / f"{number % 3}.mp4")) for number, case in enumerate(cases(names))
    ]  # names may occur twice
    one, two = plan_of(made), plan_of(made)
    assert one.as_json() == two.as_json()
    json.dumps(one.as_json(), allow_nan=False).encode()
    ids = [case.id for case in one.cases]
    assert len(ids) == len(set(ids)) and len(one.cases) + len(one.rejected) == len(made)
    assert not {entry.id for entry in one.rejected} & set(ids)
    keys = {case.id: one.wanted[case.id].keys["test_level"] for case in one.cases}
    assert all((keys[a] == keys[b]) == (one.digests[a] == one.digests[b]) for a in ids for b in ids)
    assert sorted(clip.digest for job in one.observing_jobs_for(one.tasks) for clip in job.clips) == sorted(
        set(one.digests.values())
    )


# The protocol's hash: whatever a number depends on changes it


ASKING = replace(level, id="test.asking", kind="judge", shows=JudgeFrames)


def facts_with(**changes: Any) -> Any:
    """What is hashed of a judged metric with a gate, after a change of one thing that it depends on."""
    shown = changes.get("shown", OBSERVERS["judge.frames"])
    asking = changes.get("asking", ASKING)
    judge = changes.get("judge", {"judge": "openai", "model": "m", "server": "s"})
    observers = ObserverSet("test", {"test_level": asking, "judge_frames": shown}, judge)
    return protocol_facts(changes.get("check", level_mean), observers, changes.get("parameters", {}))


EVIDENCE = ("evidence", "test_level")
CHANGES: dict[tuple[str, ...], Callable[[], dict[str, Any]]] = {
    ("id",): lambda: facts_with(check=replace(level_mean, id="test_other")),
    ("version",): lambda: facts_with(check=replace(level_mean, version=2)),
    ("params",): lambda: facts_with(parameters={"test_level_mean": {"power": 2.0}}),
    ("gates", "test_level_gate", "id"): lambda: facts_with(check=replace(level_mean, gates=())),
    ("gates", "test_level_gate", "version"): lambda: _with_gate(version=2),
    ("gates", "test_level_gate", "params"): lambda: facts_with(parameters={"test_level_gate": {"least": 1.0}}),
    ("gates", "test_level_gate", "evidence"): lambda: _with_gate(needs=()),
    ("gates", "test_level_gate", "gates"): lambda: facts_with(check=replace(level_mean, gates=())),
    (*EVIDENCE, "observer"): lambda: facts_with(asking=replace(ASKING, id="test.else")),
    (*EVIDENCE, "version"): lambda: facts_with(asking=replace(ASKING, version=2)),
    (*EVIDENCE, "frames"): lambda: facts_with(asking=replace(ASKING, frames=5)),
    (*EVIDENCE, "size"): lambda: facts_with(asking=replace(ASKING, size=17)),
    (*EVIDENCE, "weights"): lambda: _with_weights(),
    (*EVIDENCE, "params"): lambda: facts_with(parameters={"test.asking": {"gain": 2.0}}),
    (*EVIDENCE, "decoding"): lambda: _with_decoding(),
    (*EVIDENCE, "judge"): lambda: facts_with(judge={"judge": "openai", "model": "m", "server": "another"}),
    (*EVIDENCE, "shown"): lambda: facts_with(shown=replace(OBSERVERS["judge.frames"], version=99)),
}


def _with_gate(**changes: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(GATES._things, "test_level_gate", replace(level_gate, **changes))
        return facts_with()


def _with_weights() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies.weights, "digests", lambda ids: {"net": "0" * 64})
        return facts_with()


def _with_decoding() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies, "DECODING_RULE", 999)
        return facts_with()


def leaves(facts: dict[str, Any], path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The places of what is hashed; below evidence and gates, of each of them."""
    found = set()
    for name, value in facts.items():
        deeper = (
            isinstance(value, dict)
            and value
            and (name in ("evidence", "gates") or path[-1:] in (("evidence",), ("gates",)))
        )
        found |= leaves(value, (*path, name)) if deeper else {(*path, name)}
    return found


def test_whatever_is_hashed_of_a_protocol_is_tested_here():
    """A field that is added must be added above; one that is removed leaves a change above without effect."""
    assert {place for place in leaves(facts_with()) if place[:3] != ("gates", "test_level_gate", "evidence")} == {
        place for place in CHANGES if place != ("gates", "test_level_gate", "evidence")
    }


@pytest.mark.parametrize("place", list(CHANGES), ids=".".join)
def test_a_change_of_anything_a_number_depends_on_changes_the_hash(place):
    assert short_hash(CHANGES[place]()) != short_hash(facts_with()) == short_hash(facts_with())


def test_derived_evidence_counts_by_version_and_parameters():
    check, lite = METRICS["return_consistency"], ObserverSet("lite", load_roles("lite"))
    before = short_hash(protocol_facts(check, lite, {}))
    id, *_ = [evidence_id(kind) for kind in check.needs if evidence_id(kind) in DERIVED]
    for change in ({"version": 99}, {"params": {**DERIVED[id].params, "another": 1}}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(DERIVED._things, id, replace(DERIVED[id], **change))
            assert short_hash(protocol_facts(check, lite, {})) != before, change


def test_precision_reference_alignment_and_inputs_are_part_of_the_address_of_evidence(clips, monkeypatch):
    pairs = replace(level, id="test.pairs", pairs=True)
    aimed = replace(level, id="test.aimed", inputs=("target",))

    def key(maker: Any, **more: Any) -> str:
        align = more.pop("align", "auto")
        case = Case(
            "a@m",
            "t",
            "m",
            "a",
            **{
                "clip": Clip(clips / "0.mp4"),
                "reference": Clip(clips / "1.mp4"),
                "target": Target("cup", (0, 0, 1, 1)),
                **more,
            },
        )
        suite = Suite(
            "t",
            {"protocols": {"p": {}}},
            lambda source, roots: [case],
            lambda source: True,
            lambda: ["test_level_mean"],
            standard_summary,
        )
        plan = make_plan(suite, Path(), ObserverSet("test", {"test_level": maker}), align=align)
        return plan.wanted["a@m"].keys["test_level"]

    assert key(level) != key(level, clip=Clip(clips / "2.mp4")) != key(level, clip=Clip(clips / "2.mp4", start=1))
    assert key(level, clip=Clip(clips / "2.mp4", count=3)) != key(level, clip=Clip(clips / "2.mp4"))
    assert key(level, clip=Clip(clips / "2.mp4", disturbed="noise")) != key(level, clip=Clip(clips / "2.mp4"))
    assert key(pairs) != key(pairs, reference=Clip(clips / "2.mp4"))
    assert key(pairs) != key(pairs, align="stretch")
    assert key(aimed) != key(aimed, target=Target("cup", (0, 0, 0.5, 1)))
    assert key(level) == key(level, target=Target("cup", (0, 0, 0.5, 1))), (
        "what an observer does not see does not count"
    )


# Caches


@QUICK
@given(st.integers(0, 12), st.integers(0, 2**32 - 1), st.binary(min_size=20, max_size=20))
def test_what_is_saved_is_what_is_loaded(count, seed, key):
    numbers = np.random.default_rng(seed).normal(size=count)
    numbers[numbers > 1.5] = np.nan
    with TemporaryDirectory() as folder:
        cache = EvidenceCache(Path(folder))
        cache.save(key.hex(), Level(np.arange(count), numbers))
        found = cache.load(Level, key.hex())
        assert (
            cache.verify_or_drop(key.hex())
            and found.mean.tobytes() == numbers.tobytes()
            and found.mean.dtype == numbers.dtype
        )


# Equal values have equal digests, different ones different


@QUICK
@given(JSON, JSON)
def test_digests_follow_values(one, other):
    assert digest(one, 40) == digest(json.loads(json.dumps(one)), 40)
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        assert digest(one, 40) != digest(other, 40)


# Records

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def records(draw):
    box = tuple(draw(st.floats(0, 1, allow_subnormal=False)) for _ in range(4))
    case = Case(
        draw(PLAIN),
        "t",
        draw(PLAIN),
        draw(PLAIN),
        Clip(Path(draw(st.from_regex(r"[a-z]{1,8}\.mp4", fullmatch=True)))),
        subset=draw(PLAIN),
        prompt=draw(PLAIN),
        seed=draw(st.integers()),
        target=draw(st.none() | st.just(Target("cup", box))),
        phases=draw(st.none() | st.just((3, 7))),
        annotations=draw(st.dictionaries(PLAIN, NUMBERS | PLAIN, max_size=3)),
    )
    status = draw(st.sampled_from(["scored", "unscored", "failed", "open", "closed", "unsure"]))
    is_gate = status in ("open", "closed", "unsure")
    scored = status == "scored"
    return Record(
        case,
        draw(PLAIN),
        is_gate,
        status,
        draw(NUMBERS) if scored else None,
        draw(NUMBERS) if scored else None,
        draw(PLAIN),
        None if scored or status == "open" else Reason("failed", f"x{draw(PLAIN)}"),
        {"x": draw(NUMBERS)},
        draw(st.integers(0, 9)),
        "p:1",
        draw(PLAIN),
    )


@QUICK
@given(st.lists(records(), max_size=5))
def test_records_survive_their_file(made):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        with RecordWriter(path) as writer:
            for record in made:
                writer.append(record)
        known = {(case, id): line for case, mine in RecordLines(path).newest.items() for id, line in mine.items()}
        last = {(record.case.id, record.question): record for record in made}
        assert known.keys() == last.keys()
        for key, record in last.items():
            assert record_from_line(known[key], record.case) == record
            assert record_to_line(record_from_line(known[key], record.case)) == record_to_line(record)
            assert case_from_json(json.loads(json.dumps(case_to_json(record.case)))) == record.case
            assert all(math.isfinite(value) for value in record.facts.values())
