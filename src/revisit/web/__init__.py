"""Web: what the pages on a local server share: who may ask for what, media by name alone, and the player."""
