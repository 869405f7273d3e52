"""The wording of the judge's questions, from the user's own file (docs/memobench-vqa.md).

Our words are our own, so numbers compare with published ones in kind only. Whoever has upstream's repository may ask
with its words: `wording_from_repository` takes them out of its script, and the file it makes stays with the user.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import yaml

from revisit.core import UsageError
from revisit.core.text import read_yaml_file

PLACES = {"questions": ("prompt",), "judge": ("questions",), "hinted": ("questions", "hint")}  # what each must hold
SCRIPT = "llm-vqa.py"
# Function of the public script whose prompt is ours under this name, and its variables -> ours.
FUNCTIONS = {"questions": "generate_questions", "judge": "evaluate_video", "hinted": "evaluate_video_with_hint"}
VARIABLES = {"generation_prompt": "prompt"}
MOST_BYTES = 1 << 20


def read_question_wording(path: Path) -> dict[str, str]:
    """The wordings of a file, each with the places that it needs."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; `revisit judge wording REPOSITORY` makes one")
    content = read_yaml_file(path)
    if not isinstance(content, dict) or not content or not all(isinstance(text, str) for text in content.values()):
        raise UsageError(f"{path}: expected texts under some of {', '.join(PLACES)}")
    for name, text in content.items():
        if name not in PLACES:
            raise UsageError(f"{path}: unknown wording {name!r}; choose from {', '.join(PLACES)}")
        missing = [place for place in PLACES[name] if f"{{{place}}}" not in text]
        if missing:
            raise UsageError(f"{path}: {name} does not say where {{{missing[0]}}} goes")
    return {str(name): text for name, text in content.items()}


def wording_from_repository(folder: Path) -> dict[str, str]:
    """The wordings of the public script in a copy of its repository. The script is read, not run."""
    scripts = sorted(folder.rglob(SCRIPT)) if folder.is_dir() else []
    if not scripts or scripts[0].stat().st_size > MOST_BYTES:
        raise UsageError(f"{folder}: there is no {SCRIPT} in it; expected a copy of MemoBench's repository")
    try:
        tree = ast.parse(scripts[0].read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        raise UsageError(f"{scripts[0]}: this Python file cannot be read") from None
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    texts = {}
    for ours, theirs in FUNCTIONS.items():
        parts = ast.walk(functions[theirs]) if theirs in functions else ()
        templates = [_f_string_template(part) for part in parts if isinstance(part, ast.JoinedStr)]
        texts[ours] = max(templates, key=len, default="").strip()  # the longest
        if not all(f"{{{place}}}" in texts[ours] for place in PLACES[ours]):
            raise UsageError(f"{scripts[0]}: no prompt was found in {theirs}(); is this the script of MemoBench?")
    return texts


def wording_as_yaml(texts: Mapping[str, str]) -> str:
    """The text of a file of wordings."""
    return yaml.safe_dump(dict(texts), sort_keys=False, allow_unicode=True, default_style="|")


def _f_string_template(node: ast.JoinedStr) -> str:
    """An f-string, its variables as {names}."""
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            parts.append("{" + VARIABLES.get(part.value.id, part.value.id) + "}")
    return "".join(parts)
