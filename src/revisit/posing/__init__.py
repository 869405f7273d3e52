"""Posing: camera paths of many clips, by our odometry, by a program, or by a network in its own environment."""
