"""The suite `folder`: any folder or JSONL manifest of videos."""

from importlib.resources import files

import yaml

from revisit.core import Suite, suite
from revisit.results.tables import standard_summary
from revisit.suites.folder.metrics import metrics
from revisit.suites.folder.read import read, recognises

FOLDER = suite(
    Suite(
        id="folder",
        card=yaml.safe_load((files(__name__) / "card.yaml").read_text(encoding="utf-8")),
        read=read,
        recognises=recognises,
        metrics=metrics,
        summarise=standard_summary,
    )
)
