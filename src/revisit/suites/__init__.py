"""Suites: benchmarks as readers of cases, lists of metrics and makers of tables. One folder each."""
