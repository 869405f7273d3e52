"""Reports: a run as a page to look at and to send."""
