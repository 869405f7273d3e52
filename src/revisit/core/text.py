"""Text helpers: JSON and YAML from outside, text that can be saved as UTF-8 and shown, and counted nouns."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from revisit.core.errors import RevisitError, UsageError

MOST_NAMES = 12  # in a sentence on what there is
MOST_PARTS = 2_000_000  # of a YAML file: a few lines of aliases can stand for billions


@contextmanager
def convert_read_errors(path: Path, expected: str) -> Iterator[None]:
    """Whatever a damaged or hostile file leads to is one sentence: it is not `expected` was expected.

    Readers still say themselves what is wrong where they know it; this is the net below them.
    """
    try:
        yield
    except (RevisitError, MemoryError, TimeoutError):
        raise
    except Exception as error:
        cause = _reason_in_file(error)
        raise UsageError(f"{path}: this is not {expected}{f' ({cause})' if cause else ''}") from error


def _reason_in_file(error: Exception) -> str:
    """What of an error tells a reader of the file where to look; nothing of what only tells of our code."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"it has no {error.args[0]}"
    if isinstance(error, AttributeError | TypeError | LookupError | AssertionError | RecursionError):
        return ""
    if type(error) is ValueError:
        return " ".join(str(error).split())[:200]
    return error.strerror if isinstance(error, OSError) and error.strerror else format_error_on_one_line(error)


def format_error_on_one_line(error: BaseException) -> str:
    """What an error says, on one line and not longer than a sentence."""
    if (mark := getattr(error, "problem_mark", None)) is not None:  # of YAML
        return f"line {mark.line + 1}: {getattr(error, 'problem', '')}"[:200]
    message = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def parse_json(text: str | bytes) -> Any:
    """The content of JSON from outside, whose texts can be saved; ValueError for whatever is none."""
    import msgspec

    with suppress(ValueError, RecursionError):
        return msgspec.json.decode(text)  # twice as fast, and stricter: half characters and NaN are left to the other
    escaped = b"\\u" in text if isinstance(text, bytes) else "\\u" in text
    try:
        return replace_surrogates(json.loads(text)) if escaped else json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_json_or_none(text: str | bytes) -> Any:
    """The content of JSON from outside; None for whatever is none."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def parse_numbered_json_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Number and content of each line that is not blank; None for what is no JSON."""
    # Not splitlines(): JSON may hold other line ends, such as U+2028, inside its strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, parse_json_or_none(line)


def parse_yaml(text: str) -> Any:
    """The content of YAML from outside; YAMLError for whatever is none."""
    import yaml

    try:
        content = yaml.safe_load(text)
        if _count_yaml_values(content, {}) > MOST_PARTS:
            raise ValueError
        return replace_surrogates(content)
    except (RecursionError, ValueError, TypeError, OverflowError) as error:  # too deep, or no date or number
        raise yaml.YAMLError(f"it cannot be read ({type(error).__name__})") from None


def read_yaml_file(path: Path, called: str = "not YAML") -> Any:
    """The content of a YAML file from outside; a UsageError says what it is `called`, and where, if it is none."""
    import yaml

    try:
        return parse_yaml(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark is not None else ""
        raise UsageError(f"{path}: this is {called}{place}") from None
    except OSError as error:
        raise UsageError(f"{path}: it cannot be read ({error.strerror or type(error).__name__})") from None


def read_package_yaml(package: str, name: str) -> Any:
    """The content of a YAML file that came with a package."""
    from importlib.resources import files

    return parse_package_yaml((files(package) / name).read_text(encoding="utf-8"))


def parse_package_yaml(text: str) -> Any:
    """The content of YAML that came with the package: quicker, for nobody made it to do harm."""
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _count_yaml_values(value: Any, counts: dict[int, int]) -> int:
    """How many values there are, counting what YAML's aliases repeat; known ones are counted once and added often."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in counts:
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_count_yaml_values(item, counts) for item in inside)
    return counts[id(value)]


def replace_surrogates(value: Any) -> Any:
    """The same value with every lone surrogate in its texts replaced by U+FFFD, down through lists and mappings."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    return value


def printable_text(text: str) -> str:
    """Text that only says something: what drives a terminal, turns the way of reading or cannot be seen is U+FFFD.

    Line ends and tabs become spaces. Markup is left to who writes markup.
    """
    return "".join(
        " " if character in "\n\r\t" else character if character.isprintable() else "\ufffd" for character in text
    )


def truncate_text(text: str, longest: int) -> str:
    """The text; where it is longer than so many characters, its end is left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def suggest_names(name: str, names: Iterable[str]) -> str:
    """What somebody may have meant by a name that is not known: those spelt alike, else the first of all.

    Examples
    --------
    >>> suggest_names("psnrr", ["ssim", "psnr"])
    'did you mean psnr?'
    >>> suggest_names("x", ["ssim", "psnr"])
    'there are ssim and psnr'
    """
    names = list(names)
    if near := did_you_mean_question(name, names):
        return near
    return f"there are {join_names(names, MOST_NAMES + 1)}" if names else "there are none"


def require_known_name(name: str, names: Collection[str], noun: str) -> None:
    """Raise UsageError where none of these is called so, with what somebody may have meant."""
    if name not in names:
        raise UsageError(f"there is no {noun} {name!r}; {suggest_names(name, names)}")


def did_you_mean_question(name: str, names: Iterable[str]) -> str:
    """The names that are spelt like this one, as a question; nothing where there are none."""
    by_lower = {one.lower(): one for one in names}
    near = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    return f"did you mean {', '.join(near)}?" if near else ""


def split_commas(values: Iterable[str]) -> list[str]:
    """The members of lists that are separated by commas."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def parse_named_values(texts: Iterable[str]) -> dict[str, str]:
    """Values by name, from texts such as gt=path/to/dataset, as `--option` takes them."""
    values = {}
    for text in texts:
        name, equals, values[name] = text.partition("=")
        if not (name and equals and values[name]):
            raise UsageError(f"--option takes name=value, such as gt=path/to/dataset, not {text!r}")
    return values


def parse_width_and_height(text: str, order: str = "width x height, such as 832x480") -> tuple[int, int]:
    """Width and height, or both in another `order`, from text such as 832x480."""
    try:
        first, second = (int(part) for part in text.lower().split("x"))
    except ValueError:
        first = second = 0
    if min(first, second) < 1:
        raise UsageError(f"{text!r} is no size; a size is {order}")
    return first, second


def count_and_noun(n: int, noun: str) -> str:
    """A number with its noun: 1 clip, 2 clips."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def join_names(names: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; of many the first few, and how many more."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
