"""Judges: frames and a question in, an answer with its probability, raw reply and usage out.

Read in this order: `questions` (what may be asked, and what a valid answer looks like), `asking` (the protocol
that every judge follows), `chat` (any OpenAI-compatible server) and `replay` (recorded answers), `asker` (many
calls at a time, asking again, the budget), `store` (nothing is paid for twice). The questions of the benchmarks stand
in their suites.
"""
