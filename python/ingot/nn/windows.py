"""Convolutions and pooling."""
import math

from .. import _ingot
from . import functional as F
from . import init
from .module import Module, Parameter, _signature


def _per_dim(v, n):
    return (v,) * n if isinstance(v, int) else tuple(v)


class _Conv(Module):
    """Shared by the convolutions; _dims and _transposed say which."""

    _dims, _transposed = 2, False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
                 device=None, dtype=None):
        super().__init__()
        self._make(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)

    def _make(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype, output_padding=0):
        modes = ("zeros",) if self._transposed else ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise _ingot.ValueError(f"[{type(self).__name__}] padding_mode {padding_mode!r} is not known; there {'is' if len(modes) == 1 else 'are'} "
                                    f"{', '.join(map(repr, modes))}")
        if isinstance(padding, str) and (self._transposed or padding not in ("same", "valid")):
            raise _ingot.ValueError(f"[{type(self).__name__}] padding {padding!r} is not known" + (
                ": it is a number, or one per dim" if self._transposed else "; there are 'same', 'valid' and numbers"))
        if in_channels % groups or out_channels % groups:
            raise _ingot.ValueError(f"[{type(self).__name__}] {in_channels} and {out_channels} channels cannot be split into {groups} groups")
        n = self._dims
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = (_per_dim(v, n) for v in (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else _per_dim(padding, n)
        self.output_padding = _per_dim(output_padding, n)
        shape = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_ingot.empty(shape + self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(_ingot.empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan = self.weight.size(1) * math.prod(self.kernel_size)
            bound = 1 / math.sqrt(fan) if fan else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            if padding == "same":
                total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
                around = [p for t in reversed(total) for p in (t // 2, t - t // 2)]
            else:
                around = [p for t in reversed(_per_dim(0 if padding == "valid" else padding, self._dims)) for p in (t, t)]
            input = F.pad(input, around, self.padding_mode)
            padding = 0
        return self._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._dims:
            text += f", padding={self.padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text + ("" if self.bias is not None else ", bias=False")


class Conv1d(_Conv):
    _dims, _function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    _dims, _function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    _dims, _function = 3, staticmethod(F.conv3d)


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
                 padding_mode="zeros", device=None, dtype=None):
        Module.__init__(self)
        self._make(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype, output_padding)

    def forward(self, input, output_size=None):
        extra = self.output_padding
        if output_size is not None:
            size = list(output_size)[-self._dims:]
            extra = [o - ((i - 1) * s - 2 * p + d * (k - 1) + 1) for o, i, s, p, d, k in zip(
                size, input.shape[-self._dims:], self.stride, self.padding, self.dilation, self.kernel_size)]
        return self._function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    _dims, _function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    _dims, _function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    _dims, _function = 3, staticmethod(F.conv_transpose3d)


def _pool(name, function, *names, **defaults):
    """A pooling module whose options, in order, are those of the function."""
    everything = list(names) + list(defaults)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        given = {**defaults, **dict(zip(everything, args)), **kwargs}
        wrong = [k for k in kwargs if k not in everything or k in everything[:len(args)]] or [k for k in names if k not in given]
        if wrong or len(args) > len(everything):
            raise TypeError(f"{name}() takes {everything}, not {wrong or args}")
        self._options = given
        for k, v in given.items():
            object.__setattr__(self, k, v)

    __init__.__signature__ = _signature(names, defaults)

    def forward(self, input):
        return function(input, **self._options)

    def extra_repr(self):
        return ", ".join(f"{k}={v}" for k, v in self._options.items())

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__module__": __name__,
                                  "__qualname__": name, "__doc__": f"{name} over windows of the last dims."})


for _n in (1, 2, 3):
    _of = {k: getattr(F, f"{k}{_n}d") for k in ("max_pool", "avg_pool", "lp_pool", "adaptive_avg_pool", "adaptive_max_pool")}
    globals()[f"MaxPool{_n}d"] = _pool(f"MaxPool{_n}d", _of["max_pool"], "kernel_size", stride=None, padding=0, dilation=1,
                                       return_indices=False, ceil_mode=False)
    _more = dict(divisor_override=None) if _n > 1 else {}
    globals()[f"AvgPool{_n}d"] = _pool(f"AvgPool{_n}d", _of["avg_pool"], "kernel_size", stride=None, padding=0, ceil_mode=False,
                                       count_include_pad=True, **_more)
    globals()[f"LPPool{_n}d"] = _pool(f"LPPool{_n}d", _of["lp_pool"], "norm_type", "kernel_size", stride=None, ceil_mode=False)
    globals()[f"AdaptiveAvgPool{_n}d"] = _pool(f"AdaptiveAvgPool{_n}d", _of["adaptive_avg_pool"], "output_size")
    globals()[f"AdaptiveMaxPool{_n}d"] = _pool(f"AdaptiveMaxPool{_n}d", _of["adaptive_max_pool"], "output_size", return_indices=False)

__all__ = [n for n, v in list(globals().items()) if isinstance(v, type) and issubclass(v, Module) and v is not Module and not n.startswith("_")]
