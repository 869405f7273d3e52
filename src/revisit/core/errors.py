"""Exceptions, and the exit codes of the command. Every message is a sentence that tells the user what to do."""

from __future__ import annotations

from enum import IntEnum

LONGEST = 2000  # characters of a sentence


class ExitCode(IntEnum):
    """What the command returns to the shell."""

    OK = 0
    FAILED = 1  # a known problem, or a run in which clips were refused or something could not be answered
    USAGE = 2
    MISSING_PREREQUISITE = 3


class RevisitError(Exception):
    """A known problem: printed as one line, without a traceback."""

    exit_code: int = ExitCode.FAILED

    def __init__(self, sentence: object = "") -> None:
        said = str(sentence)  # may quote a file of any length
        super().__init__(said if len(said) <= LONGEST else f"{said[: LONGEST // 2]} … {said[-LONGEST // 2 :]}")


class UsageError(RevisitError, ValueError):
    """The command, manifest, configuration or call asks for something that does not exist; a ValueError, too."""

    exit_code: int = ExitCode.USAGE


class MissingPrerequisite(RevisitError):
    """Something has to be installed, downloaded or granted first; the message names the command."""

    exit_code: int = ExitCode.MISSING_PREREQUISITE


class MediaError(RevisitError):
    """A video, image folder or array file cannot be read; the message says why."""


class InvalidAnswer(RevisitError):
    """A metric or gate returned what is no answer; the message names it, what it returned and what it may return."""


class InvalidEvidence(RevisitError):
    """A metric was handed evidence of the wrong shape; the message says what a valid one looks like."""
