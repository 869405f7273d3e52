"""A metric, an observer and a suite for Revisit, one file each."""
