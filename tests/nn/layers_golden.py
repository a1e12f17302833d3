#!/usr/bin/env python3
"""Writes layers_golden.inc: what PyTorch's layers compute with the parameters and inputs that layers_golden_test.cpp makes too, and
the gradients. Run by hand, with PyTorch installed:
    python3 layers_golden.py > layers_golden.inc
A case: its C++ class and how it is made and called there; the same in Python. Each case also pins the names and shapes of state_dict()."""
import math
import sys

import torch
from torch import nn

f64 = torch.float64


def wave(shape, seed):
    n = math.prod(shape)
    return torch.tensor([math.sin(1.7 * k + 0.9 * seed + 0.5) for k in range(n)], dtype=f64).reshape(shape)


def x(shape, seed=0):
    return wave(shape, 100 + seed)


classes = torch.tensor([1, 3, 0])
causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
padding = torch.tensor([[False, False, False, True], [False, False, True, True], [False, False, False, False]])
cases = [
    # (C++ construction, C++ call of m, Python module, Python call)
    ("nn::Linear m(3, 2)", "m(x({4, 3}))", lambda: nn.Linear(3, 2), lambda m: m(x([4, 3]))),
    ("nn::LayerNorm m(Dims{3, 2})", "m(x({4, 3, 2}))", lambda: nn.LayerNorm([3, 2]), lambda m: m(x([4, 3, 2]))),
    ("nn::RMSNorm m(6, {.eps = 1e-3})", "m(x({4, 6}))", lambda: nn.RMSNorm(6, eps=1e-3), lambda m: m(x([4, 6]))),
    ("nn::MultiheadAttention m(6, 2)", "m(x({4, 3, 6}), x({4, 3, 6}, 1), x({4, 3, 6}, 2)).output",
     lambda: nn.MultiheadAttention(6, 2), lambda m: m(x([4, 3, 6]), x([4, 3, 6], 1), x([4, 3, 6], 2))[0]),
    ("nn::MultiheadAttention m(6, 2)", "m(x({4, 3, 6}), x({4, 3, 6}, 1), x({4, 3, 6}, 2), {.attn_mask = causal}).weights",
     lambda: nn.MultiheadAttention(6, 2), lambda m: m(x([4, 3, 6]), x([4, 3, 6], 1), x([4, 3, 6], 2), attn_mask=causal)[1]),
    ("nn::MultiheadAttention m(6, 2, {.bias = false, .batch_first = true})",
     "m(x({3, 4, 6}), x({3, 4, 6}, 1), x({3, 4, 6}, 2), {.key_padding_mask = padding, .attn_mask = causal}).output",
     lambda: nn.MultiheadAttention(6, 2, bias=False, batch_first=True),
     lambda m: m(x([3, 4, 6]), x([3, 4, 6], 1), x([3, 4, 6], 2), key_padding_mask=padding, attn_mask=causal)[0]),
    ("nn::MultiheadAttention m(6, 3, {.add_bias_kv = true, .add_zero_attn = true, .kdim = 4, .vdim = 5})",
     "m(x({2, 3, 6}), x({4, 3, 4}, 1), x({4, 3, 5}, 2), {.key_padding_mask = padding, .attn_mask = x({9, 2, 4}, 3)}).output",
     lambda: nn.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=5),
     lambda m: m(x([2, 3, 6]), x([4, 3, 4], 1), x([4, 3, 5], 2), key_padding_mask=padding, attn_mask=x([9, 2, 4], 3))[0]),
    ("nn::MultiheadAttention m(6, 2)", "m(x({4, 6}), x({4, 6}, 1), x({4, 6}, 2), {.average_attn_weights = false}).weights",
     lambda: nn.MultiheadAttention(6, 2), lambda m: m(x([4, 6]), x([4, 6], 1), x([4, 6], 2), average_attn_weights=False)[1]),
    ("nn::TransformerEncoderLayer m(6, 2, {.dim_feedforward = 8, .dropout = 0})", "m(x({4, 3, 6}), {.src_key_padding_mask = padding})",
     lambda: nn.TransformerEncoderLayer(6, 2, 8, 0.0), lambda m: m(x([4, 3, 6]), src_key_padding_mask=padding)),
    ('nn::TransformerEncoderLayer m(6, 2, {.dim_feedforward = 8, .dropout = 0, .activation = "gelu", .batch_first = true, '
     ".norm_first = true})", "m(x({3, 4, 6}), {.mask = causal, .is_causal = true})",
     lambda: nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True),
     lambda m: m(x([3, 4, 6]), src_mask=causal, is_causal=True)),
    ("nn::TransformerDecoderLayer m(6, 2, {.dim_feedforward = 8, .dropout = 0})", "m(x({4, 3, 6}), x({4, 3, 6}, 1), {.tgt_mask = causal, "
     ".memory_key_padding_mask = padding})",
     lambda: nn.TransformerDecoderLayer(6, 2, 8, 0.0),
     lambda m: m(x([4, 3, 6]), x([4, 3, 6], 1), tgt_mask=causal, memory_key_padding_mask=padding)),
    ("nn::TransformerDecoderLayer m(6, 2, {.dim_feedforward = 8, .dropout = 0, .norm_first = true, .bias = false})",
     "m(x({4, 3, 6}), x({2, 3, 6}, 1))",
     lambda: nn.TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=True, bias=False), lambda m: m(x([4, 3, 6]), x([2, 3, 6], 1))),
    ("nn::TransformerEncoder m(nn::TransformerEncoderLayer(6, 2, {.dim_feedforward = 8, .dropout = 0}), 2, nn::LayerNorm(6))",
     "m(x({4, 3, 6}))", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6)),
     lambda m: m(x([4, 3, 6]))),
    ("nn::Transformer m({.d_model = 6, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 2, .dim_feedforward = 8, .dropout = 0})",
     "m(x({4, 3, 6}), x({4, 3, 6}, 1), {.tgt_mask = nn::Transformer::generate_square_subsequent_mask(4, float64)})",
     lambda: nn.Transformer(6, 2, 1, 2, 8, 0.0),
     lambda m: m(x([4, 3, 6]), x([4, 3, 6], 1), tgt_mask=nn.Transformer.generate_square_subsequent_mask(4).to(f64))),
    ("nn::Conv1d m(4, 6, {.kernel_size = 3, .stride = 2, .padding = 1, .groups = 2})", "m(x({2, 4, 7}))",
     lambda: nn.Conv1d(4, 6, 3, 2, 1, groups=2), lambda m: m(x([2, 4, 7]))),
    ("nn::Conv2d m(2, 3, {.kernel_size = {3, 2}, .padding = {1, 0}, .dilation = 2})", "m(x({2, 2, 6, 5}))",
     lambda: nn.Conv2d(2, 3, (3, 2), padding=(1, 0), dilation=2), lambda m: m(x([2, 2, 6, 5]))),
    ('nn::Conv2d m(2, 3, {.kernel_size = 3, .padding = "same", .bias = false})', "m(x({2, 4, 5}))",
     lambda: nn.Conv2d(2, 3, 3, padding="same", bias=False), lambda m: m(x([2, 4, 5]))),
    ("nn::Conv3d m(2, 2, {.kernel_size = 2})", "m(x({1, 2, 3, 4, 3}))", lambda: nn.Conv3d(2, 2, 2), lambda m: m(x([1, 2, 3, 4, 3]))),
    ('nn::Conv1d m(2, 2, {.kernel_size = 3, .padding = 2, .padding_mode = "circular"})', "m(x({2, 2, 5}))",
     lambda: nn.Conv1d(2, 2, 3, padding=2, padding_mode="circular"), lambda m: m(x([2, 2, 5]))),
    ('nn::Conv2d m(1, 2, {.kernel_size = 3, .padding = {2, 1}, .padding_mode = "reflect"})', "m(x({2, 1, 4, 5}))",
     lambda: nn.Conv2d(1, 2, 3, padding=(2, 1), padding_mode="reflect"), lambda m: m(x([2, 1, 4, 5]))),
    ('nn::Conv2d m(1, 2, {.kernel_size = 3, .padding = {2, 1}, .padding_mode = "replicate"})', "m(x({2, 1, 4, 5}))",
     lambda: nn.Conv2d(1, 2, 3, padding=(2, 1), padding_mode="replicate"), lambda m: m(x([2, 1, 4, 5]))),
    ("nn::ConvTranspose1d m(2, 4, {.kernel_size = 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2})", "m(x({2, 2, 4}))",
     lambda: nn.ConvTranspose1d(2, 4, 3, 2, 1, 1, 2), lambda m: m(x([2, 2, 4]))),
    ("nn::ConvTranspose2d m(2, 3, {.kernel_size = {2, 3}, .stride = 2, .bias = false})", "m(x({2, 2, 3, 2}))",
     lambda: nn.ConvTranspose2d(2, 3, (2, 3), 2, bias=False), lambda m: m(x([2, 2, 3, 2]))),
    ("nn::ConvTranspose3d m(1, 2, {.kernel_size = 2})", "m(x({1, 1, 2, 3, 2}))", lambda: nn.ConvTranspose3d(1, 2, 2),
     lambda m: m(x([1, 1, 2, 3, 2]))),
    ("nn::BatchNorm1d m(3)", "m(x({4, 3}))", lambda: nn.BatchNorm1d(3), lambda m: m(x([4, 3]))),
    ("nn::BatchNorm1d m(3, {.eps = 1e-3, .momentum = 0.3, .affine = false})", "m(x({4, 3, 5}))",
     lambda: nn.BatchNorm1d(3, 1e-3, 0.3, affine=False), lambda m: m(x([4, 3, 5]))),
    ("nn::BatchNorm2d m(2); m.eval()", "m(x({3, 2, 2, 2}))", lambda: nn.BatchNorm2d(2).eval(), lambda m: m(x([3, 2, 2, 2]))),
    ("nn::BatchNorm2d m(2, {.momentum = {}})", "(m(x({3, 2, 2, 2})), m(x({3, 2, 2, 2}, 1)))", lambda: nn.BatchNorm2d(2, momentum=None),
     lambda m: (m(x([3, 2, 2, 2])), m(x([3, 2, 2, 2], 1)))[1]),
    ("nn::BatchNorm3d m(2, {.track_running_stats = false})", "m(x({3, 2, 2, 1, 2}))",
     lambda: nn.BatchNorm3d(2, track_running_stats=False), lambda m: m(x([3, 2, 2, 1, 2]))),
    ("nn::Sequential m(nn::Conv2d(1, 2, {.kernel_size = 3}), nn::MaxPool2d(2), nn::AvgPool2d(2, {.stride = 1, .padding = 1}), "
     "nn::AdaptiveAvgPool2d({2, 1}))", "m(x({2, 1, 8, 8}))",
     lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.AvgPool2d(2, 1, 1), nn.AdaptiveAvgPool2d((2, 1))), lambda m: m(x([2, 1, 8, 8]))),
    ("nn::Sequential m(nn::Conv1d(1, 2, {.kernel_size = 3}), nn::LPPool1d(3, 2), nn::AdaptiveMaxPool1d(2))", "m(abs(x({2, 1, 10})))",
     lambda: nn.Sequential(nn.Conv1d(1, 2, 3), nn.LPPool1d(3, 2), nn.AdaptiveMaxPool1d(2)), lambda m: m(abs(x([2, 1, 10])))),
    ("nn::GroupNorm m(2, 4, {.eps = 1e-3})", "m(x({3, 4, 2, 2}))", lambda: nn.GroupNorm(2, 4, 1e-3), lambda m: m(x([3, 4, 2, 2]))),
    ("nn::InstanceNorm2d m(2, {.affine = true})", "m(x({3, 2, 2, 2}))", lambda: nn.InstanceNorm2d(2, affine=True), lambda m: m(x([3, 2, 2, 2]))),
    ("nn::InstanceNorm1d m(2, {.momentum = 0.3, .affine = true, .track_running_stats = true})", "m(x({3, 2, 4}))",
     lambda: nn.InstanceNorm1d(2, momentum=0.3, affine=True, track_running_stats=True), lambda m: m(x([3, 2, 4]))),
    ("nn::InstanceNorm1d m(2, {.affine = true, .track_running_stats = true}); m.eval()", "m(x({3, 2, 4}))",
     lambda: nn.InstanceNorm1d(2, affine=True, track_running_stats=True).eval(), lambda m: m(x([3, 2, 4]))),
    ("nn::Sequential m(nn::Conv1d(1, 2, {.kernel_size = 1}), nn::Upsample({.scale_factor = {1.7}}))", "m(x({2, 1, 5}))",
     lambda: nn.Sequential(nn.Conv1d(1, 2, 1), nn.Upsample(scale_factor=1.7)), lambda m: m(x([2, 1, 5]))),
    ('nn::Sequential m(nn::Conv2d(1, 2, {.kernel_size = 1}), nn::Upsample({.size = {7, 3}, .mode = "bilinear"}))', "m(x({2, 1, 4, 5}))",
     lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Upsample((7, 3), mode="bilinear")), lambda m: m(x([2, 1, 4, 5]))),
    ('nn::Sequential m(nn::Conv2d(1, 2, {.kernel_size = 1}), nn::Upsample({.scale_factor = {2, 3}, .mode = "bilinear", .align_corners = true}))',
     "m(x({2, 1, 3, 2}))",
     lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Upsample(scale_factor=(2, 3), mode="bilinear", align_corners=True)), lambda m: m(x([2, 1, 3, 2]))),
    ("nn::Sequential m(nn::Conv2d(1, 8, {.kernel_size = 1}), nn::PixelShuffle(2), nn::PixelUnshuffle(3))", "m(x({2, 1, 3, 6}))",
     lambda: nn.Sequential(nn.Conv2d(1, 8, 1), nn.PixelShuffle(2), nn.PixelUnshuffle(3)), lambda m: m(x([2, 1, 3, 6]))),
    ("nn::RNN m(3, 4, {.num_layers = 2, .bidirectional = true})", "m(x({5, 2, 3})).output", lambda: nn.RNN(3, 4, 2, bidirectional=True),
     lambda m: m(x([5, 2, 3]))[0]),
    ('nn::RNN m(3, 4, {.nonlinearity = "relu", .bias = false, .batch_first = true})', "m(x({2, 5, 3}), x({1, 2, 4}, 1)).h_n",
     lambda: nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), lambda m: m(x([2, 5, 3]), x([1, 2, 4], 1))[1]),
    ("nn::LSTM m(3, 4, {.num_layers = 2, .batch_first = true})", "m(x({2, 5, 3})).output", lambda: nn.LSTM(3, 4, 2, batch_first=True),
     lambda m: m(x([2, 5, 3]))[0]),
    ("nn::LSTM m(3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2})", "m(x({5, 2, 3}), x({4, 2, 2}, 1), x({4, 2, 4}, 2)).c_n",
     lambda: nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), lambda m: m(x([5, 2, 3]), (x([4, 2, 2], 1), x([4, 2, 4], 2)))[1][1]),
    ("nn::LSTM m(3, 4)", "m(x({5, 3})).output", lambda: nn.LSTM(3, 4), lambda m: m(x([5, 3]))[0]),
    ("nn::GRU m(3, 4, {.num_layers = 2, .bidirectional = true})", "m(x({5, 2, 3}), x({4, 2, 4}, 1)).output",
     lambda: nn.GRU(3, 4, 2, bidirectional=True), lambda m: m(x([5, 2, 3]), x([4, 2, 4], 1))[0]),
    ("nn::RNNCell m(3, 4)", "m(x({2, 3}), x({2, 4}, 1))", lambda: nn.RNNCell(3, 4), lambda m: m(x([2, 3]), x([2, 4], 1))),
    ("nn::GRUCell m(3, 4)", "m(x({2, 3}))", lambda: nn.GRUCell(3, 4), lambda m: m(x([2, 3]))),
    ("nn::LSTMCell m(3, 4, {.bias = false})", "m(x({2, 3}), x({2, 4}, 1), x({2, 4}, 2)).second", lambda: nn.LSTMCell(3, 4, bias=False),
     lambda m: m(x([2, 3]), (x([2, 4], 1), x([2, 4], 2)))[1]),
    ("nn::Sequential m(nn::Linear(4, 4), nn::ReLU6())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU6()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Mish())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Mish()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Softsign())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Softsign()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Hardswish())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardswish()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Hardsigmoid())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardsigmoid()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::LogSigmoid())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.LogSigmoid()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Tanhshrink())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanhshrink()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::SELU())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.SELU()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::ELU(0.7))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.ELU(0.7)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::CELU(0.7))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.CELU(0.7)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Softplus(2))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Softplus(2)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Hardshrink())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardshrink()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Softshrink())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Softshrink()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Hardtanh(-0.2, 0.4))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardtanh(-0.2, 0.4)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Threshold(0.1, 2))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Threshold(0.1, 2)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::GLU())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.GLU()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Softmin(1))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Softmin(1)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::PReLU())", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU()), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::PReLU({.num_parameters = 3}))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU(3)), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Linear m(4, 4)", "nn::CrossEntropyLoss({.label_smoothing = 0.2})(m(x({3, 4})), classes)", lambda: nn.Linear(4, 4), lambda m: nn.CrossEntropyLoss(label_smoothing=0.2)(m(x([3, 4])), classes)),
    ("nn::Linear m(4, 4)", "nn::MSELoss()(m(x({3, 4})), x({3, 4}, 1))", lambda: nn.Linear(4, 4), lambda m: nn.MSELoss()(m(x([3, 4])), x([3, 4], 1))),
    ("nn::Linear m(4, 4)", "nn::L1Loss({.reduction = \"sum\"})(m(x({3, 4})), x({3, 4}, 1))", lambda: nn.Linear(4, 4), lambda m: nn.L1Loss(reduction="sum")(m(x([3, 4])), x([3, 4], 1))),
    ("nn::Linear m(4, 4)", "nn::SmoothL1Loss({.beta = 0.5})(m(x({3, 4})), x({3, 4}, 1))", lambda: nn.Linear(4, 4), lambda m: nn.SmoothL1Loss(beta=0.5)(m(x([3, 4])), x([3, 4], 1))),
    ("nn::Linear m(4, 4)", "nn::HuberLoss({.reduction = \"none\", .delta = 0.7})(m(x({3, 4})), x({3, 4}, 1))", lambda: nn.Linear(4, 4), lambda m: nn.HuberLoss("none", 0.7)(m(x([3, 4])), x([3, 4], 1))),
    ("nn::Linear m(4, 4)", "nn::BCEWithLogitsLoss()(m(x({3, 4})), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4), lambda m: nn.BCEWithLogitsLoss()(m(x([3, 4])), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::BCEWithLogitsLoss({.pos_weight = x({4}, 2) + 2.0})(m(x({3, 4})), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4), lambda m: nn.BCEWithLogitsLoss(pos_weight=x([4], 2) + 2.0)(m(x([3, 4])), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::KLDivLoss({.reduction = \"batchmean\"})(m(x({3, 4})), relu(x({3, 4}, 1)))", lambda: nn.Linear(4, 4), lambda m: nn.KLDivLoss(reduction="batchmean")(m(x([3, 4])), torch.relu(x([3, 4], 1)))),
    ("nn::Linear m(4, 4)", "nn::KLDivLoss({.log_target = true})(m(x({3, 4})), x({3, 4}, 1))", lambda: nn.Linear(4, 4), lambda m: nn.KLDivLoss(log_target=True)(m(x([3, 4])), x([3, 4], 1))),
    ("nn::Linear m(4, 4)", "nn::BCELoss()(sigmoid(m(x({3, 4}))), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4),
     lambda m: nn.BCELoss()(torch.sigmoid(m(x([3, 4]))), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::NLLLoss()(log_softmax(m(x({3, 4})), 1), classes)", lambda: nn.Linear(4, 4),
     lambda m: nn.NLLLoss()(torch.log_softmax(m(x([3, 4])), 1), classes)),
    ("nn::RNNCell m(3, 4, {.nonlinearity = \"relu\"})", "m(x({3}), x({4}, 1))", lambda: nn.RNNCell(3, 4, nonlinearity="relu"),
     lambda m: m(x([3]), x([4], 1))),
    ("nn::LSTM m(3, 4, {.batch_first = true, .proj_size = 2})", "m(x({2, 5, 3})).output", lambda: nn.LSTM(3, 4, batch_first=True, proj_size=2),
     lambda m: m(x([2, 5, 3]))[0]),
    ("nn::Sequential m(nn::Linear(4, 4), nn::RReLU(0.1, 0.4)); m.eval()", "m(x({2, 3, 4}) * 3.0)",
     lambda: nn.Sequential(nn.Linear(4, 4), nn.RReLU(0.1, 0.4)).eval(), lambda m: m(x([2, 3, 4]) * 3.0)),
    ("nn::Sequential m(nn::Linear(4, 4), nn::Softplus(2, 1))", "m(x({2, 3, 4}) * 3.0)", lambda: nn.Sequential(nn.Linear(4, 4), nn.Softplus(2, 1)),
     lambda m: m(x([2, 3, 4]) * 3.0)),
    ('nn::Sequential m(nn::Conv1d(1, 2, {.kernel_size = 1}), nn::Upsample({.scale_factor = {1.7}, .mode = "nearest-exact"}))', "m(x({2, 1, 5}))",
     lambda: nn.Sequential(nn.Conv1d(1, 2, 1), nn.Upsample(scale_factor=1.7, mode="nearest-exact")), lambda m: m(x([2, 1, 5]))),
    ('nn::Sequential m(nn::Conv2d(1, 2, {.kernel_size = 1}), nn::Upsample({.scale_factor = {2, 1.5}, .mode = "bicubic"}))', "m(x({1, 1, 3, 4}))",
     lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Upsample(scale_factor=(2, 1.5), mode="bicubic")), lambda m: m(x([1, 1, 3, 4]))),
    ("nn::Linear m(4, 4)", "nn::CrossEntropyLoss({.weight = x({4}, 2) + 2.0, .ignore_index = 3, .label_smoothing = 0.1})(m(x({3, 4})), classes)", lambda: nn.Linear(4, 4),
     lambda m: nn.CrossEntropyLoss(weight=x([4], 2) + 2.0, ignore_index=3, label_smoothing=0.1)(m(x([3, 4])), classes)),
    ("nn::Linear m(4, 4)", "nn::NLLLoss({.weight = x({4}, 2) + 2.0})(log_softmax(m(x({3, 4})), 1), classes)", lambda: nn.Linear(4, 4),
     lambda m: nn.NLLLoss(weight=x([4], 2) + 2.0)(torch.log_softmax(m(x([3, 4])), 1), classes)),
    ("nn::Linear m(4, 4)", "nn::BCELoss({.weight = x({4}, 2) + 2.0, .reduction = \"sum\"})(sigmoid(m(x({3, 4}))), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4),
     lambda m: nn.BCELoss(weight=x([4], 2) + 2.0, reduction="sum")(torch.sigmoid(m(x([3, 4]))), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::BCEWithLogitsLoss({.weight = x({4}, 2) + 2.0, .pos_weight = x({4}, 3) + 1.5})(m(x({3, 4})), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4),
     lambda m: nn.BCEWithLogitsLoss(weight=x([4], 2) + 2.0, pos_weight=x([4], 3) + 1.5)(m(x([3, 4])), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::MultiLabelSoftMarginLoss({.weight = x({4}, 2) + 2.0})(m(x({3, 4})), x({3, 4}, 1) * 0.5 + 0.5)", lambda: nn.Linear(4, 4),
     lambda m: nn.MultiLabelSoftMarginLoss(weight=x([4], 2) + 2.0)(m(x([3, 4])), x([3, 4], 1) * 0.5 + 0.5)),
    ("nn::Linear m(4, 4)", "nn::SoftMarginLoss()(m(x({3, 4})), sign(x({3, 4}, 1)))", lambda: nn.Linear(4, 4),
     lambda m: nn.SoftMarginLoss()(m(x([3, 4])), torch.sign(x([3, 4], 1)))),
    ("nn::Linear m(4, 4)", "nn::PoissonNLLLoss({.full = true})(m(x({3, 4})), abs(x({3, 4}, 1)) * 4.0)", lambda: nn.Linear(4, 4),
     lambda m: nn.PoissonNLLLoss(full=True)(m(x([3, 4])), abs(x([3, 4], 1)) * 4.0)),
    ("nn::Linear m(4, 4)", "nn::HingeEmbeddingLoss({.margin = 0.4})(m(x({3, 4})), sign(x({3, 4}, 1)))", lambda: nn.Linear(4, 4),
     lambda m: nn.HingeEmbeddingLoss(margin=0.4)(m(x([3, 4])), torch.sign(x([3, 4], 1)))),
    ("nn::Linear m(4, 4)", "nn::MarginRankingLoss({.margin = 0.2})(m(x({3, 4})), x({3, 4}, 1), sign(x({3, 4}, 2)))", lambda: nn.Linear(4, 4),
     lambda m: nn.MarginRankingLoss(margin=0.2)(m(x([3, 4])), x([3, 4], 1), torch.sign(x([3, 4], 2)))),
    ("nn::Linear m(4, 4)", "nn::CosineEmbeddingLoss({.margin = 0.1})(m(x({3, 4})), x({3, 4}, 1), tensor({1, -1, -1}))", lambda: nn.Linear(4, 4),
     lambda m: nn.CosineEmbeddingLoss(margin=0.1)(m(x([3, 4])), x([3, 4], 1), torch.tensor([1, -1, -1]))),
    ("nn::Linear m(4, 4)", "nn::TripletMarginLoss({.margin = 2, .p = 3, .swap = true})(m(x({3, 4})), x({3, 4}, 1), x({3, 4}, 2))", lambda: nn.Linear(4, 4),
     lambda m: nn.TripletMarginLoss(margin=2, p=3, swap=True)(m(x([3, 4])), x([3, 4], 1), x([3, 4], 2))),
    ("nn::Linear m(4, 4)", "nn::GaussianNLLLoss({.full = true})(m(x({3, 4})), x({3, 4}, 1), abs(x({3, 4}, 2)) + 0.1)", lambda: nn.Linear(4, 4),
     lambda m: nn.GaussianNLLLoss(full=True)(m(x([3, 4])), x([3, 4], 1), abs(x([3, 4], 2)) + 0.1)),
]


def numbers(v):
    return "(V{" + ", ".join(f"{float(a):.17g}" for a in v) + "})"


print(f"// Written by layers_golden.py with PyTorch {torch.__version__.split('+')[0]}. Do not edit.")
for cpp, call, make, run in cases:
    m = make().to(f64)
    with torch.no_grad():
        for i, (name, t) in enumerate(m.state_dict().items()):
            if t.is_floating_point():
                t.copy_(wave(t.shape, i) * 0.5 + (1.5 if "running_var" in name else 0))
    y = run(m)
    if y.requires_grad:
        (y * wave(y.shape, 55)).sum().backward()
    names = "; ".join(f"{n} {list(t.shape)}" for n, t in m.state_dict().items())
    grads = [(p.grad * wave(p.shape, 77)).sum() if p.grad is not None else 0.0 for p in m.parameters()]
    print(f'LAYER(({cpp}), ({call}), "{names}",\n      {numbers(y.flatten())},\n      {numbers(grads)})')
    after = [t for n, t in m.state_dict().items() if "running" in n]
    if after:
        print(f"AFTER({numbers(torch.cat([t.flatten() for t in after]))})")
    sys.stdout.flush()
