"""The suite `wrbench`: does the camera obey, and is the subject right when it returns (docs/wrbench.md)."""
