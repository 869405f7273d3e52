"""The suite `wrbench`: does the camera obey, and is the subject right when it returns (docs/wrbench.md)."""

from revisit.core.suites import Suite, read_card, suite
from revisit.suites.wrbench.describe import DATASET
from revisit.suites.wrbench.evaluator import write_manifest_sidecars
from revisit.suites.wrbench.exports import export_wrbench_files
from revisit.suites.wrbench.jobs import wrbench_generation_jobs
from revisit.suites.wrbench.leaderboard import published_wrbench_boards, wrbench_run_boards
from revisit.suites.wrbench.metrics import wrbench_metric_ids
from revisit.suites.wrbench.read import is_wrbench_source, read, wrbench_parameters_from_options
from revisit.suites.wrbench.summary import summarise

WRBENCH = suite(
    Suite(
        "wrbench", read_card(__package__), read, is_wrbench_source, wrbench_metric_ids, summarise,
        export=export_wrbench_files, settings=wrbench_parameters_from_options, boards=wrbench_run_boards,
        published=published_wrbench_boards, jobs=wrbench_generation_jobs, dataset=DATASET,
        accompany=write_manifest_sidecars,
    )
)  # fmt: skip
