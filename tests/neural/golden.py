#!/usr/bin/env python3
"""Writes golden.inc: what PyTorch says of each case of golden_test.cpp. Run by hand, with PyTorch installed:
    python3 golden.py > golden.inc
A case is one expression that both languages understand, or a pair (C++, Python)."""
import math
import re
import torch
import torch.nn.functional as F
from torch.nn.functional import *  # noqa: F403

# The same inputs are made in golden_test.cpp.
def ramp(shape, a, m, s):
    n = math.prod(shape)
    return torch.tensor([((k * a) % m) * s[0] + s[1] for k in range(n)], dtype=torch.float64).reshape(shape).to(torch.float32)

s1 = ramp([2, 4, 9], 7, 23, (0.25, -2.5))
s2 = ramp([2, 4, 6, 7], 11, 37, (0.125, -2.0))
s3 = ramp([1, 2, 4, 5, 6], 13, 41, (0.125, -2.5))
p2 = ramp([1, 2, 6, 6], 5, 29, (0.125, 0.125))
w1 = ramp([6, 2, 3], 5, 19, (0.125, -1.0))
w2 = ramp([6, 4, 3, 2], 7, 31, (0.0625, -1.0))
g2 = ramp([4, 2, 2, 3], 7, 31, (0.0625, -1.0))
w3 = ramp([3, 2, 2, 3, 2], 5, 43, (0.0625, -1.25))
t1 = ramp([4, 3, 3], 5, 19, (0.125, -1.0))
t2 = ramp([4, 3, 3, 2], 7, 31, (0.0625, -1.0))
t3 = ramp([2, 2, 2, 2, 3], 5, 43, (0.0625, -1.25))
b6 = ramp([6], 3, 7, (0.5, -1.0))
b3 = ramp([3], 3, 7, (0.5, -1.0))
m4 = ramp([4], 5, 11, (0.25, -1.0))
v4 = ramp([4], 3, 7, (0.25, 0.5))
ties = ramp([1, 1, 4, 4], 3, 3, (1.0, 0.0))

def slope(y, x):
    q = torch.arange(y.numel(), dtype=torch.float32).reshape(y.shape) * 0.125 - 1
    return torch.autograd.grad((y * q).sum(), x)[0]

def moved(x, mean, var, **kw):
    mean, var = mean.clone(), var.clone()
    F.batch_norm(x, mean, var, training=True, **kw)
    return torch.cat([mean, var])

def leaf(x):
    return x.clone().requires_grad_()

lists = lambda e: re.sub(r"\{([^{}]*)\}", r"(\1,)", e).replace("true", "True").replace("false", "False")

cases = [
    # convolution
    "conv1d(s1, w1, b6, 1, 0, 1, 2)", "conv1d(s1, w1, b6, 2, 1, 2, 2)", 'conv1d(s1, w1, b6, 1, "same", 1, 2)',
    ("conv2d(s2, w2)", "F.conv2d(s2, w2)"), "conv2d(s2, w2, b6, {2, 1}, {1, 0}, {1, 2})", 'conv2d(s2, w2, b6, 1, "same", 2)',
    "conv2d(s2, g2, m4, 1, 1, 1, 2)", "conv2d(s2[0], w2, b6, 2)", "conv3d(s3, w3, b3, {1, 2, 1}, {1, 1, 0})",
    "conv_transpose1d(s1, t1, b3, 2, 1, 1)", "conv_transpose1d(s1, t1, b3, 1, 0, 2, 1, 3)",
    "conv_transpose2d(s2, t2, b6, 2, {1, 0}, {1, 0}, 2)", ("conv_transpose3d(s3, t3)", "F.conv_transpose3d(s3, t3)"),
    "conv_transpose3d(s3, t3, m4[{Slice{0, 2}}], {1, 2, 2}, 1, {0, 1, 1}, 1, {2, 1, 1})",
    # pooling
    "max_pool1d(s1, 3)", "max_pool1d(s1, 3, 2, 1, 2, true)", "max_pool2d(s2, 2)", "max_pool2d(s2, 3, 2, 1)",
    "max_pool2d(s2, {3, 2}, {2, 3}, {1, 0}, {1, 2}, true)", "max_pool2d(s2[0], 2, 1)", "max_pool3d(s3, 2, {1, 2, 2}, 1)",
    ("max_pool2d_with_indices(s2, 3, 2, 1).indices", "F.max_pool2d(s2, 3, 2, 1, return_indices=True)[1]"),
    ("max_pool2d_with_indices(s2, 2, {}, 0, 2, true).indices", "F.max_pool2d(s2, 2, None, 0, 2, True, True)[1]"),
    ("max_pool3d_with_indices(s3, 2).indices", "F.max_pool3d(s3, 2, return_indices=True)[1]"),
    "avg_pool1d(s1, 3)", "avg_pool1d(s1, 3, 2, 1, true, false)", "avg_pool2d(s2, 2)", "avg_pool2d(s2, 3, 2, 1)",
    "avg_pool2d(s2, {3, 2}, 2, {1, 0}, true)", "avg_pool2d(s2, {3, 2}, 2, 1, true, false)",
    "avg_pool2d(s2, 2, 2, 0, false, true, 3)", "avg_pool3d(s3, {2, 3, 2}, 2, 1, true)",
    "lp_pool1d(s1, 2.0, 3)", "lp_pool2d(p2, 3.0, 2, 1, true)", "lp_pool3d(s3, 2.0, 2, {1, 2, 2})",
    "adaptive_avg_pool1d(s1, 4)", "adaptive_avg_pool2d(s2, 3)", "adaptive_avg_pool2d(s2, {2, 7})", "adaptive_avg_pool2d(s2, 1)",
    "adaptive_avg_pool3d(s3, {2, 5, 4})", "adaptive_max_pool1d(s1, 4)", "adaptive_max_pool2d(s2, {4, 3})", "adaptive_max_pool3d(s3, 2)",
    # where a gradient goes
    ("slope(max_pool2d(q, 2, 1), q)", "slope(F.max_pool2d(q, 2, 1), q)"),
    ("slope(max_pool2d(q, 3, 2, 1), q)", "slope(F.max_pool2d(q, 3, 2, 1), q)"),
    ("slope(adaptive_avg_pool2d(q, 3), q)", "slope(F.adaptive_avg_pool2d(q, 3), q)"),
    # norms
    "batch_norm(s2, m4, v4)", "batch_norm(s2, m4, v4, v4, m4, false, 0.1, 1e-3)",
    ("batch_norm(s2, {}, {}, v4, m4, true)", "F.batch_norm(s2, None, None, v4, m4, True)"),
    ("batch_norm(s1, {}, {}, {}, {}, true)", "F.batch_norm(s1, None, None, training=True)"),
    ("moved(s2, m4, v4)", "moved(s2, m4, v4)"),
    "group_norm(s2, 2, v4, m4)", ("group_norm(s1, 4)", "F.group_norm(s1, 4)"),
    ("instance_norm(s2, {}, {}, v4, m4)", "F.instance_norm(s2, weight=v4, bias=m4)"),
    ("instance_norm(s1, m4, v4, {}, {}, false)", "F.instance_norm(s1, m4, v4, use_input_stats=False)"),
    "local_response_norm(s2, 3, 0.1, 0.5, 2.0)", ("local_response_norm(s1, 2)", "F.local_response_norm(s1, 2)"),
    # windows and sizes
    "unfold(s2, {2, 3}, 1, 1, 2)", "unfold(s2[0], 3, 2)", "fold(unfold(s2, 3, 1, 1), {6, 7}, 3, 1, 1)",
    "fold(unfold(s2, {2, 3}, {2, 1}, {1, 0}, {1, 2}), {6, 7}, {2, 3}, {2, 1}, {1, 0}, {1, 2})",
    ("interpolate(s1, {{5}})", "F.interpolate(s1, 5)"), ("interpolate(s2, {{}, {2.0}})", "F.interpolate(s2, scale_factor=2)"),
    ("interpolate(s2, {{9, 5}, {}, \"nearest-exact\"})", "F.interpolate(s2, (9, 5), mode='nearest-exact')"),
    ("interpolate(s2, {{}, {0.7, 1.6}})", "F.interpolate(s2, scale_factor=(0.7, 1.6))"),
    ("interpolate(s1, {{13}, {}, \"linear\"})", "F.interpolate(s1, 13, mode='linear')"),
    ("interpolate(s2, {{9, 5}, {}, \"bilinear\"})", "F.interpolate(s2, (9, 5), mode='bilinear')"),
    ("interpolate(s2, {{9, 5}, {}, \"bilinear\", true})", "F.interpolate(s2, (9, 5), mode='bilinear', align_corners=True)"),
    ("interpolate(s2, {{}, {1.5}, \"bilinear\"})", "F.interpolate(s2, scale_factor=1.5, mode='bilinear')"),
    ("interpolate(s2, {{9, 5}, {}, \"bicubic\"})", "F.interpolate(s2, (9, 5), mode='bicubic')"),
    ("interpolate(s2, {{4, 12}, {}, \"bicubic\", true})", "F.interpolate(s2, (4, 12), mode='bicubic', align_corners=True)"),
    ("interpolate(s3, {{3, 7, 5}, {}, \"trilinear\"})", "F.interpolate(s3, (3, 7, 5), mode='trilinear')"),
    ("interpolate(s2, {{3, 4}, {}, \"area\"})", "F.interpolate(s2, (3, 4), mode='area')"),
    ("pixel_shuffle(s2, 2)", "F.pixel_shuffle(s2, 2)"), ("pixel_unshuffle(p2, 3)", "F.pixel_unshuffle(p2, 3)"),
    ("channel_shuffle(s1, 2)", "F.channel_shuffle(s1, 2)"),
    # recurrent
    ("lstm(x3, h0, c0, lw, true, two).output", "torch.lstm(x3, (h0, c0), lw, True, 2, 0.0, False, True, False)[0]"),
    ("lstm(x3, h0, c0, lw, true, two).c", "torch.lstm(x3, (h0, c0), lw, True, 2, 0.0, False, True, False)[2]"),
    ("gru(x3, {}, gw, true, first).output", "torch.gru(x3, torch.zeros(1, 4, 2), gw, True, 1, 0.0, False, False, True)[0]"),
    ("gru(x3, {}, gw, true, first).h", "torch.gru(x3, torch.zeros(1, 4, 2), gw, True, 1, 0.0, False, False, True)[1]"),
    ("rnn(x3, {}, rw, false).output", "torch.rnn_tanh(x3, torch.zeros(1, 3, 3), rw, False, 1, 0.0, False, False, False)[0]"),
    ("lstm(x3, {}, {}, pw, true, packed).output", "packed(x3, pw)[0]"), ("lstm(x3, {}, {}, pw, true, packed).h", "packed(x3, pw)[1]"),
]

q = leaf(ties)
x3 = ramp([4, 3, 3], 7, 23, (0.125, -1.25))
h0, c0 = ramp([4, 3, 2], 5, 19, (0.125, -1.0)), ramp([4, 3, 2], 7, 17, (0.125, -1.0))
def rnn_weights(gates, h, ins):
    w = []
    for k, i in enumerate(ins):
        w += [ramp([gates * h, i], 5 + k, 19, (0.0625, -0.5)), ramp([gates * h, h], 7 + k, 17, (0.0625, -0.5)),
              ramp([gates * h], 3, 7, (0.125, -0.5)), ramp([gates * h], 5, 11, (0.125, -0.5))]
    return w
lw, gw, pw = rnn_weights(4, 2, [3, 3, 4, 4]), rnn_weights(3, 2, [3]), rnn_weights(4, 2, [3, 3])
rw = rnn_weights(1, 3, [3])[:2]

def packed(x, w):
    p = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2, 3], enforce_sorted=False)
    m = torch.nn.LSTM(3, 2, bidirectional=True)
    with torch.no_grad():
        for p0, v in zip(m._flat_weights, w):
            p0.copy_(v)
        y, (h, _) = m(p)
    return torch.nn.utils.rnn.pad_packed_sequence(y)[0], h
names = {torch.float32: "float32", torch.int64: "int64", torch.float16: "float16", torch.bool: "bool_"}

def number(v):
    v = float(v)
    if math.isnan(v): return "NAN"
    if math.isinf(v): return "INF" if v > 0 else "-INF"
    return repr(int(v)) if v == int(v) and abs(v) < 1e15 else repr(v)

def python(e):
    e = re.sub(r"\[\{Slice\{(\w+), (\w+)\}\}\]", r"[\1:\2]", e)
    return lists(e)

def main():
    print(f"// Written by golden.py with PyTorch {torch.__version__.split('+')[0]}. Do not edit.")
    for c in cases:
        cpp, py = c if isinstance(c, tuple) else (c, python(c))
        r = eval(py).detach()
        shape = ", ".join(map(str, r.shape))
        values = ", ".join(number(v) for v in r.flatten().tolist())
        print(f"GOLDEN(({cpp}), {names[r.dtype]}, (Dims{{{shape}}}), (V{{{values}}}))")

main()
