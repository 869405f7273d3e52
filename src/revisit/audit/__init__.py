"""The audit: tests every metric on rendered worlds with known failures."""
