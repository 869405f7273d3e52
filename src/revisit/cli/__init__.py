"""The command line: one file for the verbs of one thing, no logic. Data goes to stdout, messages to stderr."""

import gc

# Modules and records live as long as the command: looking for cycles in them finds none.
gc.set_threshold(500_000, 20, 100)
