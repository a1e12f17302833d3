"""Methods of Tensor that are easier said in Python: iteration, copying, pickling, formats, NumPy's protocol."""
from . import _ingot
from ._ingot import Tensor


def _iter(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _unbind(self, dim=0):
    """The slices along dim, as a tuple."""
    return tuple(self.select(dim, i) for i in range(self.size(dim)))


def _contains(self, element):
    return bool((self == element).any())


def _format(self, spec):
    if self.dim() == 0:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _array(self, dtype=None, copy=None):
    import numpy

    a = self.detach().numpy()
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return numpy.array(a) if copy else a


def _rebuild(kind, payload, dtype, shape, device, requires_grad, state):
    t = _ingot.from_bytes(payload, dtype, shape)
    try:
        t = t.to(device)
    except _ingot.DeviceError:
        pass  # pickled on a machine with a GPU, read on one without
    if requires_grad:
        t.requires_grad_(True)
    if kind is not Tensor:
        t = kind(t)
        t.__dict__.update(state)
    return t


def _reduce(self, protocol):
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("only leaves can be pickled or deep-copied: x.detach() drops the history")
    state = getattr(self, "__dict__", {})
    return _rebuild, (type(self), _ingot.to_bytes(self.detach()), self.dtype, self.shape, self.device.name, self.requires_grad, dict(state))


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("only leaves can be deep-copied: x.detach() drops the history")
    t = self.detach().clone().detach()
    if self.requires_grad:
        t.requires_grad_(True)
        if self.grad is not None:
            t.grad = self.grad.detach().clone().detach()
    if type(self) is not Tensor:
        t = type(self)(t) if not self.requires_grad else type(self)(t, True)
        t.__dict__.update(getattr(self, "__dict__", {}))
    memo[id(self)] = t
    return t


def _add_parts():
    Tensor.__iter__ = _iter
    Tensor.unbind = _unbind
    Tensor.__contains__ = _contains
    Tensor.__format__ = _format
    Tensor.__array__ = _array
    Tensor.__array_priority__ = 1000
    Tensor.__reduce_ex__ = _reduce
    Tensor.__deepcopy__ = _deepcopy
    Tensor.__hash__ = object.__hash__


_add_parts()
