"""Navigation: did the camera go where each turn asked it to, and are turns that mirror each other alike?"""

from __future__ import annotations

from revisit.core import Case, NoScore, PublishedMaker, Score, Unscored, metric
from revisit.evidence.camera import PoseTrack
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.wbench.metrics.actions import FIRST_PERSON
from revisit.suites.wbench.metrics.published_path import NavigationScore, comparable_turn_pairs, published_path_score
from revisit.suites.wbench.metrics.requested_path import requested_path_score
from revisit.suites.wbench.metrics.rules import CARD, find_requested_turns

# Files that name no estimator are taken for MegaSAM's, whose files do not name it either.
MEGASAM = PublishedMaker("MegaSAM", "poses_from", others=("odometry", "mapanything-", "vggt", "da3"))
NO_PAIR = "no two turns of the case mirror or repeat each other, so that the benchmark gives it no score"
DID_NOT_GO = "no two turns that mirror or repeat each other went as asked, so that there is nothing to compare"


def _navigation_scores(
    case: Case, track: PoseTrack, rule: str, *, in_pairs: bool = True
) -> tuple[NavigationScore, dict[str, object]]:
    """The scores of a clip and what the record says of it; `in_pairs` asks for turns that are alike or mirrored."""
    upstream = is_upstream_rule(rule)
    turns = find_requested_turns(case, track, upstream)
    first_person = (case.annotations.get("perspective") or FIRST_PERSON) == FIRST_PERSON
    score = published_path_score if upstream else requested_path_score
    navigation = score(track.c2w, turns.bounds, turns.actions, first_person)
    by = "turns.json" if turns.from_file else "equal parts"
    facts: dict[str, object] = {**navigation.facts, "poses_from": track.source, "turns_by": by}
    if in_pairs and not comparable_turn_pairs(turns.actions):
        raise NoScore("does_not_apply", NO_PAIR, facts)
    return navigation, facts


@metric(
    id="wb_navigation", version=1, title="Navigation trajectory", needs=(Case, PoseTrack),
    upstream="navigation_trajectory", published_by=(MEGASAM,), responds_to=("disobeyed keys", "frozen camera"),
    blind_to=("content",), **CARD,
)  # fmt: skip
def navigation_trajectory(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """Mean of accuracy and consistency; accuracy alone where no mirrored turns went as asked (`corrected`)."""
    score, facts = _navigation_scores(case, track, rule)
    facts |= {"accuracy": score.accuracy, "consistency": score.consistency}
    return Score(score.accuracy if score.trajectory_score is None else score.trajectory_score, facts=facts)


@metric(
    id="wb_navigation_accuracy", version=1, title="Navigation accuracy", needs=(Case, PoseTrack), upstream="accuracy",
    published_by=(MEGASAM,), responds_to=("disobeyed keys", "frozen camera"), blind_to=("content",), **CARD,
)  # fmt: skip
def navigation_accuracy(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """How much of the camera's motion is what each turn asked for."""
    score, facts = _navigation_scores(case, track, rule, in_pairs=False)
    return Score(score.accuracy, facts=facts)


@metric(
    id="wb_navigation_consistency", version=1, title="Navigation consistency", needs=(Case, PoseTrack),
    upstream="consistency", published_by=(MEGASAM,), responds_to=("jitter",), blind_to=("content", "disobeyed keys"),
    **CARD,
)  # fmt: skip
def navigation_consistency(case: Case, track: PoseTrack, *, rule: str = "corrected") -> Score | Unscored:
    """How alike the paths of turns are that repeat or mirror each other."""
    score, facts = _navigation_scores(case, track, rule)
    if score.consistency is None:
        return Unscored("at_rest", DID_NOT_GO, facts)
    return Score(score.consistency, facts=facts)
