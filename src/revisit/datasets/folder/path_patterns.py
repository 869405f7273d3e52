"""Layouts as users write them: `{scene}/{model}.mp4` says which part of a path is the scene, and which the model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from revisit.core import UsageError
from revisit.media import CLIP_SUFFIXES

PLACEHOLDERS = {
    "scene": r"(?P<scene>.+)",
    "model": r"(?P<model>[^/]+?)",
    "seed": r"(?P<seed>\d{1,18})",
    "step": r"(?P<step>\d+[kKmM]?)",
}
_SEED = re.compile(r"(?<=seed)[_\-=. ]?(\d+)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)(\d{1,18})(?!\d)")
_MOST_COMPARED = 40  # clips of which a pattern is worked out; it is then tried on all


class ClipFacts(NamedTuple):
    """What a path says of a clip; no model where the path names none."""

    model: str
    scene: str
    seed: int = 0


def parse_layout_pattern(text: str) -> Callable[[str], ClipFacts | None]:
    """What a path below the source says by a text such as `{model}/seed{seed}/{scene}.mp4`; None where it does not fit.

    `*` stands for anything within a folder's name. A text without an ending fits any.

    Raises
    ------
    UsageError
        Where it has no scene, a placeholder twice, or one that does not exist.
    """
    plain = unicodedata.normalize("NFC", text).removeprefix("./").replace("{id}", "{scene}")
    pieces = re.split(r"\{(\w+)\}", plain)
    names = pieces[1::2]
    unknown = [name for name in names if name not in PLACEHOLDERS]
    if unknown or names.count("scene") != 1 or len(set(names)) < len(names):
        raise UsageError(
            f"a layout must contain {{scene}} (or {{id}}) once and may contain {{model}}, {{seed}} and {{step}}, such "
            f"as '{{scene}}/{{model}}.mp4'; got {text!r}"
        )
    globs = [re.escape(piece).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for piece in pieces]
    parts = [PLACEHOLDERS[piece] if k % 2 else globs[k] for k, piece in enumerate(pieces)]
    with_suffix = pieces[-1].lower().endswith((*CLIP_SUFFIXES, ".*"))
    expression = re.compile("".join(parts))

    def match_path(name: str) -> ClipFacts | None:
        match = expression.fullmatch(name if with_suffix else _strip_clip_suffix(name))
        if match is None:
            return None
        groups = match.groupdict()
        step = f"step_{groups['step']}" if groups.get("step") else ""
        model = "-".join(filter(None, (groups.get("model"), step)))
        return ClipFacts(model, groups["scene"], int(groups.get("seed") or 0))

    return match_path


def infer_layout(names: Sequence[str], facts: Sequence[ClipFacts], root: str) -> str:
    """The layout that says of all these paths what is known of them; nothing where no pattern does.

    `root` is the name that clips have whose path names no model.
    """
    clips = list(zip(names, facts, strict=True))
    texts: list[str] | None = None
    for name, clip_facts in clips[:: max(1, len(clips) // _MOST_COMPARED)]:
        fitting = list(dict.fromkeys(_candidate_layouts(name, clip_facts, root)))
        texts = fitting if texts is None else [text for text in texts if text in fitting]
    for text in texts or ():
        match_path = parse_layout_pattern(text)
        facts_by_clip = [match_path(name) for name, _ in clips]
        if all(one is not None and one._replace(model=one.model or root) == clip_facts
               for one, (_, clip_facts) in zip(facts_by_clip, clips, strict=True)):  # fmt: skip
            return text
    return ""


def path_of_clip_in_layout(layout: str, facts: ClipFacts) -> str:
    """The path that a layout has for a clip."""
    places = {"scene": facts.scene, "id": facts.scene, "model": facts.model, "seed": str(facts.seed), "step": "*"}
    return re.sub(r"\{(\w+)\}", lambda match: places[match[1]], layout)


def merge_seed_into_scene(layout: str) -> str:
    """The layout that takes a seed beside the scene for a part of the scene's name; nothing where there is none."""
    text, count = re.subn(r"\{scene\}[^{}]*\{seed\}|(?:(?<=/)|^)[^{}/]*\{seed\}/\{scene\}", "{scene}", layout)
    return text if count else ""


def _candidate_layouts(name: str, facts: ClipFacts, root: str) -> Iterator[str]:
    """The path with placeholders in the place of what is known, wherever that may stand."""
    for named in [True] if facts.model != root else [False, True]:
        for with_scene in _with_placeholder(name, facts.scene, "{scene}"):
            for text in _with_placeholder(with_scene, facts.model, "{model}") if named else [with_scene]:
                named_seeds = [m for m in _SEED.finditer(text) if int(m[1]) == facts.seed]
                numbers = [m for m in _NUMBER.finditer(_strip_clip_suffix(text)) if int(m[1]) == facts.seed]
                for match in named_seeds[:1] or numbers[::-1]:
                    yield f"{text[: match.start(1)]}{{seed}}{text[match.end(1) :]}"
                if not named_seeds:
                    yield text


def _strip_clip_suffix(name: str) -> str:
    ending = Path(name).suffix
    return name.removesuffix(ending) if ending.lower() in CLIP_SUFFIXES else name


def _with_placeholder(text: str, word: str, placeholder: str) -> Iterator[str]:
    """The text with a placeholder for a word, at each place where it stands at borders of names."""
    for match in re.finditer(rf"(?<![^/_\-. }}]){re.escape(word)}(?![^/_\-. {{])", text) if word else ():
        yield text[: match.start()] + placeholder + text[match.end() :]
