"""How many lines of code the package has: lines that hold code, without docstrings, comments and blank lines.

python benchmarks/code_lines.py                       # by folder, and the largest files
python benchmarks/code_lines.py --since 835f79c       # also what each commit since then added or took away
python benchmarks/code_lines.py --since 835f79c --commits renames.txt
                                                      # also the sum over the commits listed in a file

Statements are counted beside lines: a longer name breaks a line in two, and leaves the statement one.

The change of a commit is counted against its parent; that of a merge is what remains when the changes of its sides are
taken away, so that all changes add up.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

SOURCE = "src/revisit"
ROOT = Path(__file__).parents[1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Lines that hold code; a line of a string that is no docstring is one of them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def statements(text: str) -> int:
    """Statements that are no docstring, however many lines each takes."""
    ends = sum(token.type == tokenize.NEWLINE for token in tokenize.generate_tokens(io.StringIO(text).readline))
    documented = (node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED))
    return ends - sum(ast.get_docstring(node, clean=False) is not None for node in documented)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


@cache
def lines_of_blob(blob: str) -> int:
    """Lines of code of one version of a file."""
    return code_lines(git("cat-file", "blob", blob))


@cache
def lines_at(commit: str) -> int:
    """Lines of code of the whole package at a commit."""
    rows = (row.split("\t", 1) for row in git("ls-tree", "-r", commit, "--", SOURCE).splitlines())
    return sum(lines_of_blob(head.split()[2]) for head, path in rows if path.endswith(".py"))


def change(commit: str) -> int:
    """Lines of code that a commit added, less those that it took away; of a merge, those of neither side."""
    first, *others = git("show", "--no-patch", "--format=%P", commit).split()
    difference = lines_at(commit) - lines_at(first)
    for other in others:
        difference -= lines_at(other) - lines_at(git("merge-base", first, other).strip())
    return difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT", help="print the change of each commit since this one")
    parser.add_argument("--commits", type=Path, metavar="FILE", help="commits, one at the beginning of each line")
    parser.add_argument("--top", type=int, default=20, help="how many of the largest files are printed")
    options = parser.parse_args()
    texts = {
        path.relative_to(ROOT / SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / SOURCE).rglob("*.py")
    }
    files = {name: code_lines(text) for name, text in texts.items()}
    folders: Counter[str] = Counter()
    for name, count in files.items():
        folders[name.split("/")[0]] += count
    for name, count in [*folders.most_common(), ("all", sum(files.values()))]:
        print(f"{count:7,} {name}")
    print(f"{sum(map(statements, texts.values())):7,} statements\n")
    for name, count in Counter(files).most_common(options.top):
        print(f"{count:7,} {name}")
    if options.since:
        listed = (
            [line.split()[0] for line in options.commits.read_text().splitlines() if line] if options.commits else []
        )
        sums = {True: 0, False: 0}
        print()
        for row in git("log", "--reverse", "--topo-order", "--format=%h %s", f"{options.since}..HEAD").splitlines():
            commit, _, subject = row.partition(" ")
            difference = change(commit)
            chosen = any(commit.startswith(start) or start.startswith(commit) for start in listed)
            sums[chosen] += difference
            if difference:
                print(f"{difference:+7,} {'*' if chosen else ' '} {commit} {subject}")
        if options.commits:
            print(f"{sums[True]:+7,} in the commits of {options.commits.name}, {sums[False]:+,} in the others")


if __name__ == "__main__":
    main()
