"""Observers that run a network. torch is an optional extra, imported only when one of them is at work."""
