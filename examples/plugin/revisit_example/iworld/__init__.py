"""iWorld-Bench's memory symmetry as a benchmark of one folder: one measure, a reader, and a layout to try it on."""
