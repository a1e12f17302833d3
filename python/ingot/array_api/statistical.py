"""The array API's reductions and running sums."""
from math import nan as _nan

from .. import _functions as _f
from .. import _ingot
from .types import _sum_type, bool, int64


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    d = _sum_type(x, dtype)
    if axis == ():
        return x.to(d)
    return _ingot.sum(x.to(d), axis, keepdims).to(d)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    d = _sum_type(x, dtype)
    if axis == ():
        return x.to(d)
    return _ingot.prod(x.to(d), axis, keepdims).to(d)


def mean(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _ingot.mean(x, axis, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():
        return _ingot.zeros_like(x) if not correction else _ingot.full_like(x, _nan)
    return _ingot.std(x, axis, correction=correction, keepdim=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():
        return _ingot.zeros_like(x) if not correction else _ingot.full_like(x, _nan)
    return _ingot.var(x, axis, correction=correction, keepdim=keepdims)


def max(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _ingot.amax(x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return x.clone() if axis == () else _ingot.amin(x, axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    return x.to(bool) if axis == () else _ingot.all(x, axis, keepdims).to(bool)


def any(x, /, *, axis=None, keepdims=False):
    return x.to(bool) if axis == () else _ingot.any(x, axis, keepdims).to(bool)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    if axis == ():
        return (x != 0).to(int64)
    return _ingot.sum((x != 0).to(int64), axis, keepdims)


def _running(x, axis, include_initial, d, fn, first):
    if axis is None:
        if x.dim() > 1:
            raise ValueError("axis must be given for arrays of more than one dim")
        axis = 0
    out = fn(x.to(d), axis, dtype=d)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        out = _ingot.cat([_ingot.full(shape, first, dtype=d, device=x.device), out], axis)
    return out


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    return _running(x, axis, include_initial, _sum_type(x, dtype), _ingot.cumsum, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    return _running(x, axis, include_initial, _sum_type(x, dtype), _ingot.cumprod, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    return _f.diff(x, n, axis, prepend, append)
