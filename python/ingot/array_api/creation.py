"""The array API's functions that make arrays."""
import builtins as _b

from .. import _functions as _f
from .. import _ingot
from .types import _device, float32, float64, int64


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:
        floating = _b.any(isinstance(v, float) for v in (start, stop, step))
        return _ingot.zeros(0, dtype=dtype or (float32 if floating else int64), device=_device(device))
    return _ingot.arange(start, stop, step, dtype=dtype, device=_device(device))


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    return _f.asarray(obj, dtype=dtype, device=_device(device), copy=copy)


def empty(shape, *, dtype=None, device=None):
    return _ingot.empty(shape, dtype=dtype, device=_device(device))


def zeros(shape, *, dtype=None, device=None):
    return _ingot.zeros(shape, dtype=dtype, device=_device(device))


def ones(shape, *, dtype=None, device=None):
    return _ingot.ones(shape, dtype=dtype, device=_device(device))


def full(shape, fill_value, *, dtype=None, device=None):
    return _ingot.full(shape, fill_value, dtype=dtype, device=_device(device))


def empty_like(x, /, *, dtype=None, device=None):
    return _ingot.empty_like(x, dtype=dtype, device=_device(device))


def zeros_like(x, /, *, dtype=None, device=None):
    return _ingot.zeros_like(x, dtype=dtype, device=_device(device))


def ones_like(x, /, *, dtype=None, device=None):
    return _ingot.ones_like(x, dtype=dtype, device=_device(device))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return _ingot.full_like(x, fill_value, dtype=dtype, device=_device(device))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    m = n_rows if n_cols is None else n_cols
    rows = _ingot.arange(n_rows, device=_device(device)).reshape(n_rows, 1)
    return (_ingot.arange(m, device=_device(device)) - rows == k).to(dtype or float32)


def from_dlpack(x, /, *, device=None, copy=None):
    return _ingot.from_dlpack(x, device=_device(device), copy=copy)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    d = dtype or float32
    if num == 0:
        return _ingot.zeros(0, dtype=d, device=_device(device))
    if not endpoint:
        return linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]
    return _ingot.linspace(start, stop, num, dtype=float64, device=_device(device)).to(d)


def meshgrid(*arrays, indexing="xy"):
    return list(_f.meshgrid(*arrays, indexing=indexing))


def tril(x, /, *, k=0):
    return _ingot.tril(x, k)


def triu(x, /, *, k=0):
    return _ingot.triu(x, k)
