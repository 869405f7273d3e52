"""Diagnosis: which failures a clip shows, how surely, how strongly, and in which frames; read off its scores."""
