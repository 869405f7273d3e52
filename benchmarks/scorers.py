"""Make docs/scorers.md and its figure anew: the trial of all benchmarks, with the example plugin's, and the pages.

python benchmarks/scorers.py --workers 16            # about 12 worlds of seven benchmarks; the same command resumes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from revisit.audit.benchmark_trials import round_to_four_digits

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "examples/plugin"
GROUP = '[project.entry-points."revisit.plugins"]'


def installed(folder: Path) -> str:
    """PYTHONPATH with which the example plugin counts as installed."""
    _, _, points = (PLUGIN / "pyproject.toml").read_text(encoding="utf-8").partition(GROUP)
    place = folder / "revisit_example-0.1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: revisit-example\nVersion: 0.1\n", encoding="utf-8")
    (place / "entry_points.txt").write_text("[revisit.plugins]" + points.replace('"', ""), encoding="utf-8")
    return os.pathsep.join([str(folder), str(PLUGIN), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--set", default="small")
    parser.add_argument("--out", type=Path, default=ROOT / "build/scorers")
    given = parser.parse_args()
    command = ["audit", "--benchmarks", "--out", given.out, "--set", given.set]
    command += ["--worlds", given.worlds, "--workers", given.workers]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": installed(Path(folder))}
        ended = subprocess.run([sys.executable, "-m", "revisit", *map(str, command)], env=env, check=False)
        if ended.returncode:
            return ended.returncode
        content = json.loads((given.out / "benchmarks/benchmarks.json").read_text(encoding="utf-8"))
        kept = json.dumps(round_to_four_digits(content), separators=(",", ":"), allow_nan=False)
        (ROOT / "docs/scorers.json").write_text(kept + "\n", encoding="utf-8")
        return subprocess.run([sys.executable, str(ROOT / "docs/make_scorers.py")], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
