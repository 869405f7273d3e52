"""Two metrics, an observer and a suite for Revisit, one file each, and a benchmark in one folder."""
