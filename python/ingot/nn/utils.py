"""Clipping, and parameters as one vector."""
import math

from .. import _ingot
from .._ingot import Tensor


def _list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _finite(norm, norm_type, error_if_nonfinite):
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise _ingot.StateError(f"[get_total_norm] the joint norm of order {norm_type} is {norm.item()}: the gradients are not finite, so they "
                                "cannot be clipped\n  fix: look for the first value that is not finite, or pass error_if_nonfinite=False")
    return norm


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that their joint norm is at most max_norm; returns the norm before. With error_if_nonfinite one that is not
    finite is an error, and the gradients are unchanged (the norm is computed immediately for that)."""
    parameters = _list(parameters)
    if error_if_nonfinite:
        get_total_norm([p._grad for p in parameters if p._grad is not None], norm_type, True)
    return _ingot.clip_grad_norm_(parameters, float(max_norm), float(norm_type))


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The joint norm of these tensors, such as [p.grad for p in model.parameters()]."""
    return _finite(_ingot.get_total_norm(_list(tensors), float(norm_type)), norm_type, error_if_nonfinite)


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
