"""Which judge: a YAML file, the url of a server, or a file of recorded answers (docs/judges.md).

A key never stands in a file that we read as settings, nor on a command line. A judge file may name other judges for
some roles (`roles: {gate: other.yaml}`): an observer that asks (probes, vqa, trigger, ...), or `gate` for those of
gates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from revisit.core import GATES, OBSERVERS, UsageError
from revisit.core.registry import Registry
from revisit.core.text import yaml_file
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.budget import Budget, JudgeLimit, TokenPrice
from revisit.judges.chat import ChatJudge, ChatSettings
from revisit.judges.protocol import Judge
from revisit.judges.replay import ReplayJudge
from revisit.judges.store import AnswerStore

CONTROLS_FIRST = 3  # clips
Settings = dict[str, object]  # what a judge file says
# kind of judge -> what makes it from the rest of its file; a relative path in there starts at the file's folder
JUDGES: Registry[Callable[[Settings, Path], Judge]] = Registry("judge")


class _CommonSettings(BaseModel):
    """What every judge file may say."""

    model_config = ConfigDict(extra="forbid")

    kind: str = "openai"
    concurrency: int = Field(default=8, ge=1, le=256)
    tries: int = Field(default=6, ge=1)
    again: int = Field(default=2, ge=0)
    pause: float = Field(default=1.0, ge=0)
    ask_unanswered: bool = False
    canaries: bool = True
    controls_first: int = Field(default=CONTROLS_FIRST, ge=0)
    tokens_per_image: int | None = Field(default=None, gt=0)
    budget: JudgeLimit = JudgeLimit()
    price: TokenPrice = TokenPrice()


@dataclass(frozen=True)
class ChosenJudge:
    """A judge, and how to ask it."""

    judge: Judge
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    limit: JudgeLimit = field(default_factory=JudgeLimit)
    price: TokenPrice = field(default_factory=TokenPrice)
    canaries: bool = True
    tokens_per_image: int | None = None
    roles: Mapping[str, ChosenJudge] = field(default_factory=dict)  # observer -> the judge that it asks instead
    controls_first: int = CONTROLS_FIRST  # clips whose control questions decide whether anything else is asked; 0: none

    @property
    def facts(self) -> dict[str, object]:
        """Everything that evidence depends on, of this judge and of those of the roles."""
        roles = {observer: other.facts for observer, other in sorted(self.roles.items())}
        unchecked = {} if self.canaries else {"canaries": False}
        return {**self.judge.facts, **unchecked, **({"roles": roles} if roles else {})}

    def of_role(self, observer: str) -> ChosenJudge:
        """The judge that an observer asks."""
        return self.roles.get(observer, self)

    def client(self, store: AnswerStore) -> JudgeClient:
        """Somebody who asks this judge, with a budget of their own."""
        return JudgeClient(self.judge, store, self.patience, Budget(self.limit, self.price), self.tokens_per_image)


def choose_judge(source: str, *, for_role: bool = False) -> ChosenJudge:
    """The judge that `--judge` names; that of a role has no roles itself."""
    if source.startswith(("http://", "https://")):
        return _from_settings(_from_environment(source), "--judge", Path())
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"{source}: no such file; --judge takes a YAML file, a url such as http://127.0.0.1:8000/v1, "
            "or answers.jsonl"
        )
    if path.suffix == ".jsonl":
        return _from_settings({"kind": "replay", "path": path.name}, source, path.parent)
    content = yaml_file(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected names and values, such as `url: http://127.0.0.1:8000/v1`")
    if for_role and content.get("roles"):
        raise UsageError(f"{path}: the judge of a role cannot have roles itself; name all roles in one file")
    return _from_settings(content, source, path.parent)


def _from_settings(content: Mapping[str, object], where: str, folder: Path) -> ChosenJudge:
    secret = [name for name in content if str(name).lower() in ("key", "api_key", "token", "password", "secret")]
    if secret:
        raise UsageError(f"{where}: do not write the key here; use `key_env: NAME` or `key_file: path`")
    roles = _roles(content.get("roles") or {}, where, folder)
    content = {name: value for name, value in content.items() if name != "roles"}
    common = {name: value for name, value in content.items() if name in _CommonSettings.model_fields}
    specific = {str(name): value for name, value in content.items() if name not in _CommonSettings.model_fields}
    try:
        shared = _CommonSettings.model_validate(common)
        judge = JUDGES[shared.kind](specific, folder)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{where}: {name}: {first['msg'].lower()}; docs/judges.md lists all settings") from None
    return ChosenJudge(
        judge,
        RetryPolicy(shared.concurrency, shared.tries, shared.again, shared.pause, ask_unanswered=shared.ask_unanswered),
        shared.budget,
        shared.price,
        shared.canaries and getattr(judge, "has_controls", True),
        shared.tokens_per_image,
        roles,
        shared.controls_first,
    )


def _roles(content: object, where: str, folder: Path) -> dict[str, ChosenJudge]:
    """Observer -> its own judge, from a mapping of roles to files, urls or settings."""
    if not isinstance(content, dict):
        raise UsageError(f"{where}: roles must be a mapping, such as `roles: {{gate: gate.yaml}}`")
    asking = [observer for observer in OBSERVERS if OBSERVERS[observer].kind == "judge"]
    opening = tuple(
        observer for observer in asking if any(OBSERVERS[observer].makes in gate.needs for gate in GATES.values())
    )
    observers_of_role: dict[str, tuple[str, ...]] = {
        "gate": opening,
        **{observer.removeprefix("judge."): (observer,) for observer in asking},
    }
    judges_by_observer: dict[str, ChosenJudge] = {}
    # `gate` first: a role that is named by itself goes before it.
    for role in sorted(content, key=lambda name: name != "gate"):
        if role not in observers_of_role:
            raise UsageError(f"{where}: there is no role {role!r}; roles are {', '.join(observers_of_role)}")
        source = content[role]
        if isinstance(source, dict):
            chosen = _from_settings({**source, "roles": {}}, f"{where}, role {role}", folder)
        else:
            is_url = str(source).startswith(("http://", "https://"))
            chosen = choose_judge(str(source) if is_url else str(folder / str(source)), for_role=True)
        judges_by_observer |= dict.fromkeys(observers_of_role[role], chosen)
    return judges_by_observer


def _from_environment(url: str) -> Settings:
    model = os.environ.get("REVISIT_JUDGE_MODEL", "")
    if not model:
        raise UsageError("$REVISIT_JUDGE_MODEL is not set; set it to the model's name, or use a judge file")
    key = {"key_env": "REVISIT_JUDGE_KEY"} if os.environ.get("REVISIT_JUDGE_KEY") else {}
    return {"url": url, "model": model, **key}


def _chat(settings: Settings, folder: Path) -> Judge:
    chat_settings = ChatSettings.model_validate(settings)
    if chat_settings.key_file is not None:
        chat_settings = chat_settings.model_copy(update={"key_file": folder / chat_settings.key_file.expanduser()})
    return ChatJudge(chat_settings)


def _replay(settings: Settings, folder: Path) -> Judge:
    unknown = sorted(set(settings) - {"path", "model", "server"})
    if unknown or "path" not in settings:
        raise UsageError(
            "a judge of kind replay takes `path:`, an answers.jsonl, and optionally `model:` and `server:`"
        )
    which = (str(settings.get(name, "")) for name in ("model", "server"))
    return ReplayJudge(folder / str(settings["path"]), *which)


def _local(settings: Settings, folder: Path) -> Judge:
    from revisit.judges import local

    return local.from_settings(settings, folder)


def _instrumented_judge(settings: Settings, folder: Path) -> Judge:
    from revisit.judges import instrumented

    return instrumented.from_settings(settings, folder)


for kind, factory in {"openai": _chat, "replay": _replay, "local": _local, "instrumented": _instrumented_judge}.items():
    JUDGES.add(kind, factory)
