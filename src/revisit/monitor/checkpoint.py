"""Checkpoint: what a monitor found at one moment of a training, as numbers, pictures and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import METRICS, Case, Record
from revisit.core.text import count_and_noun
from revisit.evidence.frames import Thumbnails
from revisit.monitor.loggers import LogEntry, MomentPicture, write_to_loggers
from revisit.monitor.ranks import rank_and_count
from revisit.monitor.scoring import Spent
from revisit.results import Cell, Results
from revisit.results.ceilings import held_to_truth, metrics_changed_by_truth, ranking_score_id
from revisit.results.cells import make_score_cell
from revisit.results.display import FEW_SCENES, interval_ends_text, number_text, score_title
from revisit.results.score_names import add_held_suffix
from revisit.results.worst_frames import worst_or_first_return_frame

PREFIX = "revisit/"
GAP = 4  # pixels between the pictures of a moment
TITLE = 14  # pixels above each for what it is
RANGE = (0.0, 1.0)  # of memory


@dataclass(frozen=True)
class Checkpoint:
    """Memory at one moment of a training: one number with its interval, its coverage, pictures and cost.

    Attributes
    ----------
    results
        All answers.
    metric
        The metric of memory that the number rests on; the same at every checkpoint.
    memory
        Mean of 0 to 1 over all clips that could test memory; one that never looked away or never came back counts 0.
    tested
        Mean over the clips that did test it, as tables have it.
    coverage
        Share of the clips that tested memory.
    spent
        Seconds: in all, in networks, in other observers.
    report
        The page, where the monitor writes one.
    missing
        Clips of the subset that did not come.
    shown
        Small pictures of each clip, by the id of its case.

    Examples
    --------
    >>> monitor = revisit.Monitor(metrics=["return_consistency", "motion_amount"])
    >>> monitor.update(np.full((8, 32, 48, 3), 128, np.uint8), name="still")
    >>> checkpoint = monitor.compute()
    >>> checkpoint.memory.mean, checkpoint.coverage
    (0.0, 0.0)
    """

    results: Results
    metric: str
    memory: Cell
    tested: Cell
    coverage: float
    spent: Spent
    report: Path | None = None
    missing: tuple[str, ...] = ()
    shown: Mapping[str, Thumbnails] = field(default_factory=dict, repr=False)

    @property
    def score(self) -> str:
        """The name of the scores that the number rests on: `<metric>.held` where they are held to the truth."""
        return ranking_score_id(self.results, self.metric)

    @property
    def sentence(self) -> str:
        """What a person reads in the console."""
        value = number_text(self.memory.mean)
        between = f" ({interval_ends_text(self.memory.interval)})" if self.memory.interval else ""
        between = f" ({FEW_SCENES})" if self.memory.few_scenes else between
        clips = len(self.results.entries)
        each = self.spent.total / max(1, len(self.results.cases))
        networks = f", networks {self.spent.networks:.1f} s" if self.spent.networks else ""
        return (
            f"memory {value}{between} by {self.score}: {self.tested.n} of {count_and_noun(clips, 'clip')} tested it; "
            f"{self.spent.total:.1f} s, {each:.2f} s a clip{networks}"
        )

    def scalars(self) -> dict[str, float]:
        """Numbers for a log, those with an interval with its ends as `_low` and `_high`.

        Returns
        -------
        dict
            `revisit/memory`, `revisit/coverage`, each metric, those held to the truth under names of their own
            (`.held`), and what the evaluation took. Too few scenes have no interval, and no ends.

        Examples
        --------
        >>> monitor = revisit.Monitor(metrics=["return_consistency", "motion_amount"])
        >>> monitor.update(np.full((8, 32, 48, 3), 128, np.uint8), name="still")
        >>> monitor.compute().scalars()["revisit/coverage"]
        0.0
        """
        cells = {"memory": self.memory, "memory_tested": self.tested}
        held = metrics_changed_by_truth(self.results)
        names = [*self.results.metrics, *(add_held_suffix(metric) for metric in self.results.metrics if metric in held)]
        cells |= {name: self.results.cell(name) for name in names}
        scalars = {"coverage": self.coverage, "clips": float(len(self.results.cases))}
        scalars |= {"seconds": self.spent.total, "seconds_networks": self.spent.networks}
        for name, cell in cells.items():
            if cell.mean is not None:
                scalars[name] = cell.mean
                if cell.interval is not None:
                    scalars[f"{name}_low"], scalars[f"{name}_high"] = cell.interval
        return {PREFIX + name: float(value) for name, value in scalars.items()}

    def pictures(self, count: int = 3) -> list[MomentPicture]:
        """The worst moments as pictures.

        Parameters
        ----------
        count
            How many, each of another clip.

        Returns
        -------
        list of Picture
            The worst first.

        Examples
        --------
        >>> monitor = revisit.Monitor(metrics=["return_consistency", "motion_amount"])
        >>> monitor.update(np.full((8, 32, 48, 3), 128, np.uint8), name="still")
        >>> [picture.caption for picture in monitor.compute().pictures()]
        ['still: the camera is frozen: nothing moves']
        """
        worst = sorted(memory_scores(self.results, self.metric), key=lambda one: (one[1], one[0].case.id))
        chosen = [record for record, value in worst if value < 1 and record.case.id in self.shown][:count]
        return [self._moment_picture(f"worst_{place}", record) for place, record in enumerate(chosen, 1)]

    def log(self, logger: Any, step: int) -> None:
        """Write scalars, pictures and the report's address to a logger; ranks other than 0 write nothing.

        Parameters
        ----------
        logger
            A W&B run, a TensorBoard SummaryWriter, an MLflow client with its run (`(client, run_id)`) or the module
            `mlflow`, or a logger of Lightning. Or a list of them.
        step
            Of the training.

        Examples
        --------
        >>> monitor.compute().log(wandb.run, step=1000)  # doctest: +SKIP
        """
        if rank_and_count()[0] == 0:
            write_to_loggers(LogEntry(self.scalars(), self.pictures, self.report), logger, step)

    def _moment_picture(self, name: str, record: Record) -> MomentPicture:
        case, film = record.case, self.shown[record.case.id]
        frame = worst_or_first_return_frame(self.results, case, self.metric)
        frame = int(film.index[-1]) if frame is None else frame
        views = {"first view": (film, int(film.index[0])), f"frame {frame}": (film, frame)}
        truth = self.results.truth_of(case)
        if truth is not None and truth.id in self.shown:
            views["truth"] = self.shown[truth.id], frame
        parts = {title: _decode_nearest_thumbnail(*view) for title, view in views.items()}
        score_text = f"{score_title(self.score)} {number_text(record.value)}, frame {frame}"
        why = record.sentence if record.value is None else score_text
        return MomentPicture(name, _join_titled_pictures(parts), f"{case.clip_name}: {why}")


def memory_scores(results: Results, metric: str) -> Iterator[tuple[Record, float]]:
    """The answers that the number of memory rests on, each as a share of the best score.

    A gate that is not open counts 0: the clip did not look away and come back. Where it is not open for the truth
    either, the scene is no test, and where there is no score for other reasons nobody knows: both are left out.
    """
    low, high = METRICS[metric].range
    assert low is not None and high is not None
    for record in held_to_truth(results).records_for(metric):
        if record.value is not None:
            share = (record.value - low) / (high - low)
            yield record, share if METRICS[metric].higher_is_better is not False else 1 - share
        elif "gate" in record.facts and not _is_gate_closed_for_truth(results, record.case, metric):
            yield record, 0.0


def memory_mean_cell(results: Results, metric: str) -> Cell:
    """The mean of them with its interval over scenes, by the rules of tables; refused clips count 0, too."""
    values = [(value, record.case.scene) for record, value in memory_scores(results, metric)]
    values += [(0.0, entry.id) for entry in results.rejected if not entry.missing]
    return make_score_cell(values, len(results.entries), RANGE, True, held_to_truth(results).two_valued(metric))


def _is_gate_closed_for_truth(results: Results, case: Case, metric: str) -> bool:
    truth = results.truth_of(case)
    answer = None if truth is None else results.answer(truth, metric)
    return answer is not None and not answer.scored and "gate" in answer.facts


def _decode_nearest_thumbnail(film: Thumbnails, frame: int) -> np.ndarray:
    """The small picture nearest to a frame."""
    import cv2

    row = int(np.abs(film.index - frame).argmin())
    bgr = np.asarray(cv2.imdecode(np.frombuffer(film.picture(row), np.uint8), cv2.IMREAD_COLOR))
    return bgr[..., ::-1]


def _join_titled_pictures(pictures: Mapping[str, np.ndarray]) -> np.ndarray:
    """Pictures with their titles above, at the height of the lowest."""
    import cv2

    height = min(len(picture) for picture in pictures.values())
    line = np.full((TITLE + height, GAP, 3), 255, np.uint8)
    parts: list[np.ndarray] = []
    for title, picture in pictures.items():
        head = np.full((TITLE, picture.shape[1], 3), 255, np.uint8)
        cv2.putText(head, title, (1, TITLE - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.35, (0, 0, 0), 1, cv2.LINE_AA)
        parts += [np.concatenate([head, picture[:height]]), line]
    return np.ascontiguousarray(np.concatenate(parts[:-1], axis=1))
