"""The state of the default generator."""
from . import _ingot
from ._functions import manual_seed  # noqa: F401


def initial_seed():
    return _ingot.default_generator().seed()


def get_rng_state():
    """Seed and counter, as an int64 tensor of two."""
    g = _ingot.default_generator()
    return _ingot.tensor([g.seed() - (1 << 64) if g.seed() >= 1 << 63 else g.seed(), g.offset()], dtype=_ingot.int64)


def set_rng_state(state):
    seed, offset = state.tolist()
    _ingot.manual_seed(seed & 0xFFFFFFFFFFFFFFFF)
    _ingot.default_generator().set_offset(offset)
