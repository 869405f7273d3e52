"""The suite `mbench`: entity, environment and causal consistency, by action (A) and by text (T) (docs/mbench.md)."""

from importlib.resources import files

import yaml

from revisit.core import Suite, suite
from revisit.suites.mbench.exports import export
from revisit.suites.mbench.metrics import metrics
from revisit.suites.mbench.read import read, recognises
from revisit.suites.mbench.summary import summarise

MBENCH = suite(
    Suite(
        id="mbench",
        card=yaml.safe_load((files(__name__) / "card.yaml").read_text(encoding="utf-8")),
        read=read,
        recognises=recognises,
        metrics=metrics,
        summarise=summarise,
        export=export,
    )
)
