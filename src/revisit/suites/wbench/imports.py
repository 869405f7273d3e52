"""DreamSim's distances from a table, and the result files of the benchmark's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revisit.core import ANY_SET, MediaError, observer
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import read_csv_table, read_json_object
from revisit.observers.imports import parse_finite_floats, parse_frame_numbers, sort_by_unique_frame
from revisit.suites.wbench.evidence import DreamSimDistances, ResultFile

TABLE = "a CSV file with the columns frame and distance: DreamSim's distance of each frame from the first"
# Folder of the evaluator -> where a result stands in its JSON file, and what it is called in the report.
PLACES = {
    "spatial_consistency": (("score", "gated_spatial_consistency"), ("ret_sim", "spatial_consistency")),
    "navigation_trajectory": (("NavScore", "navigation_trajectory"),),
    "reconstruction_consistency": (("geometric_consistency", "geometric_consistency"),),
}


@observer(
    id="import.wb_dreamsim", version=1, kind="file", makes=DreamSimDistances, artifact="dreamsim", sets=(ANY_SET,)
)
def read_dreamsim_distances(path: Path) -> DreamSimDistances:
    """DreamSim's distance of frames from the first one, from a CSV file."""
    with raise_media_errors_naming_file(path):
        _, rows = read_csv_table(path, ("frame", "distance"), TABLE)
        frame = parse_frame_numbers([row["frame"] for row in rows], TABLE)
        distance = parse_finite_floats([row["distance"] for row in rows], "distance", TABLE)
        if len(distance) and (distance.min() < 0 or frame[0] != 0):
            raise MediaError(f"distances are 0 or more and begin with frame 0; expected {TABLE}")
        frame, distance = sort_by_unique_frame(frame, distance)
    return DreamSimDistances(frame, distance, "dreamsim")


@observer(id="import.wb_results", version=1, kind="file", makes=ResultFile, artifact="results", sets=(ANY_SET,))
def read_evaluator_results(path: Path) -> ResultFile:
    """What the benchmark's evaluator wrote of a case: <folder>/<metric>/case_<id>.json, for the file of one metric."""
    folder, name = path.parent.parent, path.name
    scores: dict[str, float] = {}
    for place in sorted(entry for entry in folder.iterdir() if (entry / name).is_file()):
        with raise_media_errors_naming_file(place / name):
            scores |= scores_of_result_file(place.name, read_json_object(place / name, "an object with score"))
    names = tuple(sorted(scores))
    return ResultFile(names, np.array([scores[one] for one in names], dtype=float), "WBench's evaluator")


def scores_of_result_file(metric: str, content: Mapping[str, object]) -> dict[str, float]:
    """The scores in a result file of one metric, by their names in the report."""
    scores: dict[str, float] = {}
    places = PLACES.get(metric, (("score", metric), (metric, metric)))
    parts = [content, *(part for part in (content.get("summary"), content.get("details")) if isinstance(part, Mapping))]
    for part in parts:
        for key, name in places:
            value = part.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
                scores.setdefault(name, float(value))
    psnr = next((part["photometric_psnr"] for part in parts if "photometric_psnr" in part), None)
    if metric == "reconstruction_consistency" and isinstance(psnr, int | float):
        scores["photometric_consistency"] = 1 - 10 ** (-psnr / 20)
    return scores
