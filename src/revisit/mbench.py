"""MBench from Python, with the call that its README documents (docs/mbench.md)."""

from revisit.suites.mbench.api import adapter_registry, aggregator_registry, metric_registry, run_eval

__all__ = ["adapter_registry", "aggregator_registry", "metric_registry", "run_eval"]
