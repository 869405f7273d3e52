"""Results: what the audit found, kept with the package so that every metric's card can show it (cards.py).

`revisit audit --save-results` writes <set>.json here.
"""
