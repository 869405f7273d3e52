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
    texts = {ours: _longest_f_string(functions[theirs]) for ours, theirs in FUNCTIONS.items() if theirs in functions}
    for name in FUNCTIONS:
        if not all(f"{{{place}}}" in texts.get(name, "") for place in PLACES[name]):
            raise UsageError(
                f"{scripts[0]}: no prompt was found in {FUNCTIONS[name]}(); is this the script of MemoBench?"
            )
    return texts


def wording_as_yaml(texts: Mapping[str, str]) -> str:
    """The text of a file of wordings."""
    return yaml.safe_dump(dict(texts), sort_keys=False, allow_unicode=True, default_style="|")


def _longest_f_string(function: ast.FunctionDef) -> str:
    """The longest f-string of a function, its variables as {names}."""
    texts = [_f_string_template(node) for node in ast.walk(function) if isinstance(node, ast.JoinedStr)]
    return max(texts, key=len, default="").strip()


def _f_string_template(node: ast.JoinedStr) -> str:
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            parts.append("{" + VARIABLES.get(part.value.id, part.value.id) + "}")
    return "".join(parts)
