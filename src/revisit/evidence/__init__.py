"""Kinds of evidence: the vocabulary that observers write and metrics read.

One module per family. An array with a leading axis of frames comes with `index`, the frame numbers
in the clip. Positions are fractions of the frame (0-1, x right, y down) unless a name ends in `_px`.
"""
