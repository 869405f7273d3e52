"""Reasons: code decides by the kind, people read the sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from revisit.core import KINDS, Derived, Gate, Metric, NoScore, Reason, Unscored

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "src/revisit"
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
READING = {  # methods of text by which one decides
    "startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines", "find", "rfind", "index",
    "rindex", "count", "removeprefix", "removesuffix", "isdigit",
}  # fmt: skip


def is_sentence(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is the sentence of a reason, or text made of one."""
    if isinstance(node, ast.Name):
        return node.id in names | {"reason", "sentence"}
    if isinstance(node, ast.Attribute):
        return node.attr == "sentence"
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and node.slice.value in ("sentence", "reason"):
            return not isinstance(node.ctx, ast.Store)
        return isinstance(node.slice, ast.Slice) and is_sentence(node.value, names)
    if isinstance(node, ast.NamedExpr):
        return is_sentence(node.value, names)
    if isinstance(node, ast.IfExp | ast.BoolOp):
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        return any(is_sentence(part, names) for part in parts)
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name):
            return called.id == "str" and any(is_sentence(part, names) or is_reason(part) for part in node.args)
        if isinstance(called, ast.Attribute):
            if called.attr == "get" and node.args and isinstance(node.args[0], ast.Constant):
                return node.args[0].value in ("sentence", "reason")
            return called.attr in ("lower", "strip", "casefold") and is_sentence(called.value, names)
    return False


def is_reason(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "reason"


def bound(scope: ast.AST) -> set[str]:
    """Names that a function binds to a sentence."""
    names: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and is_sentence(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value and is_sentence(node.value, names):
            names |= {node.target.id} if isinstance(node.target, ast.Name) else set()
    return names


def branches(tree: ast.AST) -> Iterator[int]:
    """Lines that decide something by a sentence: compare it, look into it, take it apart."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda | ast.Module)]
    for scope in scopes:
        names = bound(scope) if not isinstance(scope, ast.Module) else set()
        for node in ast.walk(scope):
            if isinstance(node, ast.Compare):
                of_text = not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
                decides = of_text and any(is_sentence(part, names) for part in (node.left, *node.comparators))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                taken_apart = node.func.attr in READING and is_sentence(node.func.value, names)
                by_pattern = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
                decides = taken_apart or (by_pattern and any(is_sentence(part, names) for part in node.args))
            elif isinstance(node, ast.Match):
                decides = is_sentence(node.subject, names)
            else:
                continue
            if decides:
                yield node.lineno


def test_no_code_decides_by_a_sentence() -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    named = {name: text for name, text in texts.items() if "reason" in text or "sentence" in text}
    found = {name: list(branches(ast.parse(text))) for name, text in named.items()}
    guilty = {name: sorted(set(lines)) for name, lines in found.items() if lines}
    assert not guilty, f"these lines decide by a reason's sentence; ask for its kind: {guilty}"


@pytest.mark.parametrize(
    "code",
    [
        'record.sentence == "too short"',
        '"short" in answer.reason.sentence',
        'record.reason.sentence.startswith("no ")',
        'str(record.reason).startswith("no ")',
        're.match("no .*", record.sentence)',
        'record["reason"].partition(":")',
        'record.get("reason", "").split(":")',
        'def kind_of(reason: str) -> str:\n    return reason.partition(":")[0]',
        'def f(r):\n    said = r.sentence\n    return said.lower().endswith("frames")',
        'def f(r):\n    if (said := r.sentence) and "frames" in said:\n        return 1',
        'def f(r):\n    match r.sentence:\n        case "no":\n            return 1',
    ],
)
def test_such_code_would_be_found(code: str) -> None:
    assert list(branches(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ['print(f"why: {r.sentence}")', 'r.kind == "no_file"', 'row["reason"] = r.sentence', "r.reason is None"]
)
def test_showing_a_sentence_is_fine(code: str) -> None:
    assert not list(branches(ast.parse(code)))


def test_every_kind_is_used() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in FILES.values())
    assert not [kind for kind in KINDS if f'"{kind}"' not in code], "a kind that nobody gives is to go"
    assert len(KINDS) <= 31, "a reader keeps so many apart, and no more"


def test_a_reason_is_of_a_known_kind_and_says_something() -> None:
    with pytest.raises(ValueError, match="is not a kind of reason"):
        Unscored("too short: one frame")
    with pytest.raises(ValueError, match="needs a sentence"):
        Unscored("too_short")
    given = Reason("too_short", "one frame")
    assert Unscored(given, facts={"n": 1}) == Unscored("too_short", "one frame", {"n": 1})


def test_what_a_metric_a_gate_and_a_derivation_call_may_raise_the_answer():
    def stop(*_: object) -> Any:
        raise NoScore("too_short", "one frame cannot change", {"frames": 1})

    expected = Unscored("too_short", "one frame cannot change", {"frames": 1})
    checks = (
        Metric("stops", 1, "", "", (None, None), None, (), stop),
        Gate("stops", 1, "", (), stop, {}),
        Derived(object, (), stop, 1, {}),
    )
    assert [check() for check in checks] == [expected] * 3
