"""Write requirements/: exact versions and digests of what an install brings, on Python 3.10 to 3.13 and any platform.

Only names, versions and digests are kept; which registry they come from is the installer's affair:
pip install --require-hashes -r requirements/base.txt && pip install --no-deps .
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {"base.txt": [], "dev.txt": ["--extra", "dev"]}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # pycolmap has no wheels for older ones
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-apple-darwin")
EXTRAS = ("networks", "local", "poses", "figures", "tables", "annotate", "postgres", "docs", "dev")
COMPILE = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--no-header", "--no-annotate"]


def main() -> None:
    """Write the files, and see that every extra can be had on every Python and platform."""
    for name, extra in FILES.items():
        whole = ["--universal", "--python-version", PYTHONS[0], "--generate-hashes", "--upgrade", "--no-emit-index-url"]
        out = ROOT / "requirements" / name
        subprocess.run(
            [*COMPILE, *whole, "--no-emit-find-links", *extra, "--output-file", str(out)], cwd=ROOT, check=True
        )
        if "://" in (text := out.read_text(encoding="utf-8")):
            raise SystemExit(f"{out} names an address; only names, versions and digests belong there")
        print(f"{name}: {sum(line[0].isalpha() for line in text.splitlines())} packages")
    with tempfile.TemporaryDirectory() as folder:
        for python in PYTHONS:
            for platform in PLATFORMS:
                chosen = ["--python-version", python, "--python-platform", platform, "--output-file", f"{folder}/out"]
                extras = [word for extra in EXTRAS for word in ("--extra", extra)]
                env = {**os.environ, **MACOS}
                subprocess.run([*COMPILE, *chosen, *extras], cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
                print(f"Python {python}, {platform}: all extras together can be had")


if __name__ == "__main__":
    main()
