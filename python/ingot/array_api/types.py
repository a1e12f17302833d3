"""The array API's types: which there are, what they hold, how they promote; and the library's own capabilities."""
import builtins as _b
from collections import namedtuple as _namedtuple

from .. import _functions as _f
from .. import _ingot
from .._ingot import Tensor as _Tensor
from .._ingot import float32, float64, int8, int16, int32, int64, uint8  # noqa: F401
from .._ingot import bool_ as bool  # noqa: F401,A004


_DTYPES = {d.name: d for d in (bool, int8, int16, int32, int64, uint8, float32, float64)}
_KINDS = {"bool": ["bool"], "signed integer": ["int8", "int16", "int32", "int64"], "unsigned integer": ["uint8"],
          "real floating": ["float32", "float64"], "complex floating": []}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"]


def _device(device):
    return None if device is None else device if isinstance(device, _ingot.device) else _ingot.device(device)


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
            raise ValueError(f"isdtype: '{kind}' is not a kind; there are {sorted(_KINDS)}")
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
        raise ValueError("result_type needs at least one array or dtype")
    out = types[0]
    for t in types[1:]:
        out = _ingot.promote_dtypes(out, t)
    for s in (x for x in arrays if not isinstance(x, _ingot.dtype)):
        if isinstance(s, float) and not out.is_floating_point:
            out = float32
        elif isinstance(s, int) and not isinstance(s, _b.bool) and out is bool:
            out = int64
    return out


def _both(x1, x2):
    if isinstance(x1, _Tensor) and isinstance(x2, _Tensor):
        d = _ingot.promote_dtypes(x1.dtype, x2.dtype)
        return x1.to(d), x2.to(d)
    if not isinstance(x1, _Tensor):
        return _ingot.tensor(x1, dtype=result_type(x2, x1), device=x2.device), x2
    return x1, _ingot.tensor(x2, dtype=result_type(x1, x2), device=x1.device)


def _sum_type(x, dtype):
    if dtype is not None:
        return dtype
    return x.dtype if x.is_floating_point() else int64


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
