"""The suite `mind`: long-context memory, return, and action accuracy against recordings from Unreal (docs/mind.md)."""

from importlib.resources import files

import yaml

from revisit.core import Suite, suite
from revisit.suites.mind.metrics import metrics
from revisit.suites.mind.read import read, recognises
from revisit.suites.mind.result import export
from revisit.suites.mind.summary import summarise

MIND = suite(
    Suite(
        id="mind",
        card=yaml.safe_load((files(__name__) / "card.yaml").read_text(encoding="utf-8")),
        read=read,
        recognises=recognises,
        metrics=metrics,
        summarise=summarise,
        export=export,
    )
)
