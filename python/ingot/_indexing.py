"""Indices with tensors, lists and bools in them, taken apart into the core's functions."""
from . import _ingot


def get(x, index):
    raise _ingot.UnsupportedError("indexing with tensors is not bound yet")


def set(x, index, value):
    raise _ingot.UnsupportedError("indexing with tensors is not bound yet")
