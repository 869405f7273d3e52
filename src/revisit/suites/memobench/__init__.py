"""The suite `memobench`: visible, disappeared, reappeared (docs/memobench.md)."""
