"""The array API's functions that arrange elements."""
import builtins as _b

from .. import _functions as _f
from .. import _ingot
from .._ingot import Tensor as _Tensor
from .types import int64, result_type


def broadcast_arrays(*arrays):
    return list(_f.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x, /, shape):
    return x.expand(tuple(shape))


def concat(arrays, /, *, axis=0):
    arrays = list(arrays)
    d = result_type(*arrays)
    if axis is None:
        return _ingot.cat([a.to(d).reshape(-1) for a in arrays])
    return _ingot.cat([a.to(d) for a in arrays], axis)


def stack(arrays, /, *, axis=0):
    arrays = list(arrays)
    d = result_type(*arrays)
    return _ingot.stack([a.to(d) for a in arrays], axis)


def expand_dims(x, /, axis):
    if isinstance(axis, tuple):
        n = x.dim() + len(axis)
        for a in sorted(v % n for v in axis):
            x = x.unsqueeze(a)
        return x
    if not -x.dim() - 1 <= axis <= x.dim():
        raise IndexError(f"axis {axis} is outside {x.dim() + 1} dims")
    return x.unsqueeze(axis)


def flip(x, /, *, axis=None):
    axes = range(x.dim()) if axis is None else (axis,) if isinstance(axis, int) else axis
    return _ingot.flip(x, tuple(axes)) if x.dim() and len(tuple(axes)) else x.clone()


def moveaxis(x, source, destination, /):
    return _ingot.movedim(x, source, destination)


def permute_dims(x, /, axes):
    return x.permute(tuple(axes)) if x.dim() else x


def repeat(x, repeats, /, *, axis=None):
    if isinstance(repeats, _Tensor) and repeats.dim() == 0:
        repeats = int(repeats)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, _Tensor) and repeats.numel() == 1 and x.size(axis) != 1:
        repeats = int(repeats.reshape(()))
    if isinstance(repeats, (tuple, list)):
        repeats = _ingot.tensor(repeats)
    if isinstance(repeats, _Tensor):
        at = [i for i, n in enumerate(repeats.tolist()) for _ in range(n)]
        return x.index_select(axis, _ingot.tensor(at, dtype=int64))
    n = x.size(axis)
    at = _ingot.arange(n, device=x.device).reshape(n, 1).expand(n, repeats).reshape(-1)
    return x.index_select(axis, at)


def reshape(x, /, shape, *, copy=None):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    y = x.reshape(shape)
    return y.clone() if copy else y


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.shape) if x.numel() else x.clone()
    shifts = shift if isinstance(shift, tuple) else (shift,) * (len(axis) if isinstance(axis, tuple) else 1)
    axes = axis if isinstance(axis, tuple) else (axis,) * len(shifts)
    for s, a in zip(shifts, axes):
        n = x.size(a)
        s = s % n if n else 0
        if s:
            x = _ingot.cat([x.narrow(a, n - s, s), x.narrow(a, 0, n - s)], a)
    return x.clone()


def squeeze(x, /, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -x.dim() <= a < x.dim() or x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} of shape {tuple(x.shape)} is not of size 1")
    return x.squeeze(tuple(axes)) if axes else x


def tile(x, repetitions, /):
    reps = tuple(repetitions)
    n = _b.max(len(reps), x.dim())
    x = x.reshape((1,) * (n - x.dim()) + tuple(x.shape))
    return x.repeat((1,) * (n - len(reps)) + reps)


def unstack(x, /, *, axis=0):
    return tuple(x.select(axis, i) for i in range(x.size(axis)))
