"""The engine: plans an evaluation, observes clips, scores them and records the answers, with a cache and resuming."""
