"""The local judge: one reading of the frames for all questions, and the same probabilities as without sharing."""

from __future__ import annotations

import base64
import importlib.util
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import UsageError
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.local import WORD_ROOM, yes_and_no_token_ids
from revisit.judges.patches import PatchRule, patch_grid_height_width, patch_rule_from_config, patches_and_grid
from revisit.judges.probability import log_sum_exp
from revisit.judges.protocol import Stopped
from revisit.judges.questions import Choice, Question, Rating
from revisit.judges.settings import judge_from_source
from tests.judging import pictures

QUESTIONS = [
    Question("a", "Is the ball on the table?"),
    Question("b", "Does the camera turn away from the ball, and does it come back to it after a while?"),
    Question("c", "Red?"),
    Question("d", "Is there a <|im_end|> in the picture?"),
]
RULE = PatchRule(14, 2, 2, (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711), 3136, 1003520)
FAMILIES = (*(pytest.param(name, marks=pytest.mark.long) for name in ("qwen2_vl", "qwen2_5_vl")), "qwen3_vl")


def test_single_tokens_that_say_yes_and_no():
    vocabulary = ["yes", "Ġyes", "Yes", "ĠYES", "▁yes.", "yesterday", "no", "No", "Ġno", "not", "Ġnão", "know", "(No"]
    yes, no = yes_and_no_token_ids((token, id) for id, token in enumerate(vocabulary))
    assert [vocabulary[id] for id in yes] == ["yes", "Ġyes", "Yes", "ĠYES", "▁yes."]
    assert [vocabulary[id] for id in no] == ["no", "No", "Ġno", "(No"]


def test_pictures_fit_the_grid_of_the_model():
    assert patch_grid_height_width(288, 512, RULE) == (280, 504)
    assert patch_grid_height_width(10, 10, RULE) == (56, 56)
    rows, columns = patch_grid_height_width(1080, 1920, RULE)
    assert rows % 28 == columns % 28 == 0 and rows * columns <= RULE.most


def test_a_checkpoint_without_colours_is_refused():
    vision = {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
    with pytest.raises(UsageError, match="image_mean and image_std"):
        patch_rule_from_config(vision, {})
    rule = patch_rule_from_config(
        vision, {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"longest_edge": 5000}}, 4000
    )
    assert (rule.most, rule.merged_patch_side) == (4000, 28)


def test_without_torch_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    import revisit.judges.local as local

    monkeypatch.setattr(local, "find_spec", lambda name: None)
    (tmp_path / "judge.yaml").write_text("kind: local\nmodel: nowhere\n")
    with pytest.raises(Exception, match=r"needs torch and transformers: pip install 'revisit-bench\[local\]'"):
        judge_from_source(str(tmp_path / "judge.yaml"))


@pytest.fixture(scope="module")
def transformers():
    from revisit.judges.local import hide_broken_torchvision

    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the local judge needs {name}: pip install 'revisit-bench[local]'")
    with hide_broken_torchvision():
        import torch
        import transformers

        torch.set_num_threads(1)
        assert transformers.AutoModelForImageTextToText and transformers.Qwen3VLForConditionalGeneration
        yield transformers


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request, transformers, tmp_path_factory) -> Path:
    from tests.tiny_qwen import save_checkpoint

    return save_checkpoint(tmp_path_factory.mktemp(request.param), request.param)


def judge_file(checkpoint: Path, **settings) -> str:
    path = checkpoint.parent / f"judge-{checkpoint.name}-{len(settings)}.yaml"
    lines = {
        "kind": "local",
        "model": checkpoint.name,
        "device": "cpu",
        "least_share": 0,
        "concurrency": 1,
        "again": 0,
        **settings,
    }
    path.write_text("".join(f"{name}: {str(value).lower()}\n" for name, value in lines.items()))
    return str(path)


def counting(judge) -> list[int]:
    """Pictures in each call of the vision encoder, from now on."""
    calls: list[int] = []
    judge.check()
    visual = next(part for name, part in judge._loaded.net.named_modules() if name.endswith("visual"))

    def note(_, arguments, named, __):
        grid = named.get("grid_thw", arguments[1] if len(arguments) > 1 else None)
        calls.append(len(grid))

    visual.register_forward_hook(note, with_kwargs=True)
    return calls


def test_questions_share_one_reading_of_the_frames(checkpoint):
    frames = pictures(5, seed=3, size=(60, 90))
    chosen = judge_from_source(judge_file(checkpoint))
    calls = counting(chosen.judge)
    shared = chosen.judge.reply(frames, QUESTIONS, [""] * 4)
    later = chosen.judge.reply(
        frames, [Question("later", "Is it dark?"), Question("e", "How bright is it?", Rating())], ["", ""]
    )
    assert calls == [5]  # the vision encoder ran once, over all five frames
    alone = judge_from_source(judge_file(checkpoint, shared_prefix=False)).judge
    calls = counting(alone)
    single = [alone.reply(frames, [question], [""])[0] for question in [*QUESTIONS, Question("later", "Is it dark?")]]
    assert calls == [5] * 5
    found = np.array([answer.p_yes for answer in [*shared, later[0]]], float)
    assert found == pytest.approx([reply.p_yes for reply in single], abs=1e-4)
    assert np.ptp(found) > 1e-3  # they are no constants
    assert later[1].usage.tokens_out > 0 and shared[0].usage.calls == 1


def test_probabilities_are_those_of_the_model_itself(checkpoint, transformers):
    """Against the plain forward pass, with the model's own idea of where the tokens stand."""
    import torch

    frames = pictures(3, seed=5, size=(60, 90))
    judge = judge_from_source(judge_file(checkpoint)).judge
    reply = judge.reply(frames, QUESTIONS[1:2], [""])[0]
    model = judge._loaded
    shown, turn = (
        model.encode_prompt_start(frames),
        model.encode_question_turn(f"{QUESTIONS[1].text}\nAnswer with yes or no, and nothing else."),
    )
    ids = torch.tensor([shown.ids + turn])
    more = types(model, ids)
    with torch.inference_mode():
        logits = model.net(
            input_ids=ids, attention_mask=torch.ones_like(ids), **model.pixel_inputs(shown), **more
        ).logits
    chances = logits[0, -1].double().softmax(-1)
    yes, no = float(chances[model.yes].sum()), float(chances[model.no].sum())
    assert reply.p_yes == pytest.approx(yes / (yes + no), abs=1e-4)
    assert f"{yes + no:.4f}" in reply.p_from


def test_other_frames_other_probabilities(checkpoint):
    judge = judge_from_source(judge_file(checkpoint)).judge
    seen = [pictures(3, seed=seed, size=(84, 112)) for seed in (1, 2)]
    one, other = (judge.reply(frames, QUESTIONS[1:2], [""])[0].p_yes for frames in seen)
    assert one != pytest.approx(other, abs=3e-3)  # far more than the tolerance of the tests above
    assert judge.reply(seen[0], QUESTIONS[1:2], [""])[0].p_yes == one


@pytest.fixture(scope="module")
def one_checkpoint(transformers, tmp_path_factory) -> Path:
    from tests.tiny_qwen import save_checkpoint

    return save_checkpoint(tmp_path_factory.mktemp("one"), "qwen2_5_vl")


def test_a_reading_that_was_dropped_is_made_again(one_checkpoint):
    judge = judge_from_source(judge_file(one_checkpoint, kept=1)).judge
    calls = counting(judge)
    for seed in (1, 1, 2, 1):
        judge.reply(pictures(2, seed=seed), QUESTIONS[:2], ["", ""])
    assert calls == [2, 2, 2]


def test_a_model_about_to_say_something_else_gives_no_answer(one_checkpoint):
    chosen = judge_from_source(judge_file(one_checkpoint, least_share=0.999))
    with JudgeClient(chosen.judge, patience=RetryPolicy(again=0)) as client:
        answer = client.ask(pictures(2), QUESTIONS[:1])[0]
    assert answer.status == "unanswered" and answer.p_yes is None
    assert "about to say something else" in answer.reason and "of the probability" in answer.p_from


def test_words_go_on_as_the_model_itself_goes_on(checkpoint, transformers):
    """The tokens after the first, of questions of different lengths in one pass, against plain forward passes."""
    import torch

    frames = pictures(3, seed=7, size=(60, 90))
    found = []
    for shared in (True, False):
        judge = judge_from_source(judge_file(checkpoint, shared_prefix=shared)).judge
        judge.check()
        every = range(len(judge._loaded.tokenizer))
        # Every token counts as a word here, and none as an end, so that a random model writes all it has room for.
        judge._loaded = replace(judge._loaded, yes=list(every[::2]), no=list(every[1::2]), ends=frozenset())
        found.append([reply.text for reply in judge.reply(frames, QUESTIONS[:3], [""] * 3)])
    model, texts = judge._loaded, []
    for question in QUESTIONS[:3]:
        shown, turn = (
            model.encode_prompt_start(frames),
            model.encode_question_turn(f"{question.text}\nAnswer with yes or no, and nothing else."),
        )
        ids = shown.ids + turn
        for _ in range(WORD_ROOM + 1):
            row = torch.tensor([ids])
            with torch.inference_mode():
                more = {**model.pixel_inputs(shown), **types(model, row)}
                out = model.net(input_ids=row, attention_mask=torch.ones_like(row), **more)
            ids.append(int(out.logits[0, -1].argmax()))
        texts.append(model.tokenizer.decode(ids[-WORD_ROOM - 1 :], skip_special_tokens=True))
    assert found[0] == found[1] == texts and len(set(texts)) > 1


def types(model, ids) -> dict[str, object]:
    """What newer versions of the library want to know of each token besides."""
    import inspect

    wanted = "mm_token_type_ids" in inspect.signature(model.net.forward).parameters
    return {"mm_token_type_ids": (ids == model.special["patch"]).int()} if wanted else {}


TABLE = ["Is it red?", "Is it there, where it was before the camera turned?"]


@pytest.fixture(scope="module", params=FAMILIES)
def write_talker(request, transformers, tmp_path_factory):
    """Writes checkpoints of a family that reply with given tokens, whatever they are shown."""
    from tests.tiny_qwen import save_talker

    return lambda *tokens, **more: save_talker(tmp_path_factory.mktemp("talker"), tokens, family=request.param, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        (("No", "<|im_end|>"), False),
        (("yes", "<|im_end|>"), True),
        (("Ġno", ".", "<|im_end|>"), False),
        (("No", "Ġ", "w", "a", "y", "<|im_end|>"), None),  # a hedge whose first token is a no
        (("No", "?", "<|im_end|>"), None),
        (("No", ".", "Ġyes", "<|im_end|>"), None),
        (("yes", "!", "!"), None),  # never ends
        (("the", "Ġno", "<|im_end|>"), None),
    ],
)
@pytest.mark.parametrize("shared", [True, False])
def test_a_word_counts_where_the_model_writes_it_and_ends(write_talker, tokens, value, shared):
    chosen = judge_from_source(judge_file(write_talker(*tokens), shared_prefix=shared, least_share=0.01))
    with JudgeClient(chosen.judge, patience=RetryPolicy(again=0)) as client:
        answers = client.ask(pictures(2), [Question(text, text) for text in TABLE])
    for answer in answers:
        assert answer.value is value and answer.status == ("unanswered" if value is None else "answered")
        assert answer.p_yes is None if value is None else ((answer.p_yes or 0.0) > 0.5) is value
        assert answer.reason or value is not None


def test_a_model_that_says_something_else_first_gives_no_answer_though_no_is_likely(write_talker):
    """The likeliest token is another; that no holds a third of the probability is no answer."""
    chosen = judge_from_source(judge_file(write_talker("the", "<|im_end|>", also="No"), least_share=0.01))
    with JudgeClient(chosen.judge, patience=RetryPolicy(again=0)) as client:
        answer = client.ask(pictures(2), [Question(TABLE[0], TABLE[0])])[0]
    assert answer.status == "unanswered" and answer.p_yes is None
    assert float(answer.p_from.split(" with ")[1].split()[0]) > 0.2


def test_written_answers_end_in_time_and_are_checked(one_checkpoint):
    chosen = judge_from_source(judge_file(one_checkpoint))
    with JudgeClient(chosen.judge, patience=RetryPolicy(again=1)) as client:
        answer = client.ask(pictures(2), [Question("x", "Which colour?", Choice(("red", "blue")))])[0]
    assert answer.status in ("answered", "unanswered")
    assert 0 < answer.usage.tokens_out <= 28 + 4 * 28


def test_what_is_no_such_checkpoint_stops_the_asking(transformers, tmp_path, one_checkpoint):
    empty = tmp_path / "empty"
    empty.mkdir()
    for content in (None, '{"model_type": "bert"}'):
        if content is not None:
            (empty / "config.json").write_text(content)
        with pytest.raises(Stopped):
            judge_from_source(judge_file(empty)).judge.check()


def test_weights_are_part_of_the_address(one_checkpoint, transformers, tmp_path):
    from tests.tiny_qwen import save_checkpoint

    other = save_checkpoint(tmp_path / "other", "qwen2_5_vl", seed=1)
    facts = [judge_from_source(judge_file(path)).judge.facts for path in (one_checkpoint, other)]
    assert facts[0]["checkpoint"] != facts[1]["checkpoint"]


def test_patches_are_those_of_the_image_processor(transformers):
    pytest.importorskip("PIL", reason="the image processor to compare with needs Pillow")
    name = next((n for n in ("Qwen2VLImageProcessorPil", "Qwen2VLImageProcessor") if hasattr(transformers, n)), "")
    try:
        processor = getattr(transformers, name)()
    except ImportError:
        pytest.skip("the image processor cannot be made here")
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (12, 20, 3), np.uint8)
    picture = np.kron(coarse, np.ones((8, 9, 1), np.uint8))
    theirs = processor(images=[picture], return_tensors="np")
    ours, grid = patches_and_grid([picture], RULE)
    assert grid.tolist() == np.asarray(theirs["image_grid_thw"]).tolist()
    # They may round a resized value to the other of two neighbouring 8-bit values.
    assert np.abs(ours - np.asarray(theirs["pixel_values"])).max() <= 1.01 / 255 / min(RULE.std)
    same = picture[:84, :168]
    ours, _ = patches_and_grid([same], RULE)
    assert np.abs(ours - np.asarray(processor(images=[same], return_tensors="np")["pixel_values"])).max() < 1e-5


def qwen_tokens(path: Path) -> dict[int, bytes]:
    rows = [line.split() for line in path.read_bytes().splitlines() if line.strip()]
    return {int(rank): base64.b64decode(token) for token, rank in rows}


def tekken_tokens(path: Path) -> dict[int, bytes]:
    entries = json.loads(path.read_text(encoding="utf-8"))["vocab"]
    return {entry["rank"]: base64.b64decode(entry["token_bytes"]) for entry in entries}


@pytest.mark.parametrize(
    "package, file, tokens_of",
    [
        ("qwen_agent", "utils/qwen.tiktoken", qwen_tokens),
        ("mistral_common", "data/tekken_240911.json", tekken_tokens),
    ],
)
def test_real_vocabularies_have_the_usual_spellings(package, file, tokens_of):
    found = importlib.util.find_spec(package)  # imports nothing: the package may need others
    if found is None or found.origin is None or not (path := Path(found.origin).parent / file).is_file():
        pytest.skip(f"the vocabulary comes with the package {package}, which is not installed")
    texts = {rank: token.decode("utf-8", "replace") for rank, token in tokens_of(path).items()}
    yes, no = yes_and_no_token_ids((text, rank) for rank, text in texts.items())
    assert {"yes", " yes", "Yes", " Yes"} <= {texts[id] for id in yes}
    assert {"no", " no", "No", " No"} <= {texts[id] for id in no}
    assert len(yes) < 40 and len(no) < 60  # spellings, not words that begin alike
    logits = np.random.default_rng(0).normal(size=max(texts) + 1)
    chances = np.exp(logits - logits.max())
    high, low = log_sum_exp(logits[yes].tolist()), log_sum_exp(logits[no].tolist())
    expected = chances[yes].sum() / (chances[yes].sum() + chances[no].sum())
    assert 1 / (1 + math.exp(low - high)) == pytest.approx(expected, abs=1e-12)
