"""Verdicts under changes that no viewer would notice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from revisit.audit.steadiness import DISTURBANCES, audit_steadiness, count_flips, disturbed_cases
from revisit.core import Case, Clip, GateResult, Record, UsageError
from revisit.evidence.views import ViewLinks
from revisit.media import clip_digest, open_clip
from revisit.media.perturb import WORDS, perturb_frame
from revisit.metrics.margins import add_confidence_or_make_unsure
from revisit.metrics.view_gate import shortest_chain_warps_and_reached
from revisit.results import Results
from tests.conftest import Cli
from tests.looking import wall, window


@pytest.mark.parametrize("name", sorted(WORDS))
def test_a_disturbance_is_small_and_the_same_every_time(name: str) -> None:
    rgb = wall(200, 120)
    made = perturb_frame(rgb, name, frame_number=3)
    assert made.dtype == np.uint8 and made.shape == rgb.shape and not np.array_equal(made, rgb)
    assert np.array_equal(made, perturb_frame(rgb, name, frame_number=3))
    if name == "shift":
        assert np.array_equal(made[1:, 1:], rgb[:-1, :-1])
    else:
        assert np.abs(made.astype(int) - rgb).max() <= 3
        assert np.abs((made.astype(float) - rgb).mean()) <= 2


def test_truncation_darkens_by_half_a_level() -> None:
    rgb = np.full((200, 300, 3), 100, np.uint8)
    assert (perturb_frame(rgb, "truncated", 0) - 100.0).mean() == pytest.approx(-0.5, abs=0.02)
    assert (perturb_frame(rgb, "noise", 0) - 100.0).mean() == pytest.approx(0, abs=0.02)


def test_a_disturbed_clip_is_another_clip(tmp_path: Path) -> None:
    from revisit.media import encode_mp4

    path = tmp_path / "a.mp4"
    encode_mp4(path, [window(wall(), 4 * k, 160)[:96] for k in range(4)], fps=8)
    digests = {clip_digest(Clip(path, disturbed=name)) for name in ("", *WORDS)}
    assert len(digests) == 1 + len(WORDS)
    with open_clip(Clip(path)) as stream:
        plain = [frame.rgb for frame in stream]
    with open_clip(Clip(path, disturbed="brighter")) as stream:
        for frame, rgb in zip(stream, plain, strict=True):
            assert np.array_equal(frame.rgb, np.minimum(rgb.astype(int) + 1, 255))


def test_flips_are_counted_and_cannot_tell_is_none() -> None:
    def case(id: str) -> Case:
        name = id.partition("~")[2]
        return Case(id, "folder", "m", "s", Clip(Path("x")), annotations={"disturbed": name} if name else {})

    said = {
        "a": "never left", "a~noise": "left, returned", "a~shift": "cannot tell", "a~darker": "never left",
        "b": "cannot tell", "b~noise": "left, returned", "b~shift": "never left",
    }  # fmt: skip
    records = [
        Record(case(id), "view_return", True, "unsure" if label == "cannot tell" else "closed", label=label)
        for id, label in said.items()
    ]
    row = count_flips(Results([record.case for record in records], records))["view_return"]
    assert (row["clips"], row["untold"], row["tried"]) == (2, 1, 5)
    assert row["flips"] == [{"case": "a", "disturbed": "noise", "from_to": {"": ["never left", "left, returned"]}}]
    assert row["rate"] == pytest.approx(0.2)


def verdict(label: str, state: str = "closed") -> GateResult:
    return GateResult(state, label, "a reason", {})


@pytest.mark.parametrize(
    ("turns_at", "state", "confidence"),
    [(1, "unsure", 0.0), (2, "closed", 0.25), (4, "closed", 0.75), (9, "closed", 1.0)],
)
def test_confidence_is_the_room_a_verdict_has(turns_at: int, state: str, confidence: float) -> None:
    def others(steps: int) -> Iterator[GateResult]:
        yield verdict("stays")
        yield verdict("stays" if steps < turns_at else "turns")

    found = add_confidence_or_make_unsure(verdict("stays"), others)
    assert (found.state, found.facts["confidence"]) == (state, confidence)
    if state == "unsure":
        assert found.label == "cannot tell" and "'stays', but 'turns'" in found.reason


def test_chains_are_the_shortest_ways_of_an_independent_library() -> None:
    """Lengths by scipy; the warps along a chain of shifts add up to the shift of its ends."""
    from scipy.sparse.csgraph import shortest_path

    rng = np.random.default_rng(0)
    n = 30
    places = rng.uniform(0, 1, (n, 2))
    seen = np.abs(places[:, None] - places[None]).max(axis=-1) < 0.3
    inliers = rng.integers(10, 60, (n, n))
    inliers = np.minimum(inliers, inliers.T)
    lead = np.zeros((n, n))
    warp = np.tile(np.eye(3), (n, n, 1, 1))
    warp[..., :2, 2] = places[None] - places[:, None]
    cost = np.where(seen, 1 + np.minimum(20 / inliers, 20.0), 0)
    np.fill_diagonal(cost, 0)
    wanted = shortest_path(cost, directed=False)
    way, reached = shortest_chain_warps_and_reached(seen, inliers, lead, warp, np.arange(n))
    assert np.array_equal(reached, np.isfinite(wanted))
    assert np.abs(way[reached][:, :2, 2] - warp[reached][:, :2, 2]).max() < 1e-12
    some = np.array([3, 17])
    assert np.array_equal(shortest_chain_warps_and_reached(seen, inliers, lead, warp, some)[0], way[some])


@pytest.mark.parametrize(("reference_frames", "lengths"), [(9, (8, 8)), (12, (8, 12))])
def test_a_reference_lacks_the_frame_that_the_clip_lacks(
    tmp_path: Path, reference_frames: int, lengths: tuple[int, int]
) -> None:
    from revisit.media import encode_mp4

    frames = [window(wall(), 20 * n, 240)[:136] for n in range(12)]
    encode_mp4(tmp_path / "a.mp4", frames[:9], fps=8)
    encode_mp4(tmp_path / "gt.mp4", frames[:reference_frames], fps=8)
    case = Case("a@m", "folder", "m", "a", Clip(tmp_path / "a.mp4"), Clip(tmp_path / "gt.mp4"), phases=(3, 6))
    cases = {entry.id: entry for entry in disturbed_cases(case, tmp_path) if isinstance(entry, Case)}
    for name, phases in (("first_less", (2, 5)), ("last_less", (3, 6))):
        disturbed = cases[f"a@m~{name}"]
        assert disturbed.reference is not None and disturbed.phases == phases
        streams = [disturbed.clip, disturbed.reference]
        shown = [[frame.rgb for frame in open_clip(clip)] for clip in streams]
        assert tuple(map(len, shown)) == lengths
        if reference_frames == 9:
            assert all(np.array_equal(mine, other) for mine, other in zip(*shown, strict=True))


def test_what_failed_is_not_counted_as_denied() -> None:
    case = Case("a", "folder", "m", "a", Clip(Path("a.mp4")))
    other = Case("a~noise", "folder", "m", "a", Clip(Path("a.mp4")), annotations={"disturbed": "noise"})
    records = [
        Record(case, "view_return", True, "open", label="left, returned"),
        Record(other, "view_return", True, "open", label="left, returned"),
        Record(other, "target_return", True, "failed"),
    ]
    rows = count_flips(Results((case, other), records))
    assert rows["view_return"]["tried"] == 1 and rows["diagnosis"]["tried"] == 0


def test_a_folder_without_a_readable_clip_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "manifest.jsonl").write_text('{"id": "a", "model": "m", "video": "/elsewhere/gone.mp4"}\n')
    with pytest.raises(UsageError, match=r"nothing in it can be used: .*gone\.mp4"):
        audit_steadiness(tmp_path / "manifest.jsonl", tmp_path / "out")


@pytest.mark.long
@pytest.mark.parametrize("name", ["shift", "truncated"])
def test_a_real_loop_is_never_called_its_opposite(shared: Path, name: str) -> None:
    """Cut off levels once turned this loop from "left, returned" into "left, not returned"."""
    from revisit.metrics.view_gate import derive_view_relations, view_phases, view_return
    from revisit.observers.views import links_between_views
    from tests.looking import look

    with open_clip(Clip(shared / "clips/lingbotmap_loop.mp4", disturbed=name)) as stream:
        frames, fps = list(stream), stream.info.fps
    links: ViewLinks = look(links_between_views, frames, fps)
    relations = derive_view_relations.fn(links)
    assert view_return(links, relations, view_phases.fn(relations)).label in ("left, returned", "cannot tell")


@pytest.mark.long
@pytest.mark.slow
def test_the_command_tries_a_folder(tmp_path: Path, revisit: Cli) -> None:
    from revisit.media import encode_mp4

    videos = tmp_path / "videos"
    videos.mkdir()
    there_and_back = [*range(0, 400, 40), *range(400, -1, -40)]
    encode_mp4(videos / "a.mp4", [window(wall(), x, 240)[:136] for x in there_and_back], fps=8)
    made = revisit("audit", "--steady", str(videos), "--out", str(tmp_path / "out"), "--workers", "0", "--quiet")
    found = json.loads((tmp_path / "out/steadiness/steadiness.json").read_text())
    row = found["verdicts"]["view_return"]
    assert (row["clips"], row["tried"], row["flips"]) == (1, len(DISTURBANCES), [])
    assert "view_return" in made.stdout and "0.0%" in made.stdout
