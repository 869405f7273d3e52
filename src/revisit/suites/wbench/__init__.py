"""The suite `wbench`: navigation turn by turn, loops, consistency, and what judges say (docs/wbench.md)."""
