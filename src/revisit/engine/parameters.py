"""Parameters that a user sets: `ID.name=value` of a metric, gate, derived evidence or observer.

They take the place of the protocol's, and are part of its hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from revisit.core import DERIVED, GATES, METRICS, OBSERVERS, UsageError
from revisit.core.text import did_you_mean_question, parse_yaml
from revisit.engine.dependencies import Parameters, walk_dependencies
from revisit.engine.plan import Plan
from revisit.results.file_types import Details

REGISTRIES = (METRICS, GATES, DERIVED, OBSERVERS)


def parse_parameters(texts: Iterable[str]) -> dict[str, dict[str, object]]:
    """Parameters by id, from texts `ID.name=value`; a value is a number, true, false, null or a word."""
    parameters: dict[str, dict[str, object]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        id, dot, name = target.strip().rpartition(".")
        if not (equals and dot and id and name and value.strip()):
            raise UsageError(f"--param takes ID.name=value, such as mb_rendering_lighting.tau=1.2, not {text!r}")
        if name in parameters.get(id, {}):
            raise UsageError(f"--param sets {id}.{name} twice; give it once")
        parameters.setdefault(id, {})[name] = parse_yaml(value.strip())
    return check_parameters(parameters)


def check_parameters(parameters: Parameters) -> dict[str, dict[str, object]]:
    """The same parameters by id, if there are such and they may have these values."""
    return {
        id: {name: checked_parameter_value(id, name, value) for name, value in values.items()}
        for id, values in parameters.items()
    }


def checked_parameter_value(id: str, name: str, value: Any) -> Any:
    """The value, if there is such a parameter and it may have it."""
    default = default_parameter_value(id, name)
    value = value.item() if isinstance(value, np.generic) else value
    if not is_compatible_type(value, default):
        raise UsageError(f"{id}.{name} is {default!r} by default; {value!r} is not a {parameter_type_name(default)}")
    return float(value) if isinstance(default, float) and isinstance(value, int) else value


def default_parameter_value(id: str, name: str) -> Any:
    """The default of a parameter."""
    params = next((registry[id].params for registry in REGISTRIES if id in registry), None)
    if params is None:
        every = [one for registry in REGISTRIES for one in registry if registry[one].params]
        hint = did_you_mean_question(id, every) or "`revisit show ID` lists parameters"
        raise UsageError(f"nothing with parameters is called {id!r}; {hint}")
    if name not in params:
        has = f"its parameters are {', '.join(params)}" if params else "it has no parameters"
        raise UsageError(f"{id} has no parameter {name!r}; {has}")
    return params[name]


def default_parameters_of_plan(plan: Plan) -> dict[str, Details]:
    """The parameters of everything that a plan uses, by id."""
    parameters: dict[str, Details] = {check.id: check.params for check in plan.checks}
    for check in plan.checks:
        parameters |= {one.id: one.params for one in walk_dependencies(check) if not isinstance(one, type)}
        for maker in plan.observers.makers_for(check):
            parameters[maker.id] = maker.params
            if maker.shows is not None and (shows := plan.observers.maker(maker.shows)) is not None:
                parameters[shows.id] = shows.params
    return parameters


def require_parameters_used(plan: Plan, parameters: Parameters) -> None:
    """Refuse parameters that nothing in the plan uses."""
    uses = default_parameters_of_plan(plan)
    for id in parameters:
        if id not in uses:
            listed = sorted(one for one, params in uses.items() if params)
            hint = did_you_mean_question(id, uses) or f"these have parameters: {', '.join(listed)}"
            raise UsageError(f"this evaluation does not use {id!r}; {hint}")


def is_compatible_type(value: Any, default: Any) -> bool:
    """Whether a value is of the kind of another one."""
    if default is None or value is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def parameter_type_name(default: Any) -> str:
    """What a kind of value is called."""
    kind = "truth value" if isinstance(default, bool) else "number" if isinstance(default, int | float) else ""
    return kind or {"str": "word"}.get(type(default).__name__, type(default).__name__)
