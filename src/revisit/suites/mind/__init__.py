"""The suite `mind`: long-context memory, return, and action accuracy against recordings from Unreal (docs/mind.md)."""
