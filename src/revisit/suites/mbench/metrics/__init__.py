"""Metrics of MBench, one family per file; `rules` has the rules that they share."""
