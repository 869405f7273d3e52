"""What only MBench measures, a chapter per file; `rules` says what becomes of pairs and values."""
