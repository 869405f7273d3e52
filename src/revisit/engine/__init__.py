"""The engine: plan → observe → score → record; the evidence cache; resuming."""
