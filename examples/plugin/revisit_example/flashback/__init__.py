"""Flashback: a benchmark as one folder. Revisit finds its files by their names; CONTRIBUTING.md says which."""
