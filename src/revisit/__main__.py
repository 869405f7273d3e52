"""`python -m revisit` is the command `revisit`."""

from revisit.cli.main import run

if __name__ == "__main__":
    run()
