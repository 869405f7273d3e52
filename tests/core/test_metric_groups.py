"""Groups of metrics: `-m lcm` instead of four ids, in every suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from revisit.core import SUITES, Case, Clip, Rejected, UsageError

# The words of the public evaluators' own command lines and subsets.
UPSTREAM = {
    "mind": {"lcm", "visual", "dino", "action", "gsc"},
    "mbench": {"object", "human", "environment", "causal", "entity"},
    "memobench": {"vqa", "ors", "fidelity", "camera"},
    "wrbench": {"camera", "integrity", "visible", "returned"},
    "folder": {"fidelity", "returning", "motion"},
}


@pytest.mark.parametrize("id", UPSTREAM)
def test_every_suite_has_groups_of_its_own_metrics(id: str) -> None:
    suite = SUITES[id]
    assert UPSTREAM[id] <= suite.groups.keys()
    for name, ids in suite.groups.items():
        assert ids and set(ids) <= set(suite.metrics()), name


def test_names_of_groups_metrics_and_gates_mix_and_come_once() -> None:
    mind = SUITES["mind"]
    assert mind.resolve_check_ids(["dino, mind_lcm_mse", "lcm"]) == [
        "mind_dino", "mind_lcm_mse", "mind_lcm_psnr", "mind_lcm_ssim", "mind_lcm_lpips"
    ]  # fmt: skip
    # What is both a chapter and a gate is the gate, as it was before there were groups.
    assert SUITES["folder"].resolve_check_ids(["target_return"]) == ["target_return"]
    with pytest.raises(UsageError, match=r"called 'lmc'; did you mean lcm\? The groups of the suite mind are lcm, "):
        mind.resolve_check_ids(["lmc"])


def test_the_command_takes_a_group(make_clip, tmp_path: Path, revisit) -> None:
    make_clip(tmp_path / "v/m/a.mp4")
    done = revisit("plan", "v", "-m", "motion", "--json")
    assert set(json.loads(done.stdout)["metrics"]) == set(SUITES["folder"].groups["motion"])
    assert "groups" in revisit("show", "mind").stdout
    refused = revisit("eval", "v", "-m", "moton", check=None)
    assert refused.returncode != 0 and "did you mean motion" in refused.stderr


def test_a_metric_is_asked_where_its_card_says() -> None:
    mind = SUITES["mind"]
    case = Case("a", "mind", "m", "a", Clip(Path("a.mp4")), condition="mirror_test")
    assert mind.asks("mind_gsc_mse", case) and not mind.asks("mind_lcm_mse", case)
    missing = Rejected("b", "missing", "m", "1st_data", "mem_test", True)
    assert mind.asks("mind_lcm_mse", missing) and not mind.asks("mind_gsc_mse", missing)
    assert mind.asks("psnr", case)  # nothing is said of it
    # The setting of an entry that could not be read is not known: it counts wherever nothing speaks against it.
    mbench = SUITES["mbench"]
    assert mbench.asks("mb_camera_interaction", Rejected("c", "no video", subset="causal"))
    assert not mbench.asks("mb_camera_interaction", Rejected("c", "no video", subset="human"))
