"""The suite `memobench`: visible, disappeared, reappeared (docs/memobench.md)."""

from importlib.resources import files

import yaml

from revisit.core import Suite, suite
from revisit.suites.memobench.exports import export
from revisit.suites.memobench.metrics import metrics
from revisit.suites.memobench.read import read, recognises
from revisit.suites.memobench.summary import summarise

MEMOBENCH = suite(
    Suite(
        id="memobench",
        card=yaml.safe_load((files(__name__) / "card.yaml").read_text(encoding="utf-8")),
        read=read,
        recognises=recognises,
        metrics=metrics,
        summarise=summarise,
        export=export,
    )
)
