"""Networks in plain torch, and how they run: one device, one precision, one copy of each network in a process.

Modules of this room import torch at their top, except `runtime`; observers import them when they are at work.
"""
