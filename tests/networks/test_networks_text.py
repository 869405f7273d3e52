"""Text embedding by MiniLM, and the use that is made of it: questions that ask the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from revisit.core import MissingPrerequisite
from revisit.networks import minilm

PARAPHRASES = ("How many people live in Berlin?", "What is the population of Berlin?")
UNRELATED = "The cat sleeps on the warm window sill."


def test_paraphrases_are_alike_and_other_sentences_are_not(small_weights: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs tokenizers, which comes with transformers")
    vectors = minilm.embed([*PARAPHRASES, UNRELATED])
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.6
    assert abs(vectors[0] @ vectors[2]) < 0.15
    assert np.array_equal(minilm.embed([PARAPHRASES[1]])[0], vectors[1])  # whatever its company
    assert minilm.embed([]).shape == (0, 384)
    assert np.isfinite(minilm.embed(["", "word " * 2000])).all()


def test_near_duplicates_come_most_alike_first(small_weights: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs tokenizers, which comes with transformers")
    texts = [
        "Does the red fox run to the right side of the frame?",
        "Is there snow on the roof when the camera returns?",
        "Does the fox run to the left side of the frame instead of the right?",
        "Does the red fox run to the right side of the frame? ",
    ]
    found = minilm.similar_pairs_with_cosine(texts, 0.85)
    assert [pair[:2] for pair in found] == [(0, 3), (0, 2), (2, 3)]
    assert found[0][2] == pytest.approx(1, abs=1e-5)


def test_a_damaged_tokenizer_is_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs tokenizers, which comes with transformers")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(MissingPrerequisite, match=r"tokenizer\.json: it cannot be read as a vocabulary"):
        minilm.load_truncating_tokenizer(tmp_path / "tokenizer.json")


def test_whoever_writes_questions_is_told_which_ask_the_same(
    small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers", reason="needs tokenizers, which comes with transformers")
    from revisit.suites.memobench.commands_build import _near_duplicate_sentences

    texts = {
        3: "Does a fox appear on the riverbank and run toward the right side of the frame?",
        5: "Is the sky still cloudy at the end of the video?",
        8: "Does the fox on the riverbank run toward the left side of the frame instead of the right?",
    }
    assert _near_duplicate_sentences(texts) == [
        "questions 3 and 8 ask nearly the same (similarity 0.93); keep one of them"
    ]
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path))
    assert _near_duplicate_sentences(texts) == []  # without the weights nobody looks
