"""Weights of networks: what there is (`weights.lock`), where it comes from, and the files on this machine."""

from revisit.weights.tensors import tensors
from revisit.weights.weights_folder import digests, file, folder, required_libraries, why_missing
