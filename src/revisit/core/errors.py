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
    """A known problem, whose message is a sentence that says what to do; the base of all others.

    Examples
    --------
    >>> try:
    ...     revisit.load("no/such/run")
    ... except revisit.RevisitError as error:
    ...     print(int(error.exit_code))
    2
    """

    exit_code: int = ExitCode.FAILED

    def __init__(self, sentence: object = "") -> None:
        text = str(sentence)  # may quote a file of any length
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}")


class UsageError(RevisitError, ValueError):
    """The command, manifest, configuration or call asks for something that does not exist; a ValueError, too.

    Examples
    --------
    >>> try:
    ...     revisit.observe(np.zeros((2, 32, 48, 3), np.uint8), "lite.labb")
    ... except ValueError as error:
    ...     print(error)
    there is no observer called 'lite.labb'; did you mean lite.lab...
    """

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
