"""torch.nn.functional's names: functions of layers, without parameters of their own."""
from .. import _ingot
from .._ingot import (  # noqa: F401
    Tensor, gelu, layer_norm, leaky_relu, linear, log_softmax as _log_softmax, logsumexp, mse_loss as _mse_loss, relu as _relu, rms_norm,
    sigmoid, silu as _silu, softmax as _softmax, tanh)


def _dim_of(x):
    """PyTorch's choice when no dim is given."""
    return 0 if x.dim() in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _softmax(input, _dim_of(input) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _log_softmax(input, _dim_of(input) if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def relu(input, inplace=False):
    return _relu(input)


def silu(input, inplace=False):
    return _silu(input)


def softplus(input, beta=1.0, threshold=20.0):
    y = _ingot.softplus(input, beta)
    return y if threshold == 20.0 else _ingot.where(input * beta > threshold, input, y)


def dropout(input, p=0.5, training=True, inplace=False):
    return _ingot.dropout(input, p, training)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise _ingot.UnsupportedError("[embedding] max_norm, scale_grad_by_freq and sparse are not there")
    if padding_idx is not None:  # no gradient for that row
        row = padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)
        keep = (_ingot.arange(weight.size(0), device=weight.device) == row).unsqueeze(1)
        weight = _ingot.where(keep, weight.detach(), weight)
    return _ingot.embedding(input, weight)


def one_hot(tensor, num_classes=-1):
    return _ingot.one_hot(tensor, int(tensor.max()) + 1 if num_classes < 0 else num_classes)


def pad(input, pad, mode="constant", value=None):
    if mode == "constant":
        return _ingot.pad_constant(input, pad, 0.0 if value is None else value)
    raise _ingot.UnsupportedError(f"[pad] mode {mode} is not there")


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa and query.size(-3) != key.size(-3):
        times = query.size(-3) // key.size(-3)
        key, value = (_repeat_heads(x, times) for x in (key, value))
    return _ingot.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _repeat_heads(x, times):
    shape = list(x.shape)
    x = x.unsqueeze(-3)
    return x.expand(shape[:-2] + [times] + shape[-2:]).reshape(shape[:-3] + [shape[-3] * times] + shape[-2:])


# ---- Losses


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise _ingot.ValueError(f"[loss] reduction '{reduction}' is not known; there are 'mean', 'sum' and 'none'")


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    return _ingot.cross_entropy(input, target, ignore_index, reduction, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return _ingot.nll_loss(input, target, ignore_index, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _mse_loss(input, target, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _reduced((input - target).abs(), reduction)
