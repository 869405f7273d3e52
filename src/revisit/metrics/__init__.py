"""Metrics: pure functions from evidence to scores, one module per family, usable by any suite."""
