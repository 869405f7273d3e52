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

from pydantic import Field

from revisit.core import GATES, OBSERVERS, UsageError
from revisit.core.registry import Registry
from revisit.core.text import read_yaml_file
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.budget import Budget, JudgeLimit, TokenPrice
from revisit.judges.chat import ChatJudge, ChatSettings
from revisit.judges.protocol import Judge
from revisit.judges.store import AnswerStore, ReplayJudge
from revisit.servers.endpoint import checked_settings

URLS = ("http://", "https://")
Settings = dict[str, object]  # what a judge file says
# kind of judge -> what makes it from the rest of its file; a relative path in there starts at the file's folder
JUDGES: Registry[Callable[[Settings, Path], Judge]] = Registry("judge")


class JudgeSettings(RetryPolicy):
    """What every judge file may say."""

    kind: str = "openai"
    canaries: bool = True
    controls_first: int = Field(default=3, ge=0)  # clips that decide whether anything else is asked; 0: none
    tokens_per_image: int | None = Field(default=None, gt=0)
    budget: JudgeLimit = JudgeLimit()
    price: TokenPrice = TokenPrice()


@dataclass(frozen=True)
class ChosenJudge:
    """A judge, and how to ask it."""

    judge: Judge
    settings: JudgeSettings = field(default_factory=JudgeSettings)
    roles: Mapping[str, ChosenJudge] = field(default_factory=dict)  # observer -> the judge that it asks instead

    @property
    def asks_canaries(self) -> bool:
        """Whether it is asked control questions."""
        return self.settings.canaries and getattr(self.judge, "has_controls", True)

    @property
    def facts(self) -> dict[str, object]:
        """Everything that evidence depends on, of this judge and of those of the roles."""
        roles = {observer: other.facts for observer, other in sorted(self.roles.items())}
        unchecked = {} if self.asks_canaries else {"canaries": False}
        return {**self.judge.facts, **unchecked, **({"roles": roles} if roles else {})}

    def judge_of_observer(self, observer: str) -> ChosenJudge:
        """The judge that an observer asks."""
        return self.roles.get(observer, self)

    def make_client(self, store: AnswerStore) -> JudgeClient:
        """Somebody who asks this judge, with a budget of their own."""
        settings = self.settings
        budget = Budget(settings.budget, settings.price)
        return JudgeClient(self.judge, store, settings, budget, settings.tokens_per_image)


def judge_from_source(source: str, *, for_role: bool = False, option: str = "--judge") -> ChosenJudge:
    """The judge that an option names; that of a role has no roles itself."""
    if source.startswith(URLS):
        if not (model := os.environ.get("REVISIT_JUDGE_MODEL")):
            raise UsageError("$REVISIT_JUDGE_MODEL is not set; set it to the model's name, or use a judge file")
        key = {"key_env": "REVISIT_JUDGE_KEY"} if os.environ.get("REVISIT_JUDGE_KEY") else {}
        return _judge_from_settings({"url": source, "model": model, **key}, option, Path())
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"{source}: no such file; {option} takes a YAML file, a url such as http://127.0.0.1:8000/v1, "
            "or answers.jsonl"
        )
    if path.suffix == ".jsonl":
        return _judge_from_settings({"kind": "replay", "path": path.name}, source, path.parent)
    content = read_yaml_file(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected names and values, such as `url: http://127.0.0.1:8000/v1`")
    if for_role and content.get("roles"):
        raise UsageError(f"{path}: the judge of a role cannot have roles itself; name all roles in one file")
    return _judge_from_settings(content, source, path.parent)


def _judge_from_settings(settings: Mapping[str, object], where: str, folder: Path) -> ChosenJudge:
    with checked_settings(settings, where, "docs/judges.md"):
        roles = _judges_by_observer(settings.get("roles") or {}, where, folder)
        common = {name: value for name, value in settings.items() if name in JudgeSettings.model_fields}
        specific = {str(name): value for name, value in settings.items() if name not in {"roles", *common}}
        shared = JudgeSettings.model_validate(common)
        return ChosenJudge(JUDGES[shared.kind](specific, folder), shared, roles)


def _judges_by_observer(content: object, where: str, folder: Path) -> dict[str, ChosenJudge]:
    """Observer -> its own judge, from a mapping of roles to files, urls or settings."""
    if not isinstance(content, dict):
        raise UsageError(f"{where}: roles must be a mapping, such as `roles: {{gate: gate.yaml}}`")
    asking = [observer for observer in OBSERVERS if OBSERVERS[observer].kind == "judge"]
    needed = [kind for gate in GATES.values() for kind in gate.needs]
    opening = [observer for observer in asking if OBSERVERS[observer].makes in needed]
    observers_of_role = {"gate": opening, **{observer.removeprefix("judge."): [observer] for observer in asking}}
    judges_by_observer: dict[str, ChosenJudge] = {}
    # `gate` first: a role that is named by itself goes before it.
    for role in sorted(content, key=lambda name: name != "gate"):
        if role not in observers_of_role:
            raise UsageError(f"{where}: there is no role {role!r}; roles are {', '.join(observers_of_role)}")
        source = content[role]
        if isinstance(source, dict):
            chosen = _judge_from_settings({**source, "roles": {}}, f"{where}, role {role}", folder)
        else:
            place = str(source) if str(source).startswith(URLS) else str(folder / str(source))
            chosen = judge_from_source(place, for_role=True)
        judges_by_observer |= dict.fromkeys(observers_of_role[role], chosen)
    return judges_by_observer


def _make_chat_judge(settings: Settings, folder: Path) -> Judge:
    return ChatJudge(ChatSettings.model_validate(settings).with_key_file_in(folder))


def _make_replay_judge(settings: Settings, folder: Path) -> Judge:
    unknown = sorted(set(settings) - {"path", "model", "server"})
    if unknown or "path" not in settings:
        raise UsageError(
            "a judge of kind replay takes `path:`, an answers.jsonl, and optionally `model:` and `server:`"
        )
    which = (str(settings.get(name, "")) for name in ("model", "server"))
    return ReplayJudge(folder / str(settings["path"]), *which)


def _make_local_judge(settings: Settings, folder: Path) -> Judge:
    from revisit.judges.local import LocalJudge, LocalSettings

    return LocalJudge(LocalSettings.model_validate(settings), folder)


def _make_instrumented_judge(settings: Settings, folder: Path) -> Judge:
    from revisit.judges.instrumented import InstrumentedJudge

    if set(settings) != {"scenes"}:
        raise UsageError("a judge of kind instrumented takes only `scenes:`, a folder of scene descriptions")
    return InstrumentedJudge(folder / str(settings["scenes"]))


JUDGES.add("openai", _make_chat_judge)
JUDGES.add("replay", _make_replay_judge)
JUDGES.add("local", _make_local_judge)
JUDGES.add("instrumented", _make_instrumented_judge)
