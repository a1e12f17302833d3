"""Data loading and checkpointing."""
from . import checkpoint, data  # noqa: F401
