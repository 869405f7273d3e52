"""The audit: every metric on worlds whose faults are known, and what it makes of them."""
