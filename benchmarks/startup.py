"""How long the command takes to start: seconds of the fastest of several runs, and ratios to bare Python."""

from __future__ import annotations

import subprocess
import sys
import time

RUNS = 5
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import revisit": ["-c", "import revisit"],
    "import revisit.core": ["-c", "import revisit.core"],
    "revisit --help": ["-m", "revisit", "--help"],
    "revisit list metrics": ["-m", "revisit", "list", "metrics"],
    "import cv2, av": ["-c", "import cv2, av"],
}


def fastest(arguments: list[str]) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    base = fastest(COMMANDS["python -c pass"])
    for name, arguments in COMMANDS.items():
        seconds = fastest(arguments)
        print(f"{name:24} {seconds:6.3f} s   {seconds / base:5.1f} x bare Python")


if __name__ == "__main__":
    main()
