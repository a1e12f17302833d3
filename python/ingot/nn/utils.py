"""Clipping, and parameters as one vector."""
from .. import _ingot
from .._ingot import Tensor


def _list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that their joint norm is at most max_norm; returns the norm before."""
    return _ingot.clip_grad_norm_(_list(parameters), float(max_norm), float(norm_type))


def get_total_norm(parameters, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The joint norm of the gradients of these parameters (PyTorch's function takes the gradients themselves)."""
    return _ingot.get_total_norm(_list(parameters), float(norm_type))


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
