"""checkpoint(fn, *args): what is computed between inputs and outputs is recomputed in backward instead of being kept."""
from .. import _ingot
from ..runtime import _flat, _nest


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    inputs, shape = [], []
    form = _flat((args, kwargs), inputs)

    def run(*tensors):
        a, k = _nest(form, tensors)
        out = []
        shape[:] = [_flat(function(*a, **k), out)]
        return tuple(out)

    outputs = _ingot.checkpoint(run, inputs)
    return _nest(shape[0], outputs)
