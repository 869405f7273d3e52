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
EXTRAS = (
    "networks",
    "cpu",
    "local",
    "poses",
    "figures",
    "ray",
    "tables",
    "wandb",
    "tensorboard",
    "mlflow",
    "lightning",
    "webdataset",
    "datasets",
    "annotate",
    "postgres",
    "docs",
    "release",
    "dev",
)
UV = [sys.executable, "-m", "uv", "pip"]
INSTALL = [*UV, "install", "--quiet", "--dry-run", "--target", "build/locked", "--require-hashes"]
COMPILE = [*UV, "compile", "pyproject.toml", "--quiet", "--no-header", "--no-annotate"]


def write() -> None:
    """Write the files anew, with the newest versions."""
    for name, extra in FILES.items():
        whole = ["--universal", "--python-version", PYTHONS[0], "--generate-hashes", "--upgrade", "--no-emit-index-url"]
        out = ROOT / "requirements" / name
        subprocess.run(
            [*COMPILE, *whole, "--no-emit-find-links", *extra, "--output-file", str(out)], cwd=ROOT, check=True
        )
        if "://" in (text := out.read_text(encoding="utf-8")):
            raise SystemExit(f"{out} names an address; only names, versions and digests belong there")
        print(f"{name}: {sum(line[0].isalpha() for line in text.splitlines())} packages")


def resolve() -> None:
    """See that the files as they are, and all extras together, can be had on every Python and platform."""
    with tempfile.TemporaryDirectory() as folder:
        for python in PYTHONS:
            for platform in PLATFORMS:
                place = ["--python-version", python, "--python-platform", platform]
                chosen = [*place, "--output-file", f"{folder}/out"]
                extras = [word for extra in EXTRAS for word in ("--extra", extra)]
                env = {**os.environ, **MACOS}
                for command in (
                    [*COMPILE, *chosen, *extras],
                    *([*INSTALL, *place, "-r", f"requirements/{n}"] for n in FILES),
                ):
                    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
                print(f"Python {python}, {platform}: the locked versions and all extras can be had", flush=True)


if __name__ == "__main__":
    write()
    resolve()
