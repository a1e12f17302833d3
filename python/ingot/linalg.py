"""torch.linalg's names for the supported functions."""
from . import _ingot
from ._functions import slogdet, tensordot  # noqa: F401
from ._ingot import Tensor, matmul  # noqa: F401


vecdot, multi_dot = _ingot.vecdot, _ingot.multi_dot


def solve(A, B, *, left=True):
    return _ingot.linalg_solve(A, B, left=left)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    return _ingot.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def cross(input, other, *, dim=-1):
    return _ingot.linalg_cross(input, other, dim=dim)


def cholesky(A, *, upper=False):
    return _ingot.cholesky(A, upper)


def inv(A):
    return _ingot.inverse(A)


def det(A):
    return _ingot.det(A)


def matrix_power(A, n):
    return _ingot.matrix_power(A, n)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    return A.diagonal(offset, dim1, dim2)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return _ingot.vector_norm(x if dtype is None else x.to(dtype), float(ord), dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """"fro", 1, -1, inf and -inf; the norms that need singular values are not supported."""
    x = A if dtype is None else A.to(dtype)
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise TypeError(f"matrix_norm() takes two dims, not {dim!r}")
    if ord == "fro":
        return _ingot.vector_norm(x, 2.0, dim, keepdim)
    rows, cols = (d % x.dim() for d in dim)
    if ord in (1, -1, float("inf"), float("-inf")):
        summed, other = (rows, cols) if abs(ord) == 1 else (cols, rows)
        sums = x.abs().sum(summed, True)
        out = sums.amax(other, True) if ord > 0 else sums.amin(other, True)
        return out if keepdim else out.squeeze([rows, cols])
    raise _ingot.UnsupportedError(f"[matrix_norm] ord={ord} needs singular values, which are not supported")


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    if dim is not None and not isinstance(dim, int) and len(dim) == 2 and ord is not None:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    if dim is None and ord is not None and A.dim() == 2:
        return matrix_norm(A, ord, (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype=dtype)


def vander(x, *, N=None):
    from ._functions import vander as v

    x = x.reshape(1) if x.dim() == 0 else x
    return v(x, N, increasing=True) if x.dim() == 1 else x.unsqueeze(-1) ** _ingot.arange(x.size(-1) if N is None else N)
