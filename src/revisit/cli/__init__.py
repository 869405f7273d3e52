"""The command line: one file per verb, no logic. Data goes to stdout, messages to stderr."""
