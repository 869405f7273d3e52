"""Build wheel and source archive, and try them as strangers would: `make release-check`.

The wheel alone goes into a new environment, and `revisit demo` and `revisit verify` run in an empty folder. Tests of
the source archive run in the folder that it unpacks to, where nothing lies beside it: the quick ones, or with --all
everything but the longest. The locked versions must be there for every Python. dist/ gets the wheel, the archive and
sbom.cdx.json, a list of everything in that environment, with licences (CycloneDX); one without a licence is told.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import lock

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NO_LICENCE = {"pip", "setuptools"}  # come with the environment


def run(*command: str | Path, where: Path, quiet: bool = False, **env: str) -> str:
    """Run a command, and end where it fails; what it printed, if it does so quietly."""
    print("+", *command, flush=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "REVISIT_CACHE")}
    out = subprocess.PIPE if quiet else None
    done = subprocess.run(
        [str(word) for word in command], cwd=where, env={**clean, **env}, check=True, stdout=out, text=True
    )
    return done.stdout or ""


def build() -> tuple[Path, Path]:
    """The wheel and the source archive, both new; the wheel is built out of the archive."""
    for old in DIST.glob("revisit_bench-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", DIST, where=ROOT)
    [wheel], [archive] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, archive


def look_into(wheel: Path) -> None:
    """See that the wheel holds the package with its data, and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    here = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/revisit").rglob("*") if path.is_file()}
    missing = {name for name in here if "__pycache__" not in name} - set(names)
    foreign = [name for name in names if not name.startswith(("revisit/", "revisit_bench-"))]
    if missing or foreign:
        raise SystemExit(f"the wheel lacks {sorted(missing)[:5]} or holds {foreign[:5]}")


def install(wheel: Path, folder: Path) -> Path:
    """A new environment with nothing but the wheel and what it needs; its folder of commands."""
    venv.create(folder / "env", with_pip=True)
    binaries = folder / "env" / "bin"
    run(binaries / "python", "-m", "pip", "install", "--quiet", wheel, where=folder)
    return binaries


def list_contents(binaries: Path) -> None:
    """Write the list of all that the environment holds."""
    out = DIST / "sbom.cdx.json"
    form: list[str | Path] = [
        "--pyproject",
        ROOT / "pyproject.toml",
        "--output-reproducible",
        "--of",
        "JSON",
        "-o",
        out,
    ]
    run(sys.executable, "-m", "cyclonedx_py", "environment", binaries / "python", *form, where=ROOT)
    parts = json.loads(out.read_text(encoding="utf-8"))["components"]
    without = sorted(part["name"] for part in parts if not part.get("licenses") and part["name"] not in NO_LICENCE)
    if without:
        raise SystemExit(f"these say nothing of their licence: {', '.join(without)}; look them up, and list them here")
    print(f"{len(parts)} packages, each with its licence")


def verify(binaries: Path, where: Path, cache: Path) -> None:
    """See that stored scores are those of this version, and hold here."""
    found = json.loads(run(binaries / "revisit", "verify", "--json", where=where, quiet=True, REVISIT_CACHE=str(cache)))
    newer = [spread["question"] for spread in found if spread["changed"]]
    if newer:
        raise SystemExit(f"newer than the stored scores: {', '.join(newer)}; run release/golden.py, and look at them")
    print(f"{sum(spread['clips'] > 0 for spread in found)} metrics and gates score what is stored")


def main() -> None:
    """Build, look, try."""
    wheel, archive = build()
    look_into(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        binaries = install(wheel, folder)
        list_contents(binaries)
        if "--only-sbom" in sys.argv:
            return
        lock.resolve()
        empty = folder / "empty"
        empty.mkdir()
        run(binaries / "revisit", "demo", "--scenes", "1", where=empty, REVISIT_CACHE=str(folder / "cache"))
        if not (empty / "demo/run/report/index.html").is_file():
            raise SystemExit("the demo wrote no report")
        verify(binaries, empty, folder / "cache")
        with tarfile.open(archive) as opened:
            opened.extractall(folder / "sources", filter="data")
        [sources] = (folder / "sources").iterdir()
        which = "not long" if "--all" in sys.argv else "not slow and not long"
        tests = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", which]
        run(*tests, where=sources, PYTHONPATH=str(sources / "src"), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    print(f"{wheel.name} and {archive.name} are fit to be released")


if __name__ == "__main__":
    main()
