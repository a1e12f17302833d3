"""RNN, LSTM and GRU, and their cells: PyTorch's names, weights and order of gates. A sequence is recorded step by step; its steps'
elementwise work fuses and its plan is reused for every batch of the same length."""
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
    _gates, _states = 1, 1

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        super().__init__()
        if proj_size:
            raise _ingot.UnsupportedError(f"[{type(self).__name__}] proj_size is not supported")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        bound = 1 / math.sqrt(hidden_size)
        for layer in range(num_layers):
            for back in range(1 + bidirectional):
                tail = f"_l{layer}" + "_reverse" * back
                width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
                rows = self._gates * hidden_size
                sizes = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
                if bias:
                    sizes.update({"bias_ih": (rows,), "bias_hh": (rows,)})
                for name, size in sizes.items():
                    p = Parameter(_ingot.empty(size, device=device, dtype=dtype))
                    init.uniform_(p, -bound, bound)
                    self.register_parameter(name + tail, p)

    def flatten_parameters(self):
        pass

    def _weights(self, layer, back):
        tail = f"_l{layer}" + "_reverse" * back
        return [getattr(self, n + tail, None) if "weight" in n or self.bias else None for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def _direction(self, x, state, layer, back):
        w_ih, w_hh, b_ih, b_hh = self._weights(layer, back)
        gates = F.linear(x, w_ih, b_ih).unbind(0)  # the input's share of all steps at once
        outputs = []
        for g in reversed(gates) if back else gates:
            state = self._step(g, state, w_hh, b_hh)
            outputs.append(state[0])
        return _ingot.stack(outputs[::-1] if back else outputs), state

    def forward(self, input, hx=None):
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1 - self.batch_first if not self.batch_first else 0)
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 1 + self.bidirectional
        if hx is None:
            zero = _ingot.zeros(self.num_layers * directions, x.size(1), self.hidden_size, dtype=x.dtype, device=x.device)
            states = (zero,) * self._states
        else:
            states = hx if isinstance(hx, (tuple, list)) else (hx,)
            states = tuple(s if batched else s.unsqueeze(1) for s in states)
        last = []
        for layer in range(self.num_layers):
            outs = []
            for back in range(directions):
                at = layer * directions + back
                y, state = self._direction(x, tuple(s[at] for s in states), layer, back)
                outs.append(y)
                last.append(state)
            x = _ingot.cat(outs, -1) if directions == 2 else outs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        final = tuple(_ingot.stack([s[k] for s in last]) for k in range(self._states))
        if self.batch_first:
            x = x.transpose(0, 1)
        if not batched:
            x = x.squeeze(0 if self.batch_first else 1)
            final = tuple(f.squeeze(1) for f in final)
        return x, final if self._states == 2 else final[0]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class LSTM(_Recurrent):
    """Long short-term memory; returns output, (h, c)."""

    _gates, _states, _step = 4, 2, staticmethod(_lstm_step)


class GRU(_Recurrent):
    """Gated recurrent units; returns output, h."""

    _gates, _states, _step = 3, 1, staticmethod(_gru_step)


class RNN(_Recurrent):
    """tanh (or ReLU) of a linear function of input and state; returns output, h."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None):
        _check_nonlinearity("RNN", nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, x, state, w_hh, b_hh):
        return _rnn_step(x, state, w_hh, b_hh, self.nonlinearity)


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
