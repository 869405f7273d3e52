"""Monitor: memory of a world model while it trains, and what loggers write of it."""
