"""Preflight: is every clip there, whole, of its own sample, and did its camera go where it was asked to?"""
