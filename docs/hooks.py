"""MkDocs: pages of the repository's root join the site, and links across the border of docs/ lead to them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY", "AGENTS")}
LINK = re.compile(r"\[([^]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the root's pages, and the examples as files to download."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for example in sorted((ROOT / "examples").iterdir()):
        if example.is_file():
            files.append(File.generated(config, f"examples/{example.name}", abs_src_path=str(example)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page, with links to files outside docs/ led to where they are on the site; to folders, only their words."""
    here = page.file.src_uri
    moved = {to: source for source, to in PAGES.items()}
    place = PurePosixPath(moved.get(here, f"docs/{here}")).parent

    def led(match: re.Match[str]) -> str:
        words, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        inside = normpath(f"{place}/{target}")  # seen from the root
        to = PAGES.get(inside, inside.removeprefix("docs/"))
        if files.get_file_from_path(to):
            return f"[{words}]({relpath(to, PurePosixPath(here).parent)}{anchor or ''})"
        return words if (ROOT / inside).exists() else match[0]

    return LINK.sub(led, markdown)
