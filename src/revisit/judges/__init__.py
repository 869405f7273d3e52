"""Judges: frames and a question in, an answer with its probability, raw reply and usage out.

Read in this order: `questions` (what may be asked, and what a valid answer looks like), `protocol` (what every judge
offers), `chat` (any OpenAI-compatible server), `batch` (many calls at a time, retries, the budget), `store` (answers on
disk: nothing is paid for twice, and a run can be repeated from them). The questions of the benchmarks stand
in their suites.
"""
