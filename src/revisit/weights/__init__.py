"""Weights of networks: what there is (`weights.lock`), where it comes from, and the files on this machine."""

from revisit.weights.local_files import digests, file, folder, required_libraries, why_missing
from revisit.weights.tensors import tensors
