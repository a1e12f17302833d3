"""Clipping, and parameters as one vector."""
from .. import _ingot
from .._ingot import Tensor


def _list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that their joint 2-norm is at most max_norm; returns the norm before."""
    if float(norm_type) != 2.0:
        raise _ingot.UnsupportedError("[clip_grad_norm_] only the 2-norm is there")
    return _ingot.clip_grad_norm_(_list(parameters), float(max_norm))


def clip_grad_value_(parameters, clip_value, foreach=None):
    _ingot.clip_grad_value_(_list(parameters), float(clip_value))


def parameters_to_vector(parameters):
    return _ingot.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    from ..autograd import no_grad

    at = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[at:at + p.numel()].reshape(p.shape))
            at += p.numel()
