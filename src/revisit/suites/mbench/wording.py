"""The user's own wording of the judge's questions: a YAML or JSON file of question id -> words.

    trigger.object: Does the object ...?
    trigger.human: ...
    trigger.environment: ...
    trigger.causal: ...
    progress: Rate ... progress ... correctness ...

Each id may be left out; its question is then asked in our words. For users who have the benchmark's own prompts.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from revisit.core import UsageError
from revisit.core.texts import parse_yaml
from revisit.suites.mbench.names import SUBSETS

IDS = (*(f"trigger.{subset}" for subset in SUBSETS), "progress")
LONGEST = 20_000  # characters


def read_wording(path: Path) -> dict[str, str]:
    """Words by question id."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file of questions")
    try:
        content = parse_yaml(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{path}: this is neither YAML nor JSON") from None
    if not isinstance(content, dict) or not content:
        raise UsageError(f"{path}: expected question ids with their wording; the ids are {', '.join(IDS)}")
    for id, words in content.items():
        if id not in IDS:
            raise UsageError(f"{path}: unknown question {str(id)[:80]!r}; the ids are {', '.join(IDS)}")
        if not isinstance(words, str) or not 0 < len(words.strip()) <= LONGEST:
            raise UsageError(f"{path}: {id} is {str(words)[:60]!r}; expected the wording of a question")
    return {id: words.strip() for id, words in content.items()}


def words_for(wording: dict[str, str], subset: str) -> dict[str, str]:
    """What a case of a subset is asked with."""
    return {id: words for id, words in wording.items() if id in (f"trigger.{subset}", "progress")}
