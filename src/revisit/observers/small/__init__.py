"""Observers of the small set: small networks whose weights come from package registries."""
