"""Datasets in the formats that people train from: LeRobot, WebDataset shards, Hugging Face datasets, iterators."""
