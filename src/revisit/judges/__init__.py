"""Judges: frames and a question in, an answer with its probability, raw reply and usage out.

Read in this order: `questions` (what may be asked, and what a valid answer looks like), `protocol` (what every judge
offers), `chat` (any OpenAI-compatible server) and `replay` (recorded answers), `batch` (many calls at a time, retries,
the budget), `store` (answers on disk: nothing is paid for twice). The questions of the benchmarks stand
in their suites.
"""
