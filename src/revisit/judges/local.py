"""A vision-language model of the Qwen-VL family on this machine (Qwen2-VL, Qwen2.5-VL, Qwen3-VL).

The frames of a clip come first and its questions after them, so the frames are encoded once, the model reads them
once, and what it keeps of them (its key-value cache) begins every question: a batch of yes-or-no probes is one pass
over the words of the probes alone. Prompts are chat turns with the same words as over HTTP (`wording`), every frame a
picture of its own. p_yes compares the spellings of yes and of no at the first token of the answer, and counts where
the model writes that word and ends: "No way to tell" begins with a no and answers nothing. All is written by greedy
decoding.

Needs torch and transformers, and no torchvision. Code that comes with a checkpoint is never run.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from revisit.core import MissingPrerequisite, RevisitError
from revisit.judges.budget import estimate_answer_tokens
from revisit.judges.patches import FILES, PatchRule, patch_rule_from_config, patches_and_grid, read_processor_settings
from revisit.judges.probability import log_sum_exp
from revisit.judges.protocol import CUT_OFF, Frames, Refused, Reply, Stopped, Usage
from revisit.judges.questions import Question, YesNo
from revisit.judges.replies import AROUND_TOKEN
from revisit.judges.wording import RULES, frames_intro, question_prompt, wording_digest

if TYPE_CHECKING:
    from torch import Tensor

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
SAMPLE = 1 << 20  # bytes at both ends of a weight file that go into the checkpoint's fingerprint
WORD_ROOM = 8  # tokens in which a yes or a no must have ended


class LocalSettings(BaseModel):
    """What a judge file says of a checkpoint."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str  # a folder, or a name on the Hugging Face hub
    revision: str = ""  # of a name on the hub
    device: str = "auto"  # cuda where there is one
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"  # auto: as the checkpoint says
    max_pixels: int | None = Field(default=None, gt=0)  # of a frame; as the checkpoint says if not given
    batch: int = Field(default=16, ge=1)  # questions in one pass
    kept: int = Field(default=4, ge=1)  # clips whose reading is kept
    shared_prefix: bool = True  # false reads the frames anew for every question: the same answers, slowly
    least_share: float = Field(default=0.01, ge=0, le=1)  # of the probability that yes and no must hold together


@dataclass(frozen=True)
class _Word:
    """How a model begins to answer a yes-or-no question."""

    values: Any  # log-probabilities of the first token
    tokens: list[int]  # the likeliest ones; none where the first is neither a yes nor a no
    ended: bool  # whether the model ended there by itself


@dataclass(frozen=True)
class _PromptStart:
    """The beginning of a prompt: its tokens, their places, and its pictures as patches."""

    ids: list[int]
    places: np.ndarray  # (3, tokens): time, row and column, as the model's rotary embedding takes them
    next: int  # the place of the token that follows
    patches: np.ndarray
    grid: np.ndarray


class LocalJudge:
    """A checkpoint on this machine. One question at a time or many: calls wait for each other."""

    def __init__(self, settings: LocalSettings, folder: Path = Path()) -> None:
        missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
        if missing:
            raise MissingPrerequisite(
                f"a local judge needs {' and '.join(missing)}: pip install 'revisit-bench[local]'"
            )
        inside = folder / Path(settings.model).expanduser()
        self.path = inside if inside.is_dir() else None
        self.settings, self.batch = settings, settings.batch
        self._name = inside.name if self.path else settings.model
        self.facts: Mapping[str, object] = {
            "judge": "local",
            "model": self._name,
            "revision": settings.revision,
            "checkpoint": checkpoint_digest(self.path) if self.path else "",
            **{name: getattr(settings, name) for name in ("dtype", "max_pixels", "shared_prefix", "least_share")},
            "wording": wording_digest(),
        }
        self._lock = threading.Lock()
        self._read: OrderedDict[str, tuple[Any, int, int]] = OrderedDict()  # frames -> cache, tokens, next place

    def check(self) -> None:
        """Load the model; Stopped where it cannot be."""
        with self._lock:
            _ = self._loaded

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """The replies to all questions; the yes-or-no ones in one pass."""
        import torch

        if any(question.rules for question in questions):
            raise Refused("this judge answers questions about frames; name a server that writes text")
        prompts = [question_prompt(question, note) for question, note in zip(questions, notes, strict=True)]
        plain = [k for k, question in enumerate(questions) if isinstance(question.schema, YesNo)]
        replies: dict[int, Reply] = {}
        with self._lock, torch.inference_mode():
            model = self._loaded
            turns = [model.encode_question_turn(prompts[k]) for k in plain]
            for k, turn, word in zip(plain, turns, self._begin_answers_after_frames(frames, turns), strict=True):
                replies[k] = self._yes_no_reply(word, len(turn))
            for k in set(range(len(questions))) - set(plain):
                room = (16 + 3 * estimate_answer_tokens(questions[k].schema)) * (4 if notes[k] else 1)
                replies[k] = self._greedy_reply(frames, model.encode_question_turn(prompts[k]), room)
        # One pass over a batch is one call.
        return [replace(replies[k], usage=replace(replies[k].usage, calls=int(k == 0))) for k in range(len(questions))]

    def close(self) -> None:
        self._read.clear()

    def _yes_no_reply(self, word: _Word, tokens: int) -> Reply:
        """What the model writes, with the probability of yes from the log-probabilities of its first token."""
        model = self._loaded
        yes, no = (log_sum_exp(word.values[ids].tolist()) for ids in (model.yes, model.no))
        share = math.exp(min(log_sum_exp([yes, no]), 0.0))
        source = f"{len(model.yes)} spellings of yes and {len(model.no)} of no, with {share:.4f} of the probability"
        usage = Usage(0, tokens, max(1, len(word.tokens)))
        text = model.tokenizer.decode(word.tokens, skip_special_tokens=True)
        p_yes = round(1 / (1 + math.exp(min(no - yes, 700.0))), 6)
        fault = "" if word.ended else CUT_OFF
        if share < self.settings.least_share or not word.tokens:
            fault = "expected yes or no, and the model was about to say something else"
        return Reply(text, p_yes, source, usage, self._name, fault)

    def _greedy_reply(self, frames: Frames, turn: list[int], room: int) -> Reply:
        """What the model writes, token by token, always the likeliest one."""
        model = self._loaded
        cache, length, place = self._copy_cache_of_frames(frames)
        ids, output = turn, list[int]()
        while len(output) < room:
            places = _text_position_ids(place, len(ids))
            length, place = length + len(ids), place + len(ids)
            out = model.forward([ids], places, [[1] * length], past_key_values=cache, use_cache=True)
            ids = [int(out.logits[0, -1].argmax())]
            if ids[0] in model.ends:
                break
            output += ids
        text = model.tokenizer.decode(output, skip_special_tokens=True)
        usage = Usage(0, len(turn), len(output))
        return Reply(text, None, "", usage, self._name, CUT_OFF if len(output) == room else "")

    def _begin_answers_after_frames(self, frames: Frames, turns: Sequence[list[int]]) -> list[_Word]:
        """How the model begins its answers after the frames and each of the turns."""
        if not turns:
            return []
        model = self._loaded
        if not self.settings.shared_prefix:
            return [self._begin_answer_without_cache(frames, turn) for turn in turns]
        cache, length, place = self._copy_cache_of_frames(frames)
        cache.batch_repeat_interleave(len(turns))
        longest = max(map(len, turns))
        # Padding lies behind the words, where no word looks.
        ids = [turn + [model.pad] * (longest - len(turn)) for turn in turns]
        mask = [[1] * (length + len(turn)) + [0] * (longest - len(turn)) for turn in turns]
        places = _text_position_ids(place, longest, len(turns))
        out = model.forward(ids, places, mask, past_key_values=cache, use_cache=True)
        values = [out.logits[k, len(turn) - 1].float().log_softmax(-1) for k, turn in enumerate(turns)]

        def next_token_of_each(step: int, tokens: list[int]) -> list[int]:
            nonlocal mask
            mask = [[*row, 1] for row in mask]
            at = np.array([[place + len(turn) + step] for turn in turns])
            places = np.broadcast_to(at, (3, len(turns), 1))
            out = model.forward([[token] for token in tokens], places, mask, past_key_values=cache, use_cache=True)
            return [int(row[-1].argmax()) for row in out.logits]

        return self._complete_yes_no_words(values, next_token_of_each)

    def _begin_answer_without_cache(self, frames: Frames, turn: list[int]) -> _Word:
        """The same for one turn, with the frames read for it alone."""
        model, prompt = self._loaded, self._loaded.encode_prompt_start(frames)
        ids = prompt.ids + turn

        def next_token_log_probs() -> Any:
            words = _text_position_ids(prompt.next, len(ids) - len(prompt.ids))
            places = np.concatenate([prompt.places[:, None], words], axis=2)
            out = model.forward([ids], places, [[1] * len(ids)], **model.pixel_inputs(prompt))
            return out.logits[0, -1].float().log_softmax(-1)

        def next_token_of_each(step: int, tokens: list[int]) -> list[int]:
            ids.extend(tokens)
            return [int(next_token_log_probs().argmax())]

        return self._complete_yes_no_words([next_token_log_probs()], next_token_of_each)[0]

    def _complete_yes_no_words(
        self, values: Sequence[Any], go_on: Callable[[int, list[int]], list[int]]
    ) -> list[_Word]:
        """The likeliest tokens of each answer that begins with a yes or a no, until it ends or has no room.

        `go_on` takes the number of the step and a token per answer, and gives the token that follows each.
        """
        model = self._loaded
        tokens = [int(row.argmax()) for row in values]
        tokens_of_answers: list[list[int]] = [[token] if token in {*model.yes, *model.no} else [] for token in tokens]
        open_ = {k for k, answer in enumerate(tokens_of_answers) if answer}
        ended: set[int] = set()
        for step in range(WORD_ROOM):
            if not open_:
                break
            tokens = go_on(step, tokens)
            ended |= {k for k in open_ if tokens[k] in model.ends}
            open_ -= ended
            for k in open_:
                tokens_of_answers[k].append(tokens[k])
        return [_Word(row, tokens_of_answers[k], k in ended) for k, row in enumerate(values)]

    def _copy_cache_of_frames(self, frames: Frames) -> tuple[Any, int, int]:
        """A copy of what the model keeps of the frames, the number of their tokens, and the next place."""
        if frames.digest not in self._read:
            model = self._loaded
            prompt = model.encode_prompt_start(frames)
            options = {"use_cache": True, "logits_to_keep": 1, **model.pixel_inputs(prompt)}
            out = model.forward([prompt.ids], prompt.places[:, None], [[1] * len(prompt.ids)], **options)
            self._read[frames.digest] = out.past_key_values, len(prompt.ids), prompt.next
            while len(self._read) > self.settings.kept:
                self._read.popitem(last=False)
        self._read.move_to_end(frames.digest)
        cache, length, place = self._read[frames.digest]
        return copy.deepcopy(cache), length, place

    @cached_property
    def _loaded(self) -> _Loaded:
        return _load_checkpoint(self.settings, self.path)


@dataclass(frozen=True)
class _Loaded:
    """A checkpoint in memory."""

    net: Any
    tokenizer: Any
    rule: PatchRule
    device: Any
    special: Mapping[str, int]  # start and end of a turn and of a picture, and the token that stands for a patch
    yes: list[int]
    no: list[int]
    pad: int
    ends: frozenset[int]

    def forward(self, ids: list[list[int]], places: np.ndarray, attention: list[list[int]], **options: Any) -> Any:
        """What the network makes of rows of tokens at their places; `attention` is 1 where it may look, else 0."""
        import torch

        rows, mask, at = (torch.tensor(values, device=self.device) for values in (ids, attention, places))
        return self.net(input_ids=rows, attention_mask=mask, position_ids=at, **options)

    def encode_text(self, words: str) -> list[int]:
        """Tokens of plain words: what looks like a control token in them is none."""
        return list(self.tokenizer.encode(words.replace("<|", "< |"), add_special_tokens=False))

    def encode_question_turn(self, words: str) -> list[int]:
        """Tokens from the end of the pictures up to the beginning of the answer."""
        start, end = self.special["start"], self.special["end"]
        return [*self.encode_text(words), end, *self.encode_text("\n"), start, *self.encode_text("assistant\n")]

    def encode_prompt_start(self, frames: Frames) -> _PromptStart:
        """The beginning of the prompt: the rules and the pictures."""
        start, end, text = self.special["start"], self.special["end"], self.encode_text
        head = [start, *text(f"system\n{RULES}"), end, *text("\n"), start, *text("user\n")]
        if not frames.jpegs:
            raise Refused("a local judge needs at least one frame")
        patches, grid = patches_and_grid(frames.pictures(), self.rule)
        ids, places = [*head, *text(frames_intro(frames.times)), self.special["picture"]], []
        places.append(np.broadcast_to(np.arange(len(ids)), (3, len(ids))))
        place = len(ids)
        for number, (_, rows, columns) in enumerate(grid // (1, self.rule.merge, self.rule.merge)):
            row, column = np.divmod(np.arange(rows * columns), columns)
            places.append(place + np.stack([np.zeros_like(row), row, column]))
            place += int(max(rows, columns))
            between = [self.special["picture end"]]
            if number + 1 < len(grid):
                between.append(self.special["picture"])
            ids += [self.special["patch"]] * int(rows * columns) + between
            places.append(np.broadcast_to(np.arange(place, place + len(between)), (3, len(between))))
            place += len(between)
        return _PromptStart(ids, np.concatenate(places, axis=1).astype(np.int64), place, patches, grid)

    def pixel_inputs(self, prompt: _PromptStart) -> dict[str, Tensor]:
        """The pictures as the model takes them."""
        import torch

        patches = torch.from_numpy(prompt.patches).to(self.device, self.net.dtype)
        return {"pixel_values": patches, "image_grid_thw": torch.from_numpy(prompt.grid).to(self.device)}


def checkpoint_digest(folder: Path) -> str:
    """A fingerprint of a checkpoint's files: names, sizes, small files whole, both ends of large ones."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in (".json", ".safetensors", ".txt", ".jinja")):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE))
            file.seek(max(size - SAMPLE, 0))
            digest.update(file.read(SAMPLE))
    return digest.hexdigest()[:24]


@contextmanager
def hide_broken_torchvision() -> Iterator[None]:
    """Hide a torchvision that cannot be imported (built for another torch), which transformers would stumble over."""
    try:
        if find_spec("torchvision") is not None:
            importlib.import_module("torchvision")
        broken = False
    except Exception:  # it fails in many ways: a missing library, an unknown operator
        broken = True
    if not broken:
        yield
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    sys.modules["torchvision"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop("torchvision", None)


@hide_broken_torchvision()
def _load_checkpoint(settings: LocalSettings, path: Path | None) -> _Loaded:
    """The checkpoint, ready to be asked; Stopped where it cannot be."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoTokenizer

    name = str(path or settings.model)
    options: dict[str, object] = {"trust_remote_code": False}
    if path is not None:
        options["local_files_only"] = True
    elif settings.revision:
        options["revision"] = settings.revision
    try:
        config = AutoConfig.from_pretrained(name, **options)
        if config.model_type not in FAMILIES:
            raise Stopped(f"{name} is a {config.model_type} model; a local judge supports {', '.join(FAMILIES)}")
        processor = _image_processor_settings(name, path, options)
        rule = patch_rule_from_config(config.vision_config.to_dict(), processor, settings.max_pixels)
        device = "cuda" if settings.device == "auto" and torch.cuda.is_available() else settings.device
        device = torch.device("cpu" if device == "auto" else device)
        tokenizer = AutoTokenizer.from_pretrained(name, **options)
        net = AutoModelForImageTextToText.from_pretrained(name, dtype=settings.dtype, use_safetensors=True, **options)
        net = net.eval().to(device)
    except RevisitError as error:
        raise Stopped(str(error)) from None
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise Stopped(f"{name} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
    start, end = (tokenizer.convert_tokens_to_ids(token) for token in ("<|im_start|>", "<|im_end|>"))
    special = {
        "start": start,
        "end": end,
        "picture": config.vision_start_token_id,
        "picture end": config.vision_end_token_id,
        "patch": config.image_token_id,
    }
    if None in special.values() or tokenizer.unk_token_id in (start, end):
        raise Stopped(f"{name}: the tokenizer has no <|im_start|> or <|im_end|>; is it an instruction-tuned Qwen-VL?")
    yes, no = yes_and_no_token_ids(tokenizer.get_vocab().items())
    if not yes or not no:
        raise Stopped(f"{name}: its vocabulary has no single token for yes, or none for no")
    eos = getattr(net.generation_config, "eos_token_id", None)
    ends = {end, tokenizer.eos_token_id, *(eos if isinstance(eos, Sequence) else [eos])} - {None}
    return _Loaded(net, tokenizer, rule, device, special, yes, no, end, frozenset(ends))


def _image_processor_settings(name: str, path: Path | None, options: Mapping[str, object]) -> Mapping[str, Any]:
    """The image processor's settings of a checkpoint, without making the processor, which may need torchvision."""
    if path is None:
        from transformers.utils import cached_file

        file = cached_file(name, FILES[0], revision=options.get("revision"))
        path = Path(str(file)).parent
    return read_processor_settings(path)


def _text_position_ids(place: int, count: int, rows: int = 1) -> np.ndarray:
    """Places (3, rows, count) of words, one after the other."""
    return np.tile(np.arange(place, place + count), (3, rows, 1))


# How byte-level and SentencePiece vocabularies write spaces and line ends.
SPACES = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t", "č": "\r"})


def yes_and_no_token_ids(vocabulary: Iterable[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Ids of the tokens that are a whole yes, and a whole no, whatever their case and the quotes or stops around."""
    ids: dict[str, list[int]] = {"yes": [], "no": []}
    for token, number in vocabulary:
        word = token.translate(SPACES).strip(AROUND_TOKEN).lower()
        if word in ids:
            ids[word].append(number)
    return sorted(ids["yes"]), sorted(ids["no"])
