"""The array API's functions that index, search, sort, and make sets."""
from collections import namedtuple as _namedtuple

from .. import _functions as _f
from .. import _ingot
from .._ingot import Tensor as _Tensor
from .types import _both, int64


def take(x, indices, /, *, axis=None):
    if axis is None:
        if x.dim() != 1:
            raise ValueError("axis must be given for arrays of more than one dim")
        axis = 0
    axis %= x.dim()
    at = indices.reshape(-1).to(int64)
    out = x.index_select(axis, _ingot.where(at < 0, at + x.size(axis), at))
    return out.reshape(tuple(x.shape[:axis]) + tuple(indices.shape) + tuple(x.shape[axis + 1:]))


def take_along_axis(x, indices, /, *, axis=-1):
    return _ingot.take_along_dim(x, indices.to(int64), axis)


def argmax(x, /, *, axis=None, keepdims=False):
    return _arg(_ingot.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return _arg(_ingot.argmin, x, axis, keepdims)


def _arg(fn, x, axis, keepdims):
    out = fn(x, axis, keepdims) if axis is not None else fn(x)
    return out.reshape((1,) * x.dim()) if axis is None and keepdims else out


def nonzero(x, /):
    if x.dim() == 0:
        raise ValueError("nonzero is not for 0-d arrays")
    return tuple(_f.nonzero(x, as_tuple=True))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    a, b = _both(x1, x2)
    return _ingot.searchsorted(a, b, right=side == "right")


def where(condition, x1, x2, /):
    if isinstance(x1, _Tensor) or isinstance(x2, _Tensor):
        x1, x2 = _both(x1, x2)
    return _ingot.where(condition, x1, x2)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return _ingot.argsort(x, axis, descending, stable)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return _ingot.sort(x, axis, descending).values


_unique_all = _namedtuple("unique_all_result", ["values", "indices", "inverse_indices", "counts"])
_unique_counts = _namedtuple("unique_counts_result", ["values", "counts"])
_unique_inverse = _namedtuple("unique_inverse_result", ["values", "inverse_indices"])


def unique_all(x, /):
    values, inverse, counts = _ingot.unique_parts(x)
    n = values.numel()
    flat = inverse.reshape(-1)
    first = _ingot.full((n,), flat.numel(), dtype=int64)
    first = _ingot.scatter_reduce(first, 0, flat, _ingot.arange(flat.numel()), "amin") if flat.numel() else first
    return _unique_all(values, first, inverse, counts)


def unique_counts(x, /):
    values, _, counts = _ingot.unique_parts(x)
    return _unique_counts(values, counts)


def unique_inverse(x, /):
    values, inverse, _ = _ingot.unique_parts(x)
    return _unique_inverse(values, inverse)


def unique_values(x, /):
    return _ingot.unique_parts(x)[0]
