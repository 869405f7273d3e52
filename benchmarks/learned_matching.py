"""Whether XFeat's points join frames better than the classical ones of `lite.views`: matches, verdicts and time.

    python benchmarks/learned_matching.py poses CLIPS_WITH_POSES
    python benchmarks/learned_matching.py views LABELS.json VIDEOS... [--only NAME ...]

`poses` takes a folder of RealEstate10K clips with their pose files (NAME.mp4, NAME.txt), twelve frames of each, and
counts for all pairs of frames which matches lie within 1.5 pixels (at a longer side of 288) of the epipolar lines of
the published poses, and how many pairs one similarity joins as the view gate asks for it. `views` takes labels by eye,
{"scene/model": {"view": "left, returned"}}, looks for scene_model.mp4 in the folders of videos, and compares the gate's
verdict by classical points, by XFeat's points, and by XFeat's where the classical ones do not join two frames.

XFeat finds up to 500 points at the same size (288 pixels); they match where each is the other's nearest with a cosine
above 0.82 and a distance below 0.93 of the second nearest's. By this rule 1 of 1188 pairs of different places agreed on
the ten points that the gate asks for; without the second nearest it was 1 of 5.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np

from revisit.core import Clip, Unscored
from revisit.evidence.views import ViewLinks
from revisit.media import open_clip
from revisit.metrics.view_gate import SUPPORTED, VERIFIED, phases_of_first_view, view_relations, view_return
from revisit.observers import matching, views
from revisit.observers.matching import CELLS, Link, Points, find_described_points, link_by_similarity, match_points
from revisit.observers.pictures import VIEWED, gray_at_long_side

sys.path.insert(0, str(Path(__file__).parent / "matching"))  # where xfeat.py lies
MOST, LEAST_PROBABILITY, LEAST_COSINE, RATIO = 500, 0.02, 0.82, 0.93
TOLERANCE = 1.5  # pixels from the epipolar line
FRAMES = 12  # of a clip with poses
GAPS = ((1, 1), (2, 3), (4, 6), (7, FRAMES))  # of these frames
Match = Callable[[Points, Points], np.ndarray]


def learned_points(gray: np.ndarray) -> Points:
    """XFeat's points of a grey picture, as the classical ones come."""
    import torch
    import xfeat

    with torch.inference_mode():
        pictures = torch.from_numpy(np.ascontiguousarray(gray)).expand(1, 3, -1, -1)
        (found,) = xfeat.local_features(pictures, most=MOST, least_probability=LEAST_PROBABILITY)
    size = gray.shape[1], gray.shape[0]
    column, row = (found.xy / size * CELLS).astype(int).clip(0, np.array(CELLS) - 1).T
    return Points(found.xy.astype(float), found.descriptors, row * CELLS[0] + column, size)


def learned_match(a: Points, b: Points) -> np.ndarray:
    """Mutual nearest neighbours with a high cosine, clearly ahead of the second nearest."""
    if len(a.xy) < 3 or len(b.xy) < 3:
        return np.zeros((0, 2), int)
    cosine = a.descriptors @ b.descriptors.T
    nearest = cosine.argmax(axis=1)
    rows = np.arange(len(nearest))
    top = cosine[rows, nearest]
    keep = (top >= cosine.max(axis=0)[nearest]) & (top > LEAST_COSINE)
    rows, nearest, top = rows[keep], nearest[keep], top[keep]
    cosine[rows, nearest] = -2.0
    clear = (1 - top) < RATIO**2 * (1 - cosine.max(axis=1)[rows])
    return np.stack([rows[clear], nearest[clear]], axis=1)


KINDS: dict[str, tuple[Callable[[np.ndarray], Points], Match]] = {
    "classical": (find_described_points, match_points),
    "XFeat": (learned_points, learned_match),
}


def frames_of(clip: Path, numbers: Callable[[int, float], np.ndarray]) -> list[tuple[int, float, np.ndarray]]:
    """Number, time and grey picture of chosen frames."""
    with open_clip(Clip(clip)) as frames:
        chosen = set(numbers(frames.info.count, frames.info.fps).tolist())
        return [(one.index, one.time, gray_at_long_side(one, views.SIZE)) for one in frames if one.index in chosen]


def joined(one: Link) -> bool:
    """Whether the view gate takes two frames for the same view by this link."""
    return one.inliers >= VERIFIED and one.support >= SUPPORTED


def epipolar_distance(
    cameras: Sequence[np.ndarray], a: np.ndarray, b: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Sampson distance in pixels of matches between two frames, whose cameras are rows of a RealEstate10K file."""
    height, width = shape
    lenses, poses = [], []
    for row in cameras:
        fx, fy, cx, cy = row[1:5] * (width, height, width, height)
        lenses.append(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]))
        poses.append(row[7:].reshape(3, 4))
    turn = poses[1][:, :3] @ poses[0][:, :3].T
    x, y, z = poses[1][:, 3] - turn @ poses[0][:, 3]
    essential = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ turn
    fundamental = np.linalg.inv(lenses[1]).T @ essential @ np.linalg.inv(lenses[0])
    from_a, from_b = np.c_[a, np.ones(len(a))], np.c_[b, np.ones(len(b))]
    there, back = from_a @ fundamental.T, from_b @ fundamental
    length = np.sqrt(np.square(there[:, :2]).sum(axis=1) + np.square(back[:, :2]).sum(axis=1))
    return np.asarray(np.abs((from_b * there).sum(axis=1)) / np.maximum(length, 1e-12))


def compare_matches(folder: Path) -> None:
    """Print how many matches agree with the published poses, and how many pairs are joined, by gap."""
    rows: dict[tuple[str, int], list[tuple[int, int, bool]]] = {}
    for poses in sorted(folder.glob("re10k_*.txt")):
        cameras = [np.array(line.split(), float) for line in poses.read_text().splitlines()[1:]]
        frames = frames_of(poses.with_suffix(".mp4"), lambda count, _: np.linspace(0, count - 1, FRAMES).astype(int))
        for kind, (find, match) in KINDS.items():
            points = [find(gray) for _, _, gray in frames]
            for i, j in combinations(range(len(frames)), 2):
                pairs = match(points[i], points[j])
                distance = epipolar_distance(
                    [cameras[frames[i][0]], cameras[frames[j][0]]],
                    points[i].xy[pairs[:, 0]], points[j].xy[pairs[:, 1]], frames[i][2].shape,
                )  # fmt: skip
                gap = next(k for k, (least, most) in enumerate(GAPS) if least <= j - i <= most)
                agreeing = int((distance < TOLERANCE).sum())
                rows.setdefault((kind, gap), []).append(
                    (len(pairs), agreeing, joined(link_by_similarity(points[i], points[j], pairs)))
                )
    print(f"{'points':<12}{'gap':>7}{'pairs':>7}{'right matches a pair':>22}{'of all':>8}{'pairs joined':>14}")
    for (kind, gap), values in sorted(rows.items()):
        matches, right, joins = (np.array(column) for column in zip(*values, strict=True))
        least, most = GAPS[gap]
        share = right.sum() / max(matches.sum(), 1)
        print(f"{kind:<12}{f'{least}-{most}':>7}{len(right):>7}{right.mean():>22.1f}{share:>8.2f}{joins.mean():>14.2f}")


def view_links(frames: Sequence[tuple[int, float, np.ndarray]], kind: str) -> ViewLinks:
    """What `lite.views` makes of these frames, with points of this kind."""
    find, match = KINDS[kind]
    with (
        patch.object(views, "points_of_frame", lambda frame, gray: find(gray)),
        patch.object(views, "match_points", match),
        patch.object(matching, "match_points", match),
    ):
        stream = views.links_between_views.fn(None)
        next(stream)
        for frame in frames:
            stream.send(_Gray(*frame))
        try:
            stream.send(None)
        except StopIteration as end:
            return end.value
    raise AssertionError("the observer did not end")


class _Gray:
    """A frame of which only the grey picture is asked for."""

    def __init__(self, index: int, time: float, gray: np.ndarray) -> None:
        self.index, self.time, self.gray = index, time, gray

    def once(self, key: object, make: object) -> np.ndarray:
        """The grey picture, which has been made."""
        return self.gray


def either(classical: ViewLinks, learned: ViewLinks) -> ViewLinks:
    """The classical links, and XFeat's where those do not join two frames."""

    def joins(links: ViewLinks) -> np.ndarray:
        return np.asarray((links.inliers >= VERIFIED) & (links.support >= SUPPORTED))

    use = joins(learned) & ~joins(classical)
    return replace(
        classical,
        inliers=np.where(use, learned.inliers, classical.inliers),
        support=np.where(use, learned.support, classical.support),
        warp=np.where(use[..., None, None], learned.warp, classical.warp),
    )


def label_of(links: ViewLinks) -> str:
    """The view gate's verdict."""
    relations = view_relations(links)
    verdict = view_return(links, relations, phases_of_first_view(relations))
    return verdict.kind if isinstance(verdict, Unscored) else verdict.label


def compare_verdicts(labels: Path, folders: Sequence[Path], only: Sequence[str]) -> None:
    """Print the gate's verdict on each labelled clip by each kind of points, and how often it is the eye's."""
    right = dict.fromkeys((*KINDS, "either"), 0)
    spent = dict.fromkeys(KINDS, 0.0)
    count = 0
    for name, entry in json.loads(labels.read_text(encoding="utf-8")).items():
        file = f"{name.replace('/', '_')}.mp4"
        clip = next((folder / file for folder in folders if (folder / file).is_file()), None)
        if name.startswith("_") or entry["view"] == "?" or clip is None or (only and name not in only):
            continue
        frames = frames_of(clip, VIEWED.pick)
        links = {}
        for kind in KINDS:
            begin = time.process_time()
            links[kind] = view_links(frames, kind)
            spent[kind] += time.process_time() - begin
        links["either"] = either(*links.values())
        verdicts = {kind: label_of(one) for kind, one in links.items()}
        count += 1
        for kind, verdict in verdicts.items():
            right[kind] += verdict == entry["view"]
        print(f"{name}: by eye {entry['view']}; " + "; ".join(f"{kind} {one}" for kind, one in verdicts.items()))
    if count:
        print("right: " + ", ".join(f"{kind} {one} of {count}" for kind, one in right.items()))
        first, second = (spent[kind] / count for kind in KINDS)
        print(f"seconds of the processor a clip: {first:.2f} and {second:.2f}, a ratio of {second / first:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    poses = commands.add_parser("poses")
    poses.add_argument("folder", type=Path)
    by_eye = commands.add_parser("views")
    by_eye.add_argument("labels", type=Path)
    by_eye.add_argument("folders", type=Path, nargs="+")
    by_eye.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    if args.command == "poses":
        compare_matches(args.folder)
    elif args.command == "views":
        compare_verdicts(args.labels, args.folders, args.only)
    else:
        print("needs clips with poses or with labels: see --help")


if __name__ == "__main__":
    main()
