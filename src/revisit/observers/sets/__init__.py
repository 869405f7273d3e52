"""Observer sets: which observer fills each role. One YAML file per set; a user's own file overrides roles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from revisit.core import ANY_SET, OBSERVERS, Observer, UsageError
from revisit.core.text import parse_package_yaml, parse_yaml, suggest_names

KEYS = ("title", "extends", "roles")


def set_names() -> list[str]:
    """Names of the sets that come with Revisit."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in files(__name__).iterdir() if entry.name.endswith(".yaml")
    )


@dataclass(frozen=True)
class SetFile:
    """A set as its file says: a title and roles, possibly on top of another set."""

    id: str
    title: str
    roles: dict[str, str]


def read_set(name: str, below: tuple[str, ...] = ()) -> SetFile:
    """The set called `name`, or the one in the YAML file at that path; `below` are the sets that extend it."""
    if name in below:
        raise UsageError(f"{name}: this set extends itself ({' extends '.join([*below, name])})")
    path = Path(name)
    if name in set_names():
        content: Any = _own(name)
        set_id = name
    elif path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise UsageError(
                f"{path}: no such file; an observer set is one of {', '.join(set_names())}, or a YAML file"
            )
        content = _content(path)
        set_id = path.stem
    else:
        raise UsageError(
            f"there is no observer set {name!r}; {suggest_names(name, set_names())}; a YAML file is one, too"
        )
    if not isinstance(content, dict) or not isinstance(content.get("roles", {}), dict):
        raise UsageError(f"{name}: a set file needs `roles:` (evidence: observer) and may have `extends:` another set")
    unknown = [str(key) for key in content if key not in KEYS]
    if unknown:
        raise UsageError(f"{name}: unknown field {unknown[0]!r}; the fields of a set are {', '.join(KEYS)}")
    base = read_set(str(content["extends"]), (*below, name)).roles if "extends" in content else {}
    roles = {**base, **{str(role): str(observer) for role, observer in content.get("roles", {}).items()}}
    return SetFile(set_id, str(content.get("title", set_id)), roles)


@cache
def _own(name: str) -> Any:
    return parse_package_yaml((files(__name__) / f"{name}.yaml").read_text())


def _content(path: Path) -> Any:
    """What a YAML file holds."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = " ".join(str(error).split())
        raise UsageError(f"{path}: this is not YAML: {message[:200]}") from None


@cache
def sets_that_make(role: str) -> tuple[str, ...]:
    """Names of the sets that give this role to somebody, by their file or because an observer joins them."""
    return tuple(name for name in set_names() if _maker(name, role) is not None)


@cache
def sets_that_observe(role: str) -> tuple[tuple[str, Observer], ...]:
    """Those of `small` and `paper` that make a kind of evidence from frames, and not from a file, with who makes it."""
    makers = [(name, _maker(name, role)) for name in ("small", "paper")]
    return tuple((name, maker) for name, maker in makers if maker is not None and maker.kind != "file")


def _maker(name: str, role: str) -> Observer | None:
    """Who has a role in a set: as its file says, or the first observer that joins the set by itself."""
    named = [id for id in (read_set(name).roles.get(role),) if id is not None]
    if named:
        return next((OBSERVERS[id] for id in named if id in OBSERVERS), None)
    joined = (one for one in OBSERVERS.values() if not {name, ANY_SET}.isdisjoint(one.sets))
    return next((one for one in joined if getattr(one.makes, "evidence_id", "") == role), None)


def load_roles(name: str, *, judge: bool = False) -> dict[str, Observer]:
    """Role → observer. Observers that say they join the set fill roles which its file leaves open.

    Observers that ask a judge fill what is still open then; where there is a judge, they come first.
    """
    set_file = read_set(name)
    roles = {role: OBSERVERS[observer_id] for role, observer_id in set_file.roles.items()}
    for role, observer in roles.items():
        evidence = getattr(observer.makes, "evidence_id", "")
        if evidence != role:
            raise UsageError(f"set {name}: the role {role!r} has the observer {observer.id}, which makes {evidence!r}")
    for observer in OBSERVERS.values():
        role = str(getattr(observer.makes, "evidence_id", ""))
        if not {set_file.id, ANY_SET}.isdisjoint(observer.sets) and role not in roles:
            roles[role] = observer
    for observer in OBSERVERS.values():
        if observer.kind == "judge":
            role = str(getattr(observer.makes, "evidence_id", ""))
            roles[role] = observer if judge else roles.get(role, observer)
    return roles
