"""Functions of the package that are written with the core's."""
import builtins

from . import _ingot
from ._ingot import Tensor

__all__ = ["as_tensor", "asarray", "is_tensor", "numel", "unbind", "is_floating_point", "allclose", "equal", "set_printoptions",
           "get_default_dtype", "set_default_dtype", "set_float32_matmul_precision", "manual_seed", "clone", "detach"]


def as_tensor(data, dtype=None, device=None):
    """data itself if it is a tensor of that dtype and device; a NumPy array's memory without a copy where it fits."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if type(data).__module__ == "numpy" and hasattr(data, "__array_interface__") and getattr(data, "ndim", 0) > 0:
        return _ingot.from_numpy(data).to(device=device, dtype=dtype)
    return _ingot.tensor(data, dtype=dtype, device=device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of any array, buffer, DLPack object, number or nested list; copied only where it must be, or copy=True."""
    if isinstance(obj, Tensor) or not copy and hasattr(obj, "__array_interface__"):
        out = as_tensor(obj, dtype=dtype, device=device)
        if copy:
            out = out.clone() if out is obj or isinstance(obj, Tensor) else out
    elif hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        out = _ingot.from_dlpack(obj, copy=copy).to(device=device, dtype=dtype)
    else:
        if copy is False and not hasattr(obj, "__array_interface__"):
            raise ValueError("copy=False, but numbers and lists can only be copied")
        out = _ingot.tensor(obj, dtype=dtype, device=device)
    if requires_grad:
        out.requires_grad_(True)
    return out


def is_tensor(obj):
    return isinstance(obj, Tensor)


def numel(input):
    return input.numel()


def unbind(input, dim=0):
    return input.unbind(dim)


def clone(input, *, memory_format=None):
    return input.clone()


def detach(input):
    return input.detach()


def is_floating_point(input):
    return input.is_floating_point()


def equal(input, other):
    """Same shape and all elements equal?"""
    return input.shape == other.shape and builtins.bool((input == other).all())


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|input - other| <= atol + rtol * |other|, elementwise."""
    close = (input == other) | (((input - other).abs() <= atol + rtol * other.abs()) & other.isfinite())
    if equal_nan and input.is_floating_point():
        close = close | (input.isnan() & other.isnan())
    return close


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return builtins.bool(isclose(input, other, rtol, atol, equal_nan).all())


def set_printoptions(**options):
    """Taken for PyTorch's sake; Ingot prints four digits and the edges of what is large."""


def get_default_dtype():
    return _ingot.float32


def set_default_dtype(d):
    if d is not _ingot.float32:
        raise _ingot.UnsupportedError("Ingot's default dtype is float32; give dtype= where you want another")


def set_float32_matmul_precision(precision):
    """Taken for PyTorch's sake: products of float32 are float32 products."""


def manual_seed(seed):
    """Seeds the default generator and returns it."""
    return _ingot.manual_seed(seed & 0xFFFFFFFFFFFFFFFF)
