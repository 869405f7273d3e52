"""Observer sets: which observer fills each role. One YAML file per set; a user's own file overrides roles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from revisit.core import ANY_SET, OBSERVERS, Observer, UsageError, evidence_id
from revisit.core.text import read_package_yaml, read_yaml_file, suggest_names

KEYS = ("title", "extends", "roles")
_packaged = cache(read_package_yaml)


def set_names() -> list[str]:
    """Names of the sets that come with Revisit."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in files(__name__).iterdir() if entry.name.endswith(".yaml")
    )


def has_set_file_suffix(name: str) -> bool:
    """Whether a set is named by its file."""
    return Path(name).suffix in (".yaml", ".yml")


@dataclass(frozen=True)
class SetFile:
    """A set as its file says: a title and roles, possibly on top of another set."""

    id: str
    title: str
    roles: dict[str, str]


def read_set(name_or_path: str, extended_by: tuple[str, ...] = ()) -> SetFile:
    """The set of this name, or the one in the YAML file at that path; `extended_by` are the sets that extend it."""
    if name_or_path in extended_by:
        raise UsageError(f"{name_or_path}: this set extends itself ({' extends '.join([*extended_by, name_or_path])})")
    path = Path(name_or_path)
    if name_or_path in set_names():
        content: Any = _packaged(__name__, f"{name_or_path}.yaml")
    elif not has_set_file_suffix(name_or_path):
        raise UsageError(
            f"there is no observer set {name_or_path!r}; {suggest_names(name_or_path, set_names())}; "
            "a YAML file is one, too"
        )
    elif not path.is_file():
        raise UsageError(f"{path}: no such file; an observer set is one of {', '.join(set_names())}, or a YAML file")
    else:
        content = read_yaml_file(path)
    if not isinstance(content, dict) or not isinstance(content.get("roles", {}), dict):
        raise UsageError(
            f"{name_or_path}: a set file needs `roles:` (evidence: observer) and may have `extends:` another set"
        )
    unknown = [str(key) for key in content if key not in KEYS]
    if unknown:
        raise UsageError(f"{name_or_path}: unknown field {unknown[0]!r}; the fields of a set are {', '.join(KEYS)}")
    base: dict[str, str] = {}
    if "extends" in content:
        extended = str(content["extends"])
        beside = path.parent / extended  # a file is looked for beside this one, then from the current folder on
        is_beside = has_set_file_suffix(extended) and beside.is_file()
        base = read_set(str(beside) if is_beside else extended, (*extended_by, name_or_path)).roles
    roles = {**base, **{str(role): str(observer) for role, observer in content.get("roles", {}).items()}}
    # No file goes by our names.
    id = path.name if has_set_file_suffix(name_or_path) and path.stem in set_names() else path.stem
    return SetFile(id, str(content.get("title", path.stem)), roles)


@cache
def maker_by_set(role: str) -> dict[str, Observer]:
    """Those of `small` and `paper` that make a kind of evidence without a judge, with who makes it."""
    makers = {name: load_roles(name).get(role) for name in ("small", "paper")}
    return {name: maker for name, maker in makers.items() if maker is not None and maker.kind != "judge"}


def load_roles(name: str, *, judge: bool = False) -> dict[str, Observer]:
    """Role → observer. Observers that say they join the set fill roles which its file leaves open.

    Observers that ask a judge fill what is still open then; where there is a judge, they come first.
    """
    set_file = read_set(name)
    roles = {role: OBSERVERS[observer_id] for role, observer_id in set_file.roles.items()}
    for role, observer in roles.items():
        if evidence_id(observer.makes) != role:
            kind = evidence_id(observer.makes)
            raise UsageError(f"set {name}: the role {role!r} has the observer {observer.id}, which makes {kind!r}")
    for observer in OBSERVERS.values():
        if not {set_file.id, ANY_SET}.isdisjoint(observer.sets):
            roles.setdefault(evidence_id(observer.makes), observer)
    for observer in OBSERVERS.values():
        if observer.kind == "judge" and (judge or evidence_id(observer.makes) not in roles):
            roles[evidence_id(observer.makes)] = observer
    return roles
