"""What only WBench looks at: neighbouring frames, whole frames by CLIP, and points carried along by depth."""
