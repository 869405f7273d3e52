"""Observers of the paper set: the networks that the papers name."""
