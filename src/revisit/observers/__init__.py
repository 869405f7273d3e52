"""Observers: functions from frames to evidence, one module per kind of evidence."""
