"""The suite `mbench`: entity, environment and causal consistency, by action (A) and by text (T) (docs/mbench.md)."""
