"""Diagnosis: which failures a clip shows, with confidence, strength and frames, derived from its scores."""
