"""Results as tables of other libraries: a row per answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from revisit.core import MissingPrerequisite, Record
from revisit.media.text_files import csv_text

if TYPE_CHECKING:
    import pandas
    import pyarrow

OF_CASE = ("model", "sample", "subset", "condition", "seed")


def row(record: Record) -> dict[str, object]:
    """One answer as plain columns, the same for every answer."""
    return {
        "case": record.case.id,
        **{name: getattr(record.case, name) for name in OF_CASE},
        "question": record.question,
        "kind": "gate" if record.is_gate else "metric",
        "status": record.status,
        "value": record.value,
        "raw": record.raw,
        "label": record.label or None,
        "reason_kind": record.reason.kind if record.reason else None,
        "reason": record.sentence or None,
        "version": record.version,
        "protocol": record.protocol,
    }


COLUMNS = (
    "case", *OF_CASE, "question", "kind", "status", "value", "raw", "label", "reason_kind", "reason", "version",
    "protocol",
)  # fmt: skip


def to_csv(records: Iterable[Record]) -> str:
    """The text of a CSV file with a header."""
    return csv_text(COLUMNS, (list(row(record).values()) for record in records), "\n")


def to_frame(records: Iterable[Record]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise _missing("pandas") from None
    return pandas.DataFrame([row(record) for record in records], columns=list(COLUMNS))


def to_arrow(records: Iterable[Record]) -> pyarrow.Table:
    try:
        import pyarrow
    except ImportError:
        raise _missing("pyarrow") from None
    types = {"seed": pyarrow.int64(), "version": pyarrow.int64(), "value": pyarrow.float64(), "raw": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in COLUMNS])
    return pyarrow.Table.from_pylist([row(record) for record in records], schema=schema)


def _missing(library: str) -> MissingPrerequisite:
    return MissingPrerequisite(f"{library} is not installed; `pip install 'revisit-bench[tables]'` brings it")
