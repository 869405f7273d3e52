"""WorldMark: keys of twenty seconds each, from fifty scenes in first and third person (docs/worldmark.md)."""
