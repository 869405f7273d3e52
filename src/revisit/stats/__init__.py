"""Statistics: intervals, paired tests, agreement of raters, ranks and correlation."""
