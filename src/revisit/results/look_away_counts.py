"""Does it look away and come back? How many clips of each model do, where the truth or the request does.

A model whose camera never leaves, or never returns, cannot show that it remembers. That is counted before anything is
compared, and only on the clips on which the truth looks away and comes back; without a truth, on those whose camera
script does; without either, on all. A return where none was due counts for nothing. A clip that is missing did not come
back; one that cannot be read neither stays nor returns, and is counted apart.

A clip comes back to a world that went on, to one that is reset, to neither of the two, or to one without the target.
Where it is unclear whether the target is back, that is said instead of the first two.

The outcome of the unseen event (`event_outcome`) is d_first / (d_first + d_truth): 0 as in the first view, 1 as in the
truth, and in between for what looks like neither. So there are two bounds:

- *Reset* is an outcome up to `RESET`: at least three times as near to the first view as to the truth. A reset is the
  first view again. It is also the outcome from which a diagnosis without a target finds `state_reset`.
- *Went on* is an outcome from `WENT_ON` on: at least half again as near to the truth as to the first view. A world may
  go on further than the truth, and then differs from both: more foam, darker tea.

What the gate of the target or the diagnosis says of the clip comes first: without its target, or with the target in its
old state or in another place, no world went on. Nor does one by the outcome alone where the gate is undecided: an
emptied place may resemble the truth, as that of a candle that burns down. Then the diagnosis must deny that the object
vanished, and the gate find its return the most probable. docs/verdict.md has the measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.core import Case, Rejected
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names
from revisit.diagnosis.diagnose import Diagnosis, can_diagnose, diagnose
from revisit.geometry.camera_script import leaves_and_returns
from revisit.results.ceilings import OUTCOME, RESET, WENT_ON
from revisit.results.clip_answers import ClipAnswers
from revisit.results.collapses import is_blank_clip
from revisit.results.display import NAMES, clips_of_models_text
from revisit.results.funnel import LEAVES, RETURNED, cases_passing_gate, looks_away_and_returns
from revisit.results.metric_columns import NO_ANSWER

ASK = "Does it look away and come back?"
BY_TRUTH, BY_REQUEST, ALL_CLIPS = "truth", "request", "all"
WHERE = {BY_TRUTH: "where the truth does", BY_REQUEST: "where the camera was asked to", ALL_CLIPS: ""}
GROUPS = 5  # of models that come back equally often, in the headline
UNWRITTEN = ("model", "stayed_away", "short", "blank")  # counts that are not written to files
AS_IT_SHOULD, AS_AT_FIRST, AS_NEITHER, WITHOUT_TARGET = "went on", "reset", "neither", "gone"
TARGET_UNCLEAR = "target unclear"
TARGET_GATE = "target_return"
REAPPEARANCE = "target_reappearance"  # 0 where the target's place came back into view without it
BACK, NOT_BACK = "hidden, returned", "hidden, not returned"  # labels of that gate
VANISHES = "vanish"
OTHER_STATES = frozenset({"state_reset", "state_frozen", "teleport"})  # findings that deny that the event went on


@dataclass(frozen=True)
class LookAwayCount:
    """How far the clips of a model get, of those that are to look away and come back."""

    model: str
    asked: int  # clips that can be read, and are to look away and come back
    moved: int
    left: int
    returned: int
    unclear: int  # the gates cannot tell whether it left or returned
    unreadable: int  # further clips that were to look away and come back, and cannot be read
    judged: int  # came back, and it is known what became of the target or of what happened unseen
    reset: int  # of these, came back as if nothing had happened
    gone: int = 0  # of these, came back without the target
    neither: int = 0  # of these, came back to what is neither as at first nor as in the truth
    target_unclear: int = 0  # further clips that came back, of which only the target could tell to what
    stayed_away: int = 0  # left, and surely did not come back
    missing: int = 0  # further clips that were to look away and come back, and that nobody made
    short: int = 0  # of those asked: left, and end before the truth returns
    blank: int = 0  # of those asked: show nothing

    @property
    def went_on(self) -> int:
        """Clips that came back to a world that went on."""
        return self.judged - self.reset - self.gone - self.neither

    @property
    def due(self) -> int:
        """Clips that are to look away and come back, missing ones included."""
        return self.asked + self.missing

    @property
    def share(self) -> float:
        """Share of the clips that came back."""
        return self.returned / max(self.due, 1)

    @property
    def text(self) -> str:
        """`2 of 3`: clips that came back."""
        return f"{self.returned} of {self.due}{self.missing_text}" if self.due else "not read"

    @property
    def missing_text(self) -> str:
        """`, 1 missing`; nothing where all clips are there."""
        return f", {self.missing} missing" if self.missing else ""

    def as_json(self) -> dict[str, int]:
        """As summary.json has it, by the name of the model."""
        counts = {name: count for name, count in vars(self).items() if name not in UNWRITTEN}
        return counts if self.missing else {name: count for name, count in counts.items() if name != "missing"}


@dataclass(frozen=True)
class LookAwayCounts:
    """The counts of all models."""

    asked_by: str  # BY_TRUTH, BY_REQUEST or ALL_CLIPS
    models: tuple[LookAwayCount, ...]  # who comes back most often first
    truth_unclear: int = 0  # clips that are not asked, because it is unclear what the truth does
    truth_unreadable: int = 0  # of these, because the truth cannot be read

    def count_of_model(self, model: str) -> LookAwayCount | None:
        """The counts of a model."""
        return next((count for count in self.models if count.model == model), None)

    @property
    def returning(self) -> list[LookAwayCount]:
        """Models that come back on some clip."""
        return [count for count in self.models if count.returned]

    @property
    def asked(self) -> list[LookAwayCount]:
        """Models with a clip that was asked and can be read."""
        return [count for count in self.models if count.asked]

    @property
    def counts_without_return(self) -> list[LookAwayCount]:
        """Models that were asked and never come back."""
        return [count for count in self.asked if not count.returned]

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.asked:
            return f"not asked: {self._unasked_reason()}"
        parts = self._share_texts(self.returning, self._where_text)
        # Of those whose clips show nothing, or end before the truth returns, none could have come back.
        others = [count for count in self.counts_without_return if count.asked != count.short + count.blank]
        if others:
            never = join_names([count.model for count in others], NAMES)
            unclear = sum(count.unclear for count in others)
            seen = f"never seen to ({count_and_noun(unclear, 'clip')} unclear)" if unclear else "never"
            parts.append(f"{seen}{self._where_text if not parts else ''}: {never}")
        unread = {count.model: count.unreadable for count in self.models if count.unreadable}
        blank = {count.model: (count.blank, count.asked) for count in self.models if count.blank}
        parts += [clips_of_models_text(blank, "show nothing", "shows nothing"), self.short_clips_text]
        return "; ".join(filter(None, [*parts, unreadable_clips_text(unread) if unread else ""]))

    def _share_texts(self, counts: Sequence[LookAwayCount], where: str = "", on: str = "on") -> list[str]:
        """`wan on 2 of 3 clips`, `svc on 1 of 3, 1 missing`: models that come back, those that do as often together."""
        texts: list[str] = []
        for share, some in group_items(counts, lambda count: (count.returned, count.due, count.missing_text)).items():
            returned, due, missing = share
            clips = str(due) if texts else f"{count_and_noun(due, 'clip')}{where}"
            texts.append(f"{join_names([one.model for one in some], NAMES)} {on} {returned} of {clips}{missing}")
        return texts

    @property
    def short_clips_text(self) -> str:
        """`all 3 clips of a end before the truth returns`; nothing where none does."""
        short = {count.model: (count.short, count.asked) for count in self.models if count.short}
        words = "before the truth returns"
        return clips_of_models_text(short, f"end {words}", f"ends {words}")

    def _unasked_reason(self) -> str:
        if any(count.unreadable for count in self.models):
            return "no clip could be read"
        if self.truth_unreadable:
            return f"the truth of {count_and_noun(self.truth_unreadable, 'scene')} could not be read"
        if self.truth_unclear:
            scenes = count_and_noun(self.truth_unclear, "scene")
            return f"it is unclear whether the truth looks away and comes back ({scenes})"
        who = "the truth" if self.asked_by == BY_TRUTH else "the requested camera"
        return f"{who} never looks away and comes back on these clips"

    @property
    def _where_text(self) -> str:
        return f" {WHERE[self.asked_by]}".rstrip()

    @property
    def outcome_sentences(self) -> list[str]:
        """What those that come back come back to, where something was to happen unseen."""
        states = {
            "went_on": "back to a world that went on",
            "neither": "back to neither the first state nor the true one",
            "gone": "back without the target",
            "reset": "back with the world reset",
            "target_unclear": "back, but whether the target does is unclear",
        }
        sentences = []
        for state, how in states.items():
            shares: list[str] = []
            for count in self.models:
                if n := getattr(count, state):
                    of = count.returned if state == "target_unclear" else count.judged
                    shares.append(f"{count.model} ({n} of {of if shares else count_and_noun(of, 'clip')})")
            if shares:
                sentences.append(f"{join_names(shares, NAMES)} {'comes' if len(shares) == 1 else 'come'} {how}")
        return sentences

    @property
    def headline(self) -> str:
        """The finding in one line: who comes back, and how many do not; empty where nobody was asked."""
        tested = self.asked
        if not tested:
            return ""
        where = self._where_text
        if len(tested) == 1:
            clips = f"{tested[0].returned} of {count_and_noun(tested[0].due, 'clip')}"
            return f"{tested[0].model} looks away and comes back on {clips}{where}{tested[0].missing_text}"
        returning = self.returning
        if not returning:
            never = "was seen to come back" if any(count.unclear for count in tested) else "ever comes back"
            return f"none of {len(tested)} models {never}{where}"
        often = f": {join_names(self._share_texts(returning), GROUPS)}"
        if self.outcome_sentences:  # these name the models, so that only those remain which come back on some clips
            some = self._share_texts([count for count in returning if count.returned < count.due], on="on only")
            often = f", {join_names(some, GROUPS)}" if some else ""
        if len(returning) < len(tested):
            verb = "looks away and comes back" if len(returning) == 1 else "look away and come back"
            return f"{len(returning)} of {len(tested)} models {verb}{often}"
        all_of_them = "both models" if len(tested) == 2 else f"all {len(tested)} models"
        if all(count.returned == count.due for count in tested):
            return f"{all_of_them} look away and come back on every clip{where}"
        return f"{all_of_them} look away and come back{often}"

    @property
    def some_return_and_others_never(self) -> bool:
        """Whether some models come back and others never do."""
        return bool(self.returning and self.counts_without_return)

    def as_json(self) -> dict[str, object]:
        """As summary.json has it, sentences included."""
        return {
            "asked_by": self.asked_by,
            "truth_unclear": self.truth_unclear,
            "truth_unreadable": self.truth_unreadable,
            "models": {count.model: count.as_json() for count in self.models},
            "sentence": self.sentence,
            "headline": self.headline,
        }


def unreadable_clips_text(clips: Mapping[str, int]) -> str:
    """`2 clips of beta could not be read`, from the number of such clips of each model."""
    number = count_and_noun(sum(clips.values()), "clip")
    if len(clips) == 1:
        return f"{number} of {next(iter(clips))} could not be read"
    return f"{number} could not be read ({join_names([f'{model} {n}' for model, n in clips.items()], NAMES)})"


def count_look_aways(results: ClipAnswers) -> LookAwayCounts | None:
    """How many clips of each model look away and come back; None where no gate was asked.

    Parameters
    ----------
    results
        All answers of a run.

    Returns
    -------
    LookAwayCounts or None
    """
    if not results.was_asked("view_return", "target_return"):
        return None
    return results.once("look away counts", lambda: _count_look_aways_of_all_models(results))


def _count_look_aways_of_all_models(results: ClipAnswers) -> LookAwayCounts:
    is_asked, asked_by, unclear, unreadable = _which_cases_should_return(results)
    due = {_clip_of_any_model(case) for case in (*results.whole.cases, *results.truths) if is_asked(case)}
    counts = [
        _count_look_aways_of_model(
            results, model, [case for case in part.cases if is_asked(case)],
            sum(entry.missing and (asked_by == ALL_CLIPS or _clip_of_any_model(entry) in due)
                for entry in part.rejected),
        )
        for model, part in results.groups("model").items()
    ]  # fmt: skip
    ordered = sorted(counts, key=lambda count: (-count.share, -count.left, count.model))
    return LookAwayCounts(asked_by, tuple(ordered), unclear, unreadable)


def _clip_of_any_model(entry: Case | Rejected) -> str:
    """The id of a clip, present or missing, without its model."""
    return entry.id.removesuffix("#0").replace(f"@{entry.model}", "", 1)


def _which_cases_should_return(results: ClipAnswers) -> tuple[Callable[[Case], bool], str, int, int]:
    """Which clips are to look away and come back, who says so, and on how many the truth is unclear or unreadable."""
    truths = {case.id: truth for case in results.cases if (truth := results.truth_of(case)) is not None}
    if truths:
        answers = {truth.id: looks_away_and_returns(results, truth) for truth in truths.values()}
        unclear = sum(value is None for value in answers.values())
        unreadable = sum(results.unreadable(truth) for truth in answers)
        return lambda case: case.id in truths and answers[truths[case.id].id] is True, BY_TRUTH, unclear, unreadable
    requests = {camera: leaves_and_returns(camera) for camera in {case.camera for case in results.cases} if camera}
    if any(value is not None for value in requests.values()):
        return lambda case: requests.get(case.camera) is True, BY_REQUEST, 0, 0
    return lambda case: True, ALL_CLIPS, 0, 0


def _count_look_aways_of_model(results: ClipAnswers, model: str, cases: Sequence[Case], missing: int) -> LookAwayCount:
    readable = [case for case in cases if not results.unreadable(case)]
    back = {case.id: looks_away_and_returns(results, case) for case in readable}
    returned = [case for case in readable if back[case.id]]
    states = Counter(state for case in returned if (state := returned_state(results, case)) is not None)
    left = [case for case in readable if back[case.id] or _camera_leaves(results, case)]
    stayed_away = [case for case in left if back[case.id] is False]
    short = sum(_ends_before_truth_returns(results, case) for case in stayed_away)
    blank = sum(not back[case.id] and is_blank_clip(results, case) for case in readable)
    moved = {case.id for case in (*left, *cases_passing_gate(results, readable, "camera_moved"))}
    return LookAwayCount(
        model, len(readable), len(moved), len(left), len(returned), sum(value is None for value in back.values()),
        len(cases) - len(readable), states.total() - states[TARGET_UNCLEAR], states[AS_AT_FIRST],
        states[WITHOUT_TARGET], states[AS_NEITHER], states[TARGET_UNCLEAR], len(stayed_away),
        missing, short, blank,
    )  # fmt: skip


def _camera_leaves(results: ClipAnswers, case: Case) -> bool:
    view, away = (results.answer(case, gate) or NO_ANSWER for gate in ("view_return", "look_away"))
    return view.label in LEAVES or away.label == "looks away"


def _ends_before_truth_returns(results: ClipAnswers, case: Case) -> bool:
    """Whether a clip is over, in frames and in seconds, when the camera of the truth comes back."""
    truth = results.truth_of(case)
    view = NO_ANSWER if truth is None else results.answer(truth, "view_return") or NO_ANSWER
    if truth is None or view.label != RETURNED or "first_return_frame" not in view.facts:
        return False
    own, true = results.series(case, "view_return"), results.series(truth, "view_return")
    if own is None or true is None or not len(own["frame"]):
        return False
    row = int(np.searchsorted(true["frame"], view.facts["first_return_frame"]))
    return bool(own["frame"][-1] < true["frame"][row] and own["seconds"][-1] < true["seconds"][row])


def diagnosis_of_case(results: ClipAnswers, case: Case) -> Diagnosis:
    """What a clip shows, from its answers; worked out once for all parts of a run."""
    whole = results.whole
    owner = whole if whole.of(case) is results.of(case) else results
    return owner.once(f"diagnosis of {case.id}", lambda: diagnose(results.of(case)))


def returned_state(results: ClipAnswers, case: Case) -> str | None:
    """What a clip that looked away and came back shows.

    Parameters
    ----------
    results
        All answers of a run, as they were measured.
    case
        A clip that came back.

    Returns
    -------
    str or None
        `went on`, `reset`, `neither` or `gone`; `target unclear` where only the target could tell which of the first
        two, or whether it is gone; None where nothing was to happen unseen, or nobody can tell.
    """
    diagnosis = diagnosis_of_case(results, case) if can_diagnose(results.of(case)) else None
    kinds = frozenset() if diagnosis is None else frozenset(finding.kind for finding in diagnosis.findings)
    truth = results.truth_of(case)
    target = results.answer(case, TARGET_GATE) or NO_ANSWER
    is_unsure = target.status == "unsure"
    is_missing = results.score(case, REAPPEARANCE) == 0
    if VANISHES in kinds or (is_missing and (truth is None or results.score(truth, REAPPEARANCE) != 0)):
        return WITHOUT_TARGET
    outcome = results.score(case, OUTCOME)
    if outcome is None:
        return None
    if outcome <= RESET:
        # As at first and empty may look alike to the outcome: which of the two it is, only the target says.
        return TARGET_UNCLEAR if is_unsure else AS_AT_FIRST
    if outcome < WENT_ON or kinds & OTHER_STATES:
        return AS_NEITHER
    in_truth = NO_ANSWER if truth is None else results.answer(truth, TARGET_GATE) or NO_ANSWER
    if target.label == NOT_BACK and in_truth.label != NOT_BACK:
        return None
    # An undecided gate may lean towards the return, where the diagnosis denies that the object vanished.
    is_denied = diagnosis is not None and VANISHES not in diagnosis.undecided_kinds
    if is_unsure and not (is_denied and target.facts.get("guess") == BACK):
        return TARGET_UNCLEAR
    return AS_IT_SHOULD
