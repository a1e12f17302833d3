"""RNN, LSTM and GRU, and their cells: PyTorch's names, weights and order of gates. All steps of a layer are one recorded op."""
import math

from .. import _ingot
from . import functional as F
from . import init
from .module import Module, Parameter


def _lstm_step(x, state, w_hh, b_hh):
    """x: the input's share of the gates."""
    h, c = state
    i, f, g, o = (x + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_step(x, state, w_hh, b_hh):
    (h,) = state
    xr, xz, xn = x.chunk(3, -1)
    hr, hz, hn = F.linear(h, w_hh, b_hh).chunk(3, -1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return ((h - n) * z + n,)


def _check_nonlinearity(who, nonlinearity):
    if nonlinearity not in ("tanh", "relu"):
        raise _ingot.ValueError(f"[{who}] nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")


def _rnn_step(x, state, w_hh, b_hh, activation):
    y = x + F.linear(state[0], w_hh, b_hh)
    return (y.tanh() if activation == "tanh" else y.relu(),)


class _Recurrent(Module):
    _kind, _gates, _states = None, 1, 1

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        super().__init__()
        name = type(self).__name__
        for word, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size < 1:
                raise _ingot.ValueError(f"[{name}] {word} must be 1 or more, not {size}")
        if proj_size and self._kind != "lstm":
            raise _ingot.ValueError(f"[{name}] proj_size is only for LSTM")
        if not 0 <= proj_size < hidden_size:
            raise _ingot.ValueError(f"[{name}] proj_size must be smaller than hidden_size, not {proj_size}")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        bound, rows, out = 1 / math.sqrt(hidden_size), self._gates * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for back in range(1 + bidirectional):
                tail = f"_l{layer}" + "_reverse" * back
                width = input_size if layer == 0 else out * (1 + bidirectional)
                sizes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                if bias:
                    sizes.update({"bias_ih": (rows,), "bias_hh": (rows,)})
                if proj_size:
                    sizes["weight_hr"] = (proj_size, hidden_size)
                for part, size in sizes.items():
                    p = Parameter(_ingot.empty(size, device=device, dtype=dtype))
                    init.uniform_(p, -bound, bound)
                    self.register_parameter(part + tail, p)

    def flatten_parameters(self):
        pass

    def _weights(self):
        parts = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * bool(self.bias) + ["weight_hr"] * bool(self.proj_size)
        tails = [f"_l{layer}" + "_reverse" * back for layer in range(self.num_layers) for back in range(1 + self.bidirectional)]
        return [getattr(self, part + tail) for tail in tails for part in parts]

    def forward(self, input, hx=None, *, lengths=None):
        """lengths: of each sequence of the batch; steps past a sequence's end leave its state as it is and give zeros."""
        h0, c0 = (None, None) if hx is None else hx if self._states == 2 else (hx, None)
        output, h, c = _ingot._recurrent(self._kind, input, h0, c0, self._weights(), self.bias, self.num_layers, self.dropout,
                                        self.training, self.bidirectional, self.batch_first, [] if lengths is None else list(lengths))
        return output, (h, c) if self._states == 2 else h

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                              ("bidirectional", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class LSTM(_Recurrent):
    """Long short-term memory; returns output, (h, c)."""

    _kind, _gates, _states = "lstm", 4, 2


class GRU(_Recurrent):
    """Gated recurrent units; returns output, h."""

    _kind, _gates, _states = "gru", 3, 1


class RNN(_Recurrent):
    """tanh (or ReLU) of a linear function of input and state; returns output, h."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None):
        _check_nonlinearity("RNN", nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = self._kind = nonlinearity


class _Cell(Module):
    _gates, _states = 1, 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        bound, rows = 1 / math.sqrt(hidden_size), self._gates * hidden_size
        sizes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size), "bias_ih": (rows,), "bias_hh": (rows,)}
        for name, size in sizes.items():
            if "bias" in name and not bias:
                self.register_parameter(name, None)
                continue
            p = Parameter(_ingot.empty(size, device=device, dtype=dtype))
            init.uniform_(p, -bound, bound)
            self.register_parameter(name, p)

    def forward(self, input, hx=None):
        if hx is None:
            zero = _ingot.zeros(list(input.shape[:-1]) + [self.hidden_size], dtype=input.dtype, device=input.device)
            hx = (zero,) * self._states
        state = hx if isinstance(hx, (tuple, list)) else (hx,)
        state = self._step(F.linear(input, self.weight_ih, self.bias_ih), tuple(state), self.weight_hh, self.bias_hh)
        return state if self._states == 2 else state[0]

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"


class LSTMCell(_Cell):
    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)


class GRUCell(_Cell):
    _gates, _states, _step = 3, 1, staticmethod(_gru_step)


class RNNCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        _check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, x, state, w_hh, b_hh):
        return _rnn_step(x, state, w_hh, b_hh, self.nonlinearity)


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]
