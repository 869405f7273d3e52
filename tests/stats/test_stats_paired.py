"""Wilcoxon, Holm and correlations against scipy and the numbers of an independent library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from revisit.stats.correlation import pearson, pearson_matrix, spearman
from revisit.stats.paired import holm_corrected_p, one_sided_sign_test, wilcoxon_signed_rank


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_is_scipy_s(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=23).round(1)
    b = a + rng.normal(0.2, 0.5, 23).round(1)
    expected = stats.wilcoxon(b, a, zero_method="wilcox", correction=False, method="approx")
    made = wilcoxon_signed_rank(a.tolist(), b.tolist())
    assert made is not None
    assert made.statistic == pytest.approx(expected.statistic)
    assert made.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_too_few_pairs_or_none_that_differ() -> None:
    assert wilcoxon_signed_rank([1, 2, 3], [2, 3, 4]) is None
    assert wilcoxon_signed_rank([1.0] * 10, [1.0] * 10) is None


def test_golden_numbers(shared: Path) -> None:
    golden = json.loads((shared / "golden/stats_oracle.json").read_text())
    rows = json.loads((shared / "golden/wrbench_table2.json").read_text())
    column = {name: [row[name] for row in rows] for name in ("vsp", "vst", "rsp", "rst", "supp", "integ", "align")}
    for names, (expected, _) in golden["pearson"].items():
        a, b = names.split("~")
        assert pearson(column[a], column[b])[0] == pytest.approx(expected, abs=1e-12)
    for names, (expected, _) in golden["spearman"].items():
        a, b = names.split("~")
        assert spearman(column[a], column[b])[0] == pytest.approx(expected, abs=1e-12)
    made = wilcoxon_signed_rank(column["vsp"], column["rsp"])
    assert made.statistic == golden["wilcoxon_vsp_rsp"]["stat"]
    assert made.p == pytest.approx(golden["wilcoxon_vsp_rsp"]["p_approx"], rel=1e-9)
    p = (0.001, 0.013, 0.04, 0.2)
    assert holm_corrected_p(p) == pytest.approx(golden["holm"])


def test_order_does_not_matter_to_corrections() -> None:
    assert holm_corrected_p([0.2, 0.001, 0.04, 0.013]) == pytest.approx([0.2, 0.004, 0.08, 0.039])
    assert holm_corrected_p([]) == []


def test_missing_rows_and_constant_columns() -> None:
    made = pearson([1, 2, 3, None], [2, 4, 6, 9])
    assert made is not None and made[0] == pytest.approx(1) and made[1] == 3
    assert pearson([1, 2, None], [1, 2, 3]) is None
    assert pearson([0.1, 0.1, 0.1], [1, 2, 4]) is None  # their mean is not 0.1 to the last digit
    assert pearson([1, 1, 1], [1, 2, 3]) is None
    assert pearson_matrix({"a": [1, 2, 4], "b": [3, 2, 1]})["a"]["a"] == pytest.approx(1)


def test_the_one_sided_sign_test_is_scipy_s() -> None:
    for more, fewer in ((0, 3), (1, 0), (4, 4), (5, 0), (9, 2), (40, 17)):
        expected = stats.binomtest(more, more + fewer, alternative="greater").pvalue
        assert one_sided_sign_test(more, fewer) == pytest.approx(expected)
    assert one_sided_sign_test(0, 0) == 1.0
