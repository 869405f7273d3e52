"""How well a diagnosis finds each kind of failure in rendered clips: F1 by kind, their mean, and the confusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from revisit.audit.schema import Content
from revisit.diagnosis.diagnose import SURE_ENOUGH, diagnose
from revisit.diagnosis.kinds import KINDS
from revisit.results import Results

PERFECT = "perfect"


def score_kinds(kinds: Sequence[str], clips: Sequence[tuple[str, Collection[str]]]) -> Content:
    """F1 of every kind, their mean, and how often clips of a kind (rows) were found to show each kind (columns).

    Parameters
    ----------
    kinds
        All kinds of failure.
    clips
        For each clip, its failure (or `perfect`) and the kinds that were found.
    """
    of_kind, counts = Counter(kind for kind, _ in clips), Counter(kind for _, ids in clips for kind in ids)
    pairs = Counter((row, kind) for row, ids in clips for kind in ids or ("",))
    scores: dict[str, Content] = {}
    for kind in kinds:
        right = pairs[kind, kind]
        f1 = round(2 * right / (of_kind[kind] + counts[kind]), 3) if of_kind[kind] else None
        scores[kind] = {"clips": of_kind[kind], "found": right, "wrongly": counts[kind] - right, "f1": f1}
    confusion = {
        row: {
            "clips": of_kind[row],
            "found": {kind: n for kind in kinds if (n := pairs[row, kind])},
            "nothing": pairs[row, ""],
        }
        for row in (PERFECT, *kinds)
    }
    values = [score["f1"] for score in scores.values() if score["f1"] is not None]
    return {"macro_f1": round(float(np.mean(values)), 3) if values else None, "kinds": scores, "confusion": confusion}


def score_diagnoses(results: Results) -> Content:
    """How well the diagnosis, rules included, finds the failures of a grid; a kind counts as found from 0.5 on."""
    clips = []
    for case in results.cases:
        kind, strength = str(case.annotations["kind"]), float(case.annotations["strength"])
        if kind == PERFECT or (kind in KINDS and strength >= SURE_ENOUGH):
            diagnosis = diagnose(results.of(case))
            findings = (*diagnosis.findings, *diagnosis.doubtful)
            clips.append((kind, {finding.kind for finding in findings if finding.confidence >= SURE_ENOUGH}))
    return score_kinds(list(KINDS), clips)
