"""The suite `folder`: any folder or JSONL manifest of videos."""
