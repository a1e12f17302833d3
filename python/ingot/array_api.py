"""The Python array API standard (2024.12): `xp = x.__array_namespace__()`. Arrays are Ingot's tensors; the functions have the
standard's names, arguments and type rules. There are no complex and no further unsigned types, and no fft."""
import builtins as _b
import math as _math
from collections import namedtuple as _namedtuple
from types import SimpleNamespace as _SimpleNamespace

from . import _functions as _f
from . import _ingot
from ._ingot import Tensor as _Tensor
from ._ingot import float32, float64, int8, int16, int32, int64, uint8  # noqa: F401
from ._ingot import bool_ as bool  # noqa: F401,A004

__array_api_version__ = "2024.12"
e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None
_DTYPES = {d.name: d for d in (bool, int8, int16, int32, int64, uint8, float32, float64)}
_KINDS = {"bool": ["bool"], "signed integer": ["int8", "int16", "int32", "int64"], "unsigned integer": ["uint8"],
          "real floating": ["float32", "float64"], "complex floating": []}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"]


def _device(device):
    return None if device is None else device if isinstance(device, _ingot.device) else _ingot.device(device)


# ---- Creation


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


# ---- Types


def astype(x, dtype, /, *, copy=True, device=None):
    y = x.to(device=_device(device), dtype=dtype)
    return y.clone() if copy and y.dtype is x.dtype else y


def can_cast(from_, to, /):
    from_ = from_.dtype if isinstance(from_, _Tensor) else from_
    if from_ == to:
        return True
    try:
        return _promoted(from_, to) == to
    except TypeError:
        return False


_finfo = _namedtuple("finfo_object", ["bits", "eps", "max", "min", "smallest_normal", "dtype"])
_iinfo = _namedtuple("iinfo_object", ["bits", "max", "min", "dtype"])


def finfo(type, /):
    i = _f.finfo(type)
    return _finfo(i.bits, i.eps, i.max, i.min, i.smallest_normal, i.dtype)


def iinfo(type, /):
    i = _f.iinfo(type)
    return _iinfo(i.bits, i.max, i.min, i.dtype)


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return _b.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: '{kind}' is no kind; there are {sorted(_KINDS)}")
        return dtype.name in _KINDS[kind]
    return dtype == kind


def _kind(d):
    return 0 if d is bool else 2 if d.is_floating_point else 1


def _promoted(a, b):
    if _kind(a) != _kind(b):
        raise TypeError(f"the standard does not promote {a} with {b}")
    return _ingot.promote_dtypes(a, b)


def result_type(*arrays_and_dtypes):
    arrays = [x.dtype if isinstance(x, _Tensor) else x for x in arrays_and_dtypes]
    types = [x for x in arrays if isinstance(x, _ingot.dtype)]
    if not types:
        raise ValueError("result_type wants at least one array or dtype")
    out = types[0]
    for t in types[1:]:
        out = _ingot.promote_dtypes(out, t)
    for s in (x for x in arrays if not isinstance(x, _ingot.dtype)):
        if isinstance(s, float) and not out.is_floating_point:
            out = float32
        elif isinstance(s, int) and not isinstance(s, _b.bool) and out is bool:
            out = int64
    return out


def broadcast_arrays(*arrays):
    return list(_f.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x, /, shape):
    return x.expand(tuple(shape))


# ---- Elementwise. Two arrays compute in the type both promote to, whatever their dims.


def _both(x1, x2):
    if isinstance(x1, _Tensor) and isinstance(x2, _Tensor):
        d = _ingot.promote_dtypes(x1.dtype, x2.dtype)
        return x1.to(d), x2.to(d)
    if not isinstance(x1, _Tensor):
        return _ingot.tensor(x1, dtype=result_type(x2, x1), device=x2.device), x2
    return x1, _ingot.tensor(x2, dtype=result_type(x1, x2), device=x1.device)


def _unary(name, target=None, keep_integers=False, keep_bool=False):
    fn = getattr(_ingot, target or name)

    def function(x, /):
        if keep_integers and not x.is_floating_point():
            return x.clone()
        return fn(x)

    function.__name__ = function.__qualname__ = name
    return function


def _binary(name, target=None):
    fn = getattr(_ingot, target or name)

    def function(x1, x2, /):
        a, b = _both(x1, x2)
        return fn(a, b)

    function.__name__ = function.__qualname__ = name
    return function


for _name in "abs acos asin atan cos cosh exp expm1 log log1p log2 log10 logical_not reciprocal sin sinh sqrt square tan tanh".split():
    globals()[_name] = _unary(_name)
for _name in "acosh asinh atanh signbit".split():
    if hasattr(_ingot, _name):
        globals()[_name] = _unary(_name)
for _name in "ceil floor round trunc".split():
    globals()[_name] = _unary(_name, keep_integers=True)
bitwise_invert = _unary("bitwise_invert", "bitwise_not")
negative = _unary("negative", "neg")
for _name in "atan2 bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor maximum minimum pow".split():
    globals()[_name] = _binary(_name)
for _name in "copysign hypot logaddexp".split():
    if hasattr(_ingot, _name):
        globals()[_name] = _binary(_name)
for _name, _target in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"), ("equal", "eq"), ("not_equal", "ne"),
                       ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
                       ("bitwise_left_shift", "bitwise_left_shift"), ("bitwise_right_shift", "bitwise_right_shift")):
    globals()[_name] = _binary(_name, _target)


def sign(x, /):
    y = _ingot.sign(x)
    return _ingot.where(x.isnan(), x, y) if x.is_floating_point() else y


def floor_divide(x1, x2, /):
    """As the standard says it: an infinity divided by a number is one, a number divided by an infinity 0 of its sign."""
    a, b = _both(x1, x2)
    y = _ingot.floor_divide(a, b)
    return _ingot.where(a.isinf() | b.isinf(), (a / b).floor(), y) if a.is_floating_point() else y


def remainder(x1, x2, /):
    a, b = _both(x1, x2)
    y = _ingot.remainder(a, b)
    return _ingot.where(y == 0, _ingot.copysign(y, b), y) if a.is_floating_point() else y


def imag(x, /):
    raise TypeError("imag is for complex arrays, which are not there")


def positive(x, /):
    return x.clone()


def real(x, /):
    return x


def conj(x, /):
    return x


def isfinite(x, /):
    return _ingot.isfinite(x)


def isinf(x, /):
    return _ingot.isinf(x)


def isnan(x, /):
    return _ingot.isnan(x)


def clip(x, /, min=None, max=None):
    y = x
    if min is not None:
        low = min if isinstance(min, _Tensor) else _ingot.tensor(min, dtype=x.dtype if not isinstance(min, float) or x.is_floating_point() else float64)
        low = low.to(x.dtype) if low.dtype != x.dtype and x.is_floating_point() else low
        y = _ingot.maximum(y, low)
    if max is not None:
        high = max if isinstance(max, _Tensor) else _ingot.tensor(max, dtype=x.dtype if not isinstance(max, float) or x.is_floating_point() else float64)
        high = high.to(x.dtype) if high.dtype != x.dtype and x.is_floating_point() else high
        y = _ingot.minimum(y, high)
    return (y if y is not x else x.clone()).to(x.dtype)


def nextafter(x1, x2, /):
    """The next number towards x2, by the bits."""
    x, y = _both(x1, x2)
    if not x.is_floating_point():
        raise TypeError("nextafter wants floating arrays")
    import numpy

    return _ingot.tensor(numpy.asarray(numpy.nextafter(x.detach().numpy(), y.detach().numpy())))


# ---- Reductions


def _sum_type(x, dtype):
    if dtype is not None:
        return dtype
    return x.dtype if x.is_floating_point() else int64


def _reduce(x, axis, keepdims, whole, along):
    if axis == ():
        return None
    return whole() if axis is None and not keepdims else along(axis, keepdims)


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
        return _ingot.zeros_like(x) if not correction else _ingot.full_like(x, nan)
    return _ingot.std(x, axis, correction=correction, keepdim=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():
        return _ingot.zeros_like(x) if not correction else _ingot.full_like(x, nan)
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


# ---- Shapes


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
        raise IndexError(f"axis {axis} lies outside {x.dim() + 1} dims")
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


# ---- Index, search, order, sets


def take(x, indices, /, *, axis=None):
    if axis is None:
        if x.dim() != 1:
            raise ValueError("axis must be given for arrays of more than one dim")
        axis = 0
    axis %= x.dim()
    out = x.index_select(axis, indices.reshape(-1).to(int64))
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


# ---- Products


def matmul(x1, x2, /):
    a, b = _both(x1, x2)
    return _ingot.matmul(a, b)


def matrix_transpose(x, /):
    return x.mT


def vecdot(x1, x2, /, *, axis=-1):
    a, b = _both(x1, x2)
    if axis >= 0 or -axis > _b.min(a.dim(), b.dim()):
        raise ValueError("vecdot: axis must be negative and lie within both arrays")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError("vecdot: the sizes along axis differ")
    d = a.dtype
    return (a * b).sum(axis, dtype=d).to(d)


def tensordot(x1, x2, /, *, axes=2):
    a, b = _both(x1, x2)
    if isinstance(axes, int):
        first, second = tuple(range(a.dim() - axes, a.dim())), tuple(range(axes))
    else:
        first, second = (tuple(v) if not isinstance(v, int) else (v,) for v in axes)
    first, second = [v % a.dim() for v in first], [v % b.dim() for v in second]
    keep_a = [d for d in range(a.dim()) if d not in first]
    keep_b = [d for d in range(b.dim()) if d not in second]
    inner = _math.prod(a.shape[d] for d in first)
    if inner != _math.prod(b.shape[d] for d in second) or _b.any(a.shape[p] != b.shape[q] for p, q in zip(first, second)):
        raise ValueError("tensordot: the sizes of the axes differ")
    shape = [a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b]
    left = (a.permute(keep_a + first) if a.dim() else a).reshape(_math.prod(a.shape[d] for d in keep_a), inner)
    right = (b.permute(second + keep_b) if b.dim() else b).reshape(inner, _math.prod(b.shape[d] for d in keep_b))
    return (left @ right).reshape(shape)


# ---- Facts about the library


class __array_namespace_info__:
    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 10}

    def default_device(self):
        return _ingot.get_default_device()

    def devices(self):
        return list(_ingot.device.all())

    def default_dtypes(self, *, device=None):
        return {"real floating": float32, "complex floating": None, "integral": int64, "indexing": int64}

    def dtypes(self, *, device=None, kind=None):
        kinds = (kind,) if isinstance(kind, str) else kind
        return {n: d for n, d in _DTYPES.items() if kinds is None or _b.any(isdtype(d, k) for k in kinds)}


def _linalg():
    """The extension linalg: what the core has of it."""
    from . import linalg as core

    def cross(x1, x2, /, *, axis=-1):
        a, b = _both(x1, x2)
        return core.cross(*_f.broadcast_tensors(a, b), dim=axis)

    def diagonal(x, /, *, offset=0):
        return x.diagonal(offset, -2, -1)

    def outer(x1, x2, /):
        a, b = _both(x1, x2)
        if a.dim() != 1 or b.dim() != 1:
            raise ValueError("outer wants vectors")
        return a.unsqueeze(1) * b.unsqueeze(0)

    def trace(x, /, *, offset=0, dtype=None):
        d = _sum_type(x, dtype)
        return x.diagonal(offset, -2, -1).to(d).sum(-1).to(d)

    def matrix_norm(x, /, *, keepdims=False, ord="fro"):
        return core.matrix_norm(x, ord, (-2, -1), keepdims)

    def matrix_power(x, n, /):
        return core.matrix_power(x, n)

    def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
        if axis == ():
            return x.abs() if ord != 0 else (x != 0).to(x.dtype)
        y = core.vector_norm(x, ord, axis, keepdims)
        return y

    def cholesky(x, /, *, upper=False):
        return core.cholesky(x, upper)

    def det(x, /):
        return core.det(x)

    def inv(x, /):
        return core.inv(x)

    slog = _namedtuple("slogdet_result", ["sign", "logabsdet"])

    def slogdet(x, /):
        return slog(*_f.slogdet(x))

    def solve(x1, x2, /):
        a, b = _both(x1, x2)
        return core.solve(a, b)

    # What needs eigenvalues and singular values is computed by NumPy, on the host and without gradients.
    def on_host(fn, x):
        import numpy

        out = fn(numpy.linalg, x.detach().cpu().numpy())
        return tuple(_ingot.tensor(v) for v in out) if isinstance(out, tuple) else _ingot.tensor(out)

    eigh_result, qr_result, svd_result = (_namedtuple(n, f) for n, f in (("eigh_result", ["eigenvalues", "eigenvectors"]), ("qr_result", ["Q", "R"]),
                                                                        ("svd_result", ["U", "S", "Vh"])))

    def eigh(x, /):
        return eigh_result(*on_host(lambda la, a: tuple(la.eigh(a)), x))

    def eigvalsh(x, /):
        return on_host(lambda la, a: la.eigvalsh(a), x)

    def qr(x, /, *, mode="reduced"):
        return qr_result(*on_host(lambda la, a: tuple(la.qr(a, mode)), x))

    def svd(x, /, *, full_matrices=True):
        return svd_result(*on_host(lambda la, a: tuple(la.svd(a, full_matrices=full_matrices)), x))

    def svdvals(x, /):
        return on_host(lambda la, a: la.svd(a, compute_uv=False), x)

    def matrix_rank(x, /, *, rtol=None):
        s = svdvals(x)
        if not x.numel():
            return _ingot.zeros(tuple(x.shape[:-2]), dtype=int64)
        tol = _b.max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
        tol = tol.unsqueeze(-1) if isinstance(tol, _Tensor) else tol
        return (s > s.amax(-1, True) * tol).sum(-1)

    def pinv(x, /, *, rtol=None):
        tol = _b.max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
        return on_host(lambda la, a: la.pinv(a, rcond=tol.numpy() if isinstance(tol, _Tensor) else tol), x)

    return _SimpleNamespace(eigh=eigh, eigvalsh=eigvalsh, qr=qr, svd=svd, svdvals=svdvals, matrix_rank=matrix_rank, pinv=pinv, cross=cross, diagonal=diagonal, outer=outer, trace=trace, matrix_norm=matrix_norm, matrix_power=matrix_power,
                            vector_norm=vector_norm, cholesky=cholesky, det=det, inv=inv, slogdet=slogdet, solve=solve, matmul=matmul,
                            matrix_transpose=matrix_transpose, tensordot=tensordot, vecdot=vecdot)


linalg = _linalg()
