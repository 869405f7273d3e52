"""Suites: the benchmarks, one folder each: reader of cases, list of metrics, tables and commands."""
