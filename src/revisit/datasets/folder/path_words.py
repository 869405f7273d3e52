"""What a word in a path says by itself: the truth, a seed, a checkpoint, a known model, or nothing (`samples`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

_TRUTH = re.compile(r"(gt|groundtruth|truth|reference|ref)s?(video|clip|frame|mp4)?s?")
_SEED = re.compile(r"(?:^|[_\-. ])seed[_\-=. ]?(\d{1,18})(?=$|[_\-. ])", re.IGNORECASE)
_STEP = re.compile(r"(?<![^_\-. ])(?:steps?|ckpt|checkpoint|epoch|iter|iteration)[_\-=. ]?\d+[km]?$", re.IGNORECASE)
_SEPARATOR = re.compile(r"[_\-. ]+")
_NUMBERED = re.compile(r"(?:^|[_\-. ])(\d+)$")
_REAL = re.compile(r"(real|original|orig|target|actual)s?(video|clip|frame)?s?")
# Folders that say what lies in them, and not whose it is.
_GENERIC = re.compile(
    r"(sample|video|clip|output|generation|result|pred|prediction|mp4|frame|image|media|render)s?|"
    r"(out|gen|generated|fake|rgb|eval|val|test|train|inference|pred|output|sample)((video|clip|frame|image|sample)s?)?"
)
# Published models beside those of `revisit list generators`, and words that experiments call theirs.
_FAMILY = re.compile(
    r"wan|cogvideox?|cosmos|svd|svc|seva|ltxv?|ltxvideo|hunyuan|hunyuanvideo|opensora|sora|kling|veo|runway|pika|lingbot|"
    r"matrixgame|fantasyworld|yume|mochi|allegro|dynamicrafter|videocrafter|animatediff|worldmem|vmem|viewcrafter|"
    r"ours|baseline|ablation|finetuned|pretrained|exp|experiment|model|method|version"
)


def is_truth_word(word: str) -> bool:
    """Whether a name says that what it names is the truth: gt, Ground Truth, references, gt_videos."""
    return _TRUTH.fullmatch(_casefold_without_separators(word)) is not None


def may_be_truth_word(word: str) -> bool:
    """Whether a name may mean the truth, and may as well mean something else: real, original, target."""
    return _REAL.fullmatch(_casefold_without_separators(word)) is not None


def is_generic_word(word: str) -> bool:
    """Whether a name tells nothing of models or scenes: samples, videos, outputs."""
    return _GENERIC.fullmatch(_casefold_without_separators(word)) is not None


def is_checkpoint_word(word: str) -> bool:
    """Whether a name is that of a checkpoint: step_10000, epoch-3."""
    return _STEP.search(word) is not None


def mostly_model_names(words: Collection[str]) -> bool:
    """Whether most of these names are those of models: published ones, checkpoints, experiments."""
    return 2 * sum(is_checkpoint_word(word) or _is_model_name(word) for word in words) > len(words)


def mostly_scene_names(words: Collection[str]) -> bool:
    """Whether most of these names end in a number, as scenes are counted: Real_020, 0001; not ema_1000, ema_2000."""
    numbers = [int(match[1]) for word in words if (match := _NUMBERED.search(word)) is not None]
    return 2 * len(numbers) > len(words) and not are_checkpoint_numbers(numbers)


def are_checkpoint_numbers(numbers: Collection[int]) -> bool:
    """Whether numbers count steps of a training, as 1000 and 2000 do, rather than scenes or samples."""
    return max(numbers, default=0) >= 100 and all(number % 50 == 0 for number in numbers)


def split_checkpoint(word: str) -> tuple[str, str] | None:
    """A name without its checkpoint, and the checkpoint: kitchen_step_1000 is kitchen and step_1000; None without."""
    match = _STEP.search(word)
    return None if match is None else (word[: match.start()].rstrip("_-. "), match[0])


def is_digits_word(word: str) -> bool:
    """Whether a name is made of digits alone, separators aside."""
    return _casefold_without_separators(word).isdigit()


def split_seed(word: str) -> tuple[str, int | None]:
    """A name without its seed, and the seed: Real_020_seed3 is Real_020 and 3."""
    match = _SEED.search(word)
    if match is None:
        return word, None
    before, after = word[: match.start()], word[match.end() :]
    return before + after if before else _SEPARATOR.sub("", after, count=1), int(match[1])


def split_at_separators(word: str) -> Iterator[tuple[str, str, str]]:
    """(left, separator, right) of a name at each of its separators."""
    for match in _SEPARATOR.finditer(word):
        if match.start() and match.end() < len(word):
            yield word[: match.start()], match[0], word[match.end() :]


def strip_name(word: str, name: str) -> str:
    """A word without a name at one of its ends, where folders and files say it twice (kitchen/kitchen_wan)."""
    if word == name:
        return ""
    return next(
        (right if left == name else left for left, _, right in split_at_separators(word) if name in (left, right)),
        word,
    )


def strip_truth_word(word: str) -> str | None:
    """A name without the word at its end or beginning that says that it is the truth; None where there is none."""
    bases = [left for left, _, right in split_at_separators(word) if is_truth_word(right)]
    bases += [right for left, _, right in split_at_separators(word) if is_truth_word(left)]
    return min(bases, key=len, default=None)


def _casefold_without_separators(word: str) -> str:
    return _SEPARATOR.sub("", word.casefold())


def _is_model_name(word: str) -> bool:
    """Whether a name begins with that of a published model, or calls itself one."""
    heads = (re.match(r"[^\W\d_]*", text) for text in (_casefold_without_separators(word), word.casefold()))
    return any(head and (_FAMILY.fullmatch(head[0]) or head[0] in _generator_name_heads()) for head in heads)


@cache
def _generator_name_heads() -> frozenset[str]:
    from revisit.control.generators import load_generators

    published = (_casefold_without_separators(id) for id in load_generators() if id not in ("prompt", "poses"))
    return frozenset(match[0] for name in published if (match := re.match(r"[^\W\d_]+", name)) is not None)
