"""The suite `wrbench`: from camera execution to the state of what came back (docs/wrbench.md)."""

from importlib.resources import files

import yaml

from revisit.core import Suite, suite
from revisit.suites.wrbench.exports import export
from revisit.suites.wrbench.metrics import metrics
from revisit.suites.wrbench.read import read, recognises, settings
from revisit.suites.wrbench.summary import summarise

WRBENCH = suite(
    Suite(
        id="wrbench",
        card=yaml.safe_load((files(__name__) / "card.yaml").read_text(encoding="utf-8")),
        read=read,
        recognises=recognises,
        metrics=metrics,
        summarise=summarise,
        export=export,
        settings=settings,
    )
)
