"""The array API's products, and its extension linalg."""
import builtins as _b
import math as _math
from collections import namedtuple as _namedtuple

from .. import _functions as _f
from .. import _ingot
from .. import linalg as _core
from .._ingot import Tensor as _Tensor
from .types import _both, _sum_type, finfo, int64


def matmul(x1, x2, /):
    a, b = _both(x1, x2)
    return _ingot.matmul(a, b)


def matrix_transpose(x, /):
    return x.mT


def vecdot(x1, x2, /, *, axis=-1):
    a, b = _both(x1, x2)
    if axis >= 0 or -axis > _b.min(a.dim(), b.dim()):
        raise ValueError("vecdot: axis must be negative and within both arrays")
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


def cross(x1, x2, /, *, axis=-1):
    a, b = _both(x1, x2)
    return _core.cross(*_f.broadcast_tensors(a, b), dim=axis)


def diagonal(x, /, *, offset=0):
    return x.diagonal(offset, -2, -1)


def outer(x1, x2, /):
    a, b = _both(x1, x2)
    if a.dim() != 1 or b.dim() != 1:
        raise ValueError("outer needs vectors")
    return a.unsqueeze(1) * b.unsqueeze(0)


def trace(x, /, *, offset=0, dtype=None):
    d = _sum_type(x, dtype)
    return x.diagonal(offset, -2, -1).to(d).sum(-1).to(d)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Those of singular values ("nuc", 2, -2) are computed by NumPy, on the host and without gradients."""
    if ord in ("nuc", 2, -2):
        return _on_host(lambda la, a: la.norm(a, ord, (-2, -1), keepdims), x).to(x.dtype)
    return _core.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x, n, /):
    return _core.matrix_power(x, n)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    if axis == ():
        return x.abs() if ord != 0 else (x != 0).to(x.dtype)
    return _core.vector_norm(x, ord, axis, keepdims)


def cholesky(x, /, *, upper=False):
    return _core.cholesky(x, upper)


def det(x, /):
    return _core.det(x)


def inv(x, /):
    return _core.inv(x)


_slogdet = _namedtuple("slogdet_result", ["sign", "logabsdet"])


def slogdet(x, /):
    return _slogdet(*_f.slogdet(x))


def solve(x1, x2, /):
    a, b = _both(x1, x2)
    return _core.solve(a, b)


def _on_host(fn, x):
    """What needs eigenvalues and singular values is computed by NumPy, on the host and without gradients."""
    import numpy

    out = fn(numpy.linalg, x.detach().cpu().numpy())
    return tuple(_ingot.tensor(v) for v in out) if isinstance(out, tuple) else _ingot.tensor(out)


_eigh = _namedtuple("eigh_result", ["eigenvalues", "eigenvectors"])
_qr = _namedtuple("qr_result", ["Q", "R"])
_svd = _namedtuple("svd_result", ["U", "S", "Vh"])


def eigh(x, /):
    return _eigh(*_on_host(lambda la, a: tuple(la.eigh(a)), x))


def eigvalsh(x, /):
    return _on_host(lambda la, a: la.eigvalsh(a), x)


def qr(x, /, *, mode="reduced"):
    return _qr(*_on_host(lambda la, a: tuple(la.qr(a, mode)), x))


def svd(x, /, *, full_matrices=True):
    return _svd(*_on_host(lambda la, a: tuple(la.svd(a, full_matrices=full_matrices)), x))


def svdvals(x, /):
    return _on_host(lambda la, a: la.svd(a, compute_uv=False), x)


def matrix_rank(x, /, *, rtol=None):
    s = svdvals(x)
    if not x.numel():
        return _ingot.zeros(tuple(x.shape[:-2]), dtype=int64)
    tol = _b.max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
    tol = tol.unsqueeze(-1) if isinstance(tol, _Tensor) else tol
    return (s > s.amax(-1, True) * tol).sum(-1)


def pinv(x, /, *, rtol=None):
    tol = _b.max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
    return _on_host(lambda la, a: la.pinv(a, rcond=tol.numpy() if isinstance(tol, _Tensor) else tol), x)
