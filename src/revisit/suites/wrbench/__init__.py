"""The suite `wrbench`: from camera execution to the state of what came back (docs/wrbench.md)."""
