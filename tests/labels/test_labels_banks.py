"""Reviews of MemoBench's question banks: what people keep, edit and drop, on the published banks themselves."""

from __future__ import annotations

import pytest

from revisit.core import UsageError
from revisit.labels.label import Label
from revisit.labels.label_files import label_export_files, write_files
from revisit.suites.memobench.question_bank import find_bank_file, read_bank, write_reviewed_banks
from tests.memo import clip_folder_of_bank


def test_reviews_make_the_final_questions(shared, tmp_path):
    banks = shared / "memobench/vqa_questions"
    path = sorted(banks.glob("*-questions.csv"))[3]
    bank = read_bank(path)
    first, second, third = (str(question.id) for question in bank.final[:3])
    clip = clip_folder_of_bank(bank)

    def label(question: str, rater: str, answer: str, text: str = "") -> Label:
        return Label("review", f"{clip}{question}", rater, question, answer, f"{clip}@gt", "gt", clip, text=text)

    new = "Is it, “still”, there?"
    said = [
        label(first, "a", "drop"), label(first, "b", "drop"), label(first, "c", "keep"),
        label(second, "a", "edit", new), label(second, "b", "edit", new), label(second, "c", "keep", "as it was"),
        label(third, "a", "drop"), label(third, "b", "keep"),  # split: it stays
    ]  # fmt: skip
    write_files(label_export_files(said, tmp_path), tmp_path)
    lines = write_reviewed_banks(banks, tmp_path, tmp_path / "out")
    made = read_bank(tmp_path / "out" / path.name)
    assert [q.id for q in made.final] == [q.id for q in bank.final if str(q.id) != first]
    assert made.final[0].text == new
    assert (made.start, made.truth, made.failure, made.hinted) == (bank.start, bank.truth, bank.failure, bank.hinted)
    assert f"{len(bank.final) - 1} of {len(bank.final)} questions kept, 1 of them in new words" in lines[0]
    assert find_bank_file(tmp_path / "out", clip) is not None
    write_files(label_export_files([label(first, "a", "keep")], tmp_path), tmp_path)
    write_reviewed_banks(banks, tmp_path / "reviews.json", tmp_path / "same")
    assert (tmp_path / "same" / path.name).read_bytes() == path.read_bytes()
    (tmp_path / "reviews.json").write_text('{"Nowhere_001": {"1": {"decision": "keep"}}}')
    with pytest.raises(UsageError, match="no bank of"):
        write_reviewed_banks(banks, tmp_path, tmp_path / "none")
    (tmp_path / "reviews.json").write_text("[]")
    with pytest.raises(UsageError, match="no reviews"):
        write_reviewed_banks(banks, tmp_path, tmp_path / "none")
