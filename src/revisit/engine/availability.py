"""Which observers and weights an evaluation needs, and which of them this machine has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from revisit.core import METRICS, OBSERVERS, SUITES, Gate, Metric, Observer
from revisit.core.text import count_and_noun, join_names
from revisit.engine.dependencies import ObserverSet, gates_of, observed_ids_needed_by, why_unavailable
from revisit.observers.sets import load_roles
from revisit.results.file_types import PlanFile
from revisit.weights.install import missing_parts

LITE = "lite"
NAMED = 5  # observers or weights that a line names


@dataclass(frozen=True)
class Availability:
    """The own observers of a set that are needed: those that run here, and why the others do not."""

    set: str
    running: tuple[Observer, ...]
    missing: Mapping[str, tuple[Observer, str]]  # observer -> itself, and why it cannot run

    @property
    def missing_observers_sentence(self) -> str:
        """What cannot run here, and the command that brings it; nothing where all can."""
        if not self.missing:
            return ""
        missing = missing_parts(id for observer, _ in self.missing.values() for id in observer.weights)
        absent = [*missing.weights, *missing.by_hand]
        of = len(self.missing) + len(self.running)
        parts = [f"{' and '.join(missing.libraries)} not installed"] if missing.libraries else []
        parts += [f"no weights of {join_names(absent, NAMED)}"] if absent else []
        parts += [f"damaged weights of {join_names(missing.damaged, NAMED)}"] if missing.damaged else []
        parts += [why for observer, why in self.missing.values() if not observer.weights]
        remedy = f": {missing.remedy}" if missing.remedy else ""
        return (
            f"{len(self.missing)} of the {count_and_noun(of, 'observer')} that the set {self.set} adds to {LITE} "
            f"cannot run here ({'; '.join(parts)}){remedy}"
        )


def check_observer_availability(observers: ObserverSet, checks: Iterable[Metric | Gate]) -> Availability:
    """Which own observers of a set these metrics and gates need, and whether they can run here."""
    common = {observer.id for observer in load_roles(LITE).values()}
    makers = {maker.id: maker for check in checks for maker in observers.makers_for(check)}
    own = [makers[id] for id in sorted(makers) if id not in common and makers[id].kind not in ("file", "judge")]
    why = {one.id: why_unavailable(one) for one in own}
    running = tuple(one for one in own if not why[one.id])
    return Availability(observers.id, running, {one.id: (one, why[one.id]) for one in own if why[one.id]})


def observed_by_sets_text(plan: PlanFile) -> str:
    """Who really observed, of a plan.json: the sets of which own observers ran, and what they lacked; else `lite`."""
    facts = plan.get("observers") or {}
    sets: dict[str, None] = {}
    lacks: dict[str, None] = {}
    for id, maker in plan["made_by"].items():
        observers = facts.get(id)
        if observers is None or observers["own"]:  # of a plan from before, the set that was asked for
            sets[maker["set"]] = None
        if observers is not None:
            lacks.update(dict.fromkeys(observers["lacking"]))
    if not sets:
        return LITE
    return " + ".join(sets) + (f" without {join_names(list(lacks), NAMED)}" if lacks else "")


def group_set_observers_by_weights(set: str, suite: str = "", metrics: Sequence[str] = ()) -> dict[str, list[str]]:
    """Weights → observers of this set that load them: all, or those behind a suite's or some metrics' evidence."""
    roles = load_roles(set)
    observers = list(roles.values())
    if suite or metrics:
        chosen_metrics = [METRICS[id] for id in (metrics or SUITES[suite].metrics())]
        always = SUITES[suite].card.get("gates", ()) if suite and not metrics else ()
        checks: list[Metric | Gate] = [*gates_of(chosen_metrics, always), *chosen_metrics]
        kinds = {id for check in checks for id in observed_ids_needed_by(check)}
        observers = [roles[id] for id in sorted(kinds & roles.keys())]
    return group_observers_by_weights(observers)


def group_observers_by_weights(observers: Iterable[Observer] | None = None) -> dict[str, list[str]]:
    """Weights → the observers that load them, of these or of all."""
    observers_by_weights: dict[str, list[str]] = {}
    for observer in OBSERVERS.values() if observers is None else observers:
        for id in observer.weights:
            observers_by_weights.setdefault(id, []).append(observer.id)
    return observers_by_weights
