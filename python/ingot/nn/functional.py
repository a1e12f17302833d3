"""torch.nn.functional's names: functions of layers, without parameters."""
import builtins
import math

from .. import _ingot
from .._ingot import (  # noqa: F401
    Tensor, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, batch_norm as _batch_norm,
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, cross_entropy as _cross_entropy, gelu, layer_norm,
    linear, log_softmax as _log_softmax, lp_pool1d, lp_pool2d, lp_pool3d, mse_loss as _mse_loss, relu as _relu, rms_norm, sigmoid,
    silu as _silu, softmax as _softmax, tanh)


def _dim_of(x):
    """PyTorch's choice when no dim is given."""
    return 0 if x.dim() in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _softmax(input, _dim_of(input) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return _log_softmax(input, _dim_of(input) if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def _into(input, value, inplace):
    """value; with inplace written into input, which is returned."""
    return input.copy_(value) if inplace else value


def relu(input, inplace=False):
    return _into(input, _relu(input), inplace)


def silu(input, inplace=False):
    return _into(input, _silu(input), inplace)


def softplus(input, beta=1.0, threshold=20.0):
    y = _ingot.softplus(input, beta)
    return y if threshold == 20.0 else _ingot.where(input * beta > threshold, input, y)


def dropout(input, p=0.5, training=True, inplace=False):
    return _into(input, _ingot.dropout(input, p, training), inplace)


def _dropped(input, p, training, shape):
    """dropout of complete slices: one decision for each element of shape."""
    if not training or p == 0:
        return input
    return input * _ingot.dropout(_ingot.ones(shape, dtype=input.dtype, device=input.device), p, True)


def dropout1d(input, p=0.5, training=True, inplace=False):
    return _into(input, _dropped(input, p, training, list(input.shape[:-1]) + [1]), inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    return _into(input, _dropped(input, p, training, list(input.shape[:-2]) + [1] * 2), inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    return _into(input, _dropped(input, p, training, list(input.shape[:-3]) + [1] * 3), inplace)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    if not 0 <= p <= 1:
        raise _ingot.ValueError(f"[alpha_dropout] p must be between 0 and 1, but is {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    low = -1.7580993408473766
    a = ((1 - p) * (1 + p * low**2)) ** -0.5
    keep = _ingot.rand_like(input) >= p
    return _into(input, _ingot.where(keep, input, low) * a - a * low * p, inplace)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise _ingot.UnsupportedError("[embedding] max_norm, scale_grad_by_freq and sparse are not supported")
    if padding_idx is None:
        return _ingot.embedding(input, weight)
    return _ingot.embedding(input, weight, padding_idx if padding_idx >= 0 else padding_idx + weight.size(0))


def one_hot(tensor, num_classes=-1):
    return _ingot.one_hot(tensor) if num_classes < 0 else _ingot.one_hot(tensor, num_classes)


def pad(input, pad, mode="constant", value=None):
    if mode == "constant":
        return _ingot.pad_constant(input, pad, 0.0 if value is None else value)
    return _ingot.pad_mode(input, pad, mode)


# ---- Windows


def _pools(n):
    pool, pool_both = getattr(_ingot, f"max_pool{n}d"), getattr(_ingot, f"max_pool{n}d_with_indices")

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return (pool_both if return_indices else pool)(input, kernel_size, stride, padding, dilation, ceil_mode)

    adaptive = getattr(_ingot, f"adaptive_max_pool{n}d")

    def adaptive_max_pool(input, output_size, return_indices=False):
        if return_indices:
            raise _ingot.UnsupportedError("[adaptive_max_pool] return_indices is not supported")
        return adaptive(input, output_size)

    return max_pool, adaptive_max_pool


max_pool1d, adaptive_max_pool1d = _pools(1)
max_pool2d, adaptive_max_pool2d = _pools(2)
max_pool3d, adaptive_max_pool3d = _pools(3)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if input.dim() == 1 and not input.numel():  # no channels
        return input.clone()
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    n, c = input.size(0), input.size(1)
    if c % num_groups:
        raise _ingot.ShapeError(f"[group_norm] {c} channels cannot be split into {num_groups} groups")
    size = math.prod(input.shape[1:]) // num_groups
    y = layer_norm(input.reshape(n, num_groups, size), (size,), eps=eps).reshape(input.shape)
    shape = [1, c] + [1] * (input.dim() - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    return _ingot._instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    square = (input * input).unsqueeze(1)
    n = input.dim()
    padded = pad(square, [0, 0] * (n - 2) + [size // 2, (size - 1) // 2])
    total = builtins.sum(padded.narrow(2, i, input.size(1)) for i in range(size)).squeeze(1) / size
    return input / (total * alpha + k) ** beta


def pixel_shuffle(input, upscale_factor):
    r, (*lead, c, h, w) = upscale_factor, input.shape
    x = input.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    return x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // r**2, h * r, w * r)


def pixel_unshuffle(input, downscale_factor):
    r, (*lead, c, h, w) = downscale_factor, input.shape
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    return x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


def channel_shuffle(input, groups):
    n, c, *rest = input.shape
    return input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(input.shape)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return _ingot.unfold(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return _ingot.fold(input, output_size, kernel_size, dilation, padding, stride)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Resizes the last dims: nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area."""
    if antialias:
        raise _ingot.UnsupportedError("[interpolate] antialias is not supported")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise _ingot.ValueError(f"[interpolate] align_corners has no meaning in mode '{mode}'")
    if recompute_scale_factor and size is not None:
        raise _ingot.ValueError("[interpolate] recompute_scale_factor is for scale_factor, not for size")
    scales = [] if scale_factor is None else [scale_factor] if isinstance(scale_factor, (int, float)) else list(scale_factor)
    return _ingot._interpolate(input, size, scales, mode, bool(align_corners), bool(recompute_scale_factor))


upsample = interpolate


def bilinear(input1, input2, weight, bias=None):
    y = _ingot.einsum_list("...i,oij,...j->...o", [input1, weight, input2])
    return y if bias is None else y + bias


# ---- Activations


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return _into(input, _ingot.leaky_relu(input, negative_slope), inplace)


def elu(input, alpha=1.0, inplace=False):
    return _into(input, _ingot.elu(input, alpha), inplace)


def selu(input, inplace=False):
    return _into(input, _ingot.selu(input), inplace)


def celu(input, alpha=1.0, inplace=False):
    return _into(input, _ingot.celu(input, alpha), inplace)


def relu6(input, inplace=False):
    return _into(input, _ingot.relu6(input), inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return _into(input, _ingot.hardtanh(input, min_val, max_val), inplace)


def hardswish(input, inplace=False):
    return _into(input, _ingot.hardswish(input), inplace)


def hardsigmoid(input, inplace=False):
    return _into(input, _ingot.hardsigmoid(input), inplace)


def mish(input, inplace=False):
    return _into(input, _ingot.mish(input), inplace)


def softsign(input):
    return _ingot.softsign(input)


def logsigmoid(input):
    return _ingot.logsigmoid(input)


def tanhshrink(input):
    return _ingot.tanhshrink(input)


def hardshrink(input, lambd=0.5):
    return _ingot.hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    return _ingot.softshrink(input, lambd)


def glu(input, dim=-1):
    return _ingot.glu(input, dim)


def threshold(input, threshold, value, inplace=False):
    return _into(input, _ingot.threshold(input, threshold, value), inplace)


def prelu(input, weight):
    return _ingot.prelu(input, weight)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    return _into(input, _ingot.rrelu(input, lower, upper, training), inplace)


def gumbel_softmax(logits, tau=1.0, hard=False, eps=1e-10, dim=-1):
    return _ingot.gumbel_softmax(logits, tau, hard, dim)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    return _ingot.normalize(input, p, dim, eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    return _ingot.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return _ingot.pairwise_distance(x1, x2, p, eps, keepdim)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa and query.size(-3) != key.size(-3):
        times = query.size(-3) // key.size(-3)
        key, value = (_repeat_heads(x, times) for x in (key, value))
    return _ingot.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _repeat_heads(x, times):
    shape = list(x.shape)
    x = x.unsqueeze(-3)
    return x.expand(shape[:-2] + [times] + shape[-2:]).reshape(shape[:-3] + [shape[-3] * times] + shape[-2:])


# ---- Losses. size_average and reduce are PyTorch's old names for reduction, and act as they do there.


def _old_words(size_average, reduce, reduction):
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str) or isinstance(reduce, str):
        raise _ingot.ValueError("[loss] size_average and reduce are bools\n  fix: give reduction by its name, reduction='sum'")
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def _check_reduction(reduction):
    if reduction not in ("mean", "sum", "none"):
        raise _ingot.ValueError(f"[loss] reduction '{reduction}' is not known; there are 'mean', 'sum' and 'none'")


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    _check_reduction(reduction)
    return loss


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    return _cross_entropy(input, target, weight, ignore_index, _old_words(size_average, reduce, reduction), label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return _ingot.nll_loss(input, target, weight, ignore_index, _old_words(size_average, reduce, reduction))


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    reduction = _old_words(size_average, reduce, reduction)
    if weight is not None:
        loss = (input - target) ** 2 * weight
        return loss.sum() / weight.expand_as(loss).sum() if reduction == "mean" else _reduced(loss, reduction)
    return _mse_loss(input, target, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    reduction = _old_words(size_average, reduce, reduction)
    if weight is not None:
        loss = (input - target).abs() * weight
        return loss.sum() / weight.expand_as(loss).sum() if reduction == "mean" else _reduced(loss, reduction)
    return _ingot.l1_loss(input, target, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if weight is not None:
        loss = _ingot.huber_loss(input, target, "none", delta) * weight
        return loss.sum() / weight.expand_as(loss).sum() if reduction == "mean" else _reduced(loss, reduction)
    return _ingot.huber_loss(input, target, reduction, delta)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.kl_div(input, target, reduction, log_target)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.hinge_embedding_loss(input, target, margin, reduction)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.margin_ranking_loss(input1, input2, target, margin, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.cosine_embedding_loss(input1, input2, target, margin, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.soft_margin_loss(input, target, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if not isinstance(var, Tensor):
        if var < 0:
            raise _ingot.ValueError(f"[gaussian_nll_loss] var is {var}, but cannot be negative")
        var = _ingot.full((), var, dtype=input.dtype, device=input.device)
    return _ingot.gaussian_nll_loss(input, target, var, full, eps, reduction)


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = _old_words(size_average, reduce, reduction)
    return _ingot.multilabel_soft_margin_loss(input, target, weight, reduction)
