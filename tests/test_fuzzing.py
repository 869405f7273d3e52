"""A short seeded run of the fuzzer; `make fuzz` runs it at length."""

from __future__ import annotations

import pytest

from revisit.engine.cache import EvidenceCache
from tests.fuzzing import MEDIA, flips, fuzz, readers, render_worlds


def test_changed_files_are_read_or_refused_in_a_sentence(tmp_path):
    targets = readers(tmp_path / "corpus")
    ours = [reader for reader in targets if not reader.name.startswith("test.")]  # other tests register some
    texts = fuzz([reader for reader in ours if reader.name != MEDIA], 400, seed=11)
    media = fuzz([reader for reader in targets if reader.name == MEDIA], 6, seed=11)
    assert not texts.found and not media.found
    assert texts.inputs == 400 and texts.read.total() > 40 and texts.refused.total() > 40, "both happen"


@pytest.mark.long
def test_changed_datasets_are_read_or_refused_in_a_sentence(tmp_path):
    render_worlds(tmp_path / "worlds")
    targets = readers(tmp_path / "corpus", tmp_path / "worlds")
    suites = fuzz([reader for reader in targets if reader.name.startswith("suite")], 600, seed=12)
    assert not suites.found and suites.read.total() > 60 and suites.refused.total() > 20


def test_flipped_bits_of_evidence_are_noticed_and_heal(tmp_path):
    assert flips(EvidenceCache(tmp_path), 1500, seed=13) == (0, 0)
