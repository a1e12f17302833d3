#!/usr/bin/env python3
"""Writes golden.inc: what PyTorch says of each case of golden_test.cpp. Run by hand, with PyTorch installed:
    python3 golden.py > golden.inc
A case is one expression that both languages understand, or a pair (C++, Python)."""
from golden_common import write

cases = [
    # one operand
    "neg(x)", "abs(x)", "sign(x)", "exp(x)", "exp2(x)", "expm1(x)", "log(p)", "log2(p)", "log10(p)", "log1p(p)", "sqrt(p)",
    "rsqrt(p)", "reciprocal(p)", "square(x)", "sin(x)", "cos(x)", "tan(x)", "asin(x / 8)", "acos(x / 8)", "atan(x)", "sinh(x)",
    "cosh(x)", "tanh(x)", "erf(x)", "erfc(x)", "sigmoid(x)", "relu(x)", "floor(x)", "ceil(x)", "round(x)", "trunc(x)",
    "isnan(x / 0)", "isinf(x / 0)", "isfinite(x / 0)", "logical_not(k)", "bitwise_not(k)", "exp(k)", "floor(k)", "-x", "~m",
    ("!m", "~m"), ("gelu(x)", "F.gelu(x)"), ('gelu(x, "tanh")', 'F.gelu(x, approximate="tanh")'),
    ("silu(x)", "F.silu(x)"), ("softplus(x)", "F.softplus(x)"), ("leaky_relu(x)", "F.leaky_relu(x)"),
    ("gelu(h)", "F.gelu(h)"), "abs(k)", "sign(k)",
    # two operands, types
    "x + y", "x - y", "x * y", "x / y", "x + 1", "1 - x", "2 * x", "1 / p", "k / j", "k / 2", "k + 1.5", "k + j", "k * 2", "m + 1",
    "m + m", "m * m", "x + z", "k + z", "x % 0.75", "k % j", "k % 3", "k & j", "k | j", "k ^ j", "x + r", "x < y", "x <= 0", "0 < x",
    "x == y", "x != y", "x >= r", "h + z", "h + x", "h * 2", ("k.to(int32) + k.to(int16)", "k.to(i32) + k.to(i16)"),
    ("k.to(int8) + j.to(uint8)", "k.to(i8) + j.to(u8)"), ("h + h.to(bfloat16)", "h + h.to(bf16)"),
    "pow(x, 2)", "pow(x, 3)", "pow(p, 0.5)", "pow(p, -0.5)", "pow(p, -1)", "pow(x, 0)", "pow(x, 1)", "pow(p, y)", "pow(p, 1.7)", "pow(k, 2)",
    "pow(j, 2.5)", "pow(2.0, x)", "pow(k, 5)", "maximum(x, y)", "minimum(x, y)", "atan2(x, y)", "fmod(x, 0.75)", "remainder(x, y + 0.1)",
    "floor_divide(k, j)", "floor_divide(x, 0.75)", "fmod(k, j)", "logical_and(x, k)", "logical_or(x, k)", "logical_xor(x, k)",
    "bitwise_left_shift(j, 2)", "bitwise_right_shift(k, 1)", "where(m, x, y)", "where(m, x, 0.0)", "where(m, 1, 0)", "where(m, k, x)",
    ("clamp(x, -1, 1)", "torch.clamp(x, -1.0, 1.0)"), "clamp(x, y, y + 1)", "clamp(k, 0, 3)", "x.clamp_min(0.5)", "x.clamp_max(0.5)",
    "x.masked_fill(m, 9)",
    # reductions
    "sum(x)", "sum(x, 0)", "sum(x, -1, true)", "sum(c, {0, 2})", "sum(k)", "sum(m)", "sum(m, 1)", "mean(x)", "mean(x, 1)", "mean(c, {1, 2}, true)",
    "mean(h, 0)", "sum(h)", "prod(p, 0)", "prod(k)", "prod(m)", "var(x)", ("var(x, 1)", "torch.var(x, 1)"),
    ("var(x, 1, 0)", "torch.var(x, 1, correction=0)"), ("ingot::std(x, 0, 1, true)", "torch.std(x, 0, correction=1, keepdim=True)"),
    "amax(x)", "amax(x, 0)", "amin(x, {0, 1}, true)", "amax(k, 1)", "max(x)", "min(x)", ("max(x, 1).values", "torch.max(x, 1).values"),
    ("max(x, 1).indices", "torch.max(x, 1).indices"), ("min(x, 0, true).values", "torch.min(x, 0, True).values"),
    ("min(k, 0).indices", "torch.min(k, 0).indices"), "argmax(x)", "argmin(x)", "argmax(x, 1)", "argmin(x, 0, true)", "any(m)", "any(m, 0)", "all(m, 1)",
    "all(m)", "any(k)", "logsumexp(x, 1)", "logsumexp(c, {0, 2})", "norm(x)", "sum(e, 0)", "sum(e)", "prod(e, 0)", "any(e)", "all(e)", "mean(e, 0)",
    ("logsumexp(x * INF, 1)", "torch.logsumexp(x * math.inf, 1)"),
    # movement
    ("reshape(c, {6, -1})", "c.reshape(6, -1)"), ("c.view(-1)", "c.view(-1)"), "flatten(c)", "flatten(c, 1)", "c.unsqueeze(1)", "c.unsqueeze(-1)",
    "c.unsqueeze(1).squeeze(1)", "c.unsqueeze(0).squeeze()", ("permute(c, {2, 0, 1})", "c.permute(2, 0, 1)"), "transpose(c, 0, -1)", "t(x)",
    ("expand(r, {3, -1})", "r.expand(3, 4)"), ("repeat(x, {2, 1, 3})", "x.repeat(2, 1, 3)"), "narrow(c, 2, 1, 2)", "select(c, 1, -1)",
    ("flip(c, {0, 2})", "c.flip(0, 2)"), ("roll(c, 3, 2)", "torch.roll(c, 3, 2)"), ("roll(c, -1, 1)", "torch.roll(c, -1, 1)"),
    ("pad(x, {1, 2}, 9.0)", "F.pad(x, (1, 2), value=9.0)"), ("pad(c, {1, 0, 2, 1})", "F.pad(c, (1, 0, 2, 1))"), ("pad(x, {-1, 2})", "F.pad(x, (-1, 2))"),
    ("pad(k, {0, 1}, 7)", "F.pad(k, (0, 1), value=7)"),
    "cat({x, y}, 0)".replace("{", "{"), ("cat({x, p * INF, y}, 1)", "torch.cat([x, p * math.inf, y], 1)"), ("cat({k, x})", "torch.cat([k, x])"),
    ("cat({x, e, y})", "torch.cat([x, e, y])"), ("stack({x, y}, 1)", "torch.stack([x, y], 1)"), ("stack({z, z})", "torch.stack([z, z])"),
    ("split(c, 3, 2)[1]", "torch.split(c, 3, 2)[1]"), ("split(c, {1, 3}, 2)[1]", "torch.split(c, [1, 3], 2)[1]"), ("chunk(c, 3, 2)[1]", "torch.chunk(c, 3, 2)[1]"),
    "tril(x)", "triu(c, 1)", "tril(k, -1)",
    ("x[1]", "x[1]"), ("x[{1, 2}]", "x[1, 2]"), ("c[{Ellipsis, 1}]", "c[..., 1]"), ("c[{1, Slice{1, 3}}]", "c[1, 1:3]"),
    ("c[{Slice{}, Slice{{}, {}, 2}}]", "c[:, ::2]"), ("c[{NewAxis, 0, NewAxis}]", "c[None, 0, None]"), ("c[{0, Ellipsis, Slice{-2}}]", "c[0, ..., -2:]"),
    ("x[{Slice{5, 9}}]", "x[5:9]"),
    # creation
    ("arange(5)", "torch.arange(5)"), ("arange(2, 9, 3)", "torch.arange(2, 9, 3)"), ("arange(5, 0, -2)", "torch.arange(5, 0, -2)"),
    ("arange(0.0, 1.0, 0.1)", "torch.arange(0.0, 1.0, 0.1)"), ("arange(3, float32)", "torch.arange(3, dtype=f32)"),
    ("linspace(-1, 2, 7)", "torch.linspace(-1, 2, 7)"), ("linspace(3, 4, 1)", "torch.linspace(3, 4, 1)"), ("eye(3)", "torch.eye(3)"), ("eye(2, 4, int64)", "torch.eye(2, 4, dtype=i64)"),
    ("zeros({2, 0})", "torch.zeros(2, 0)"), ("full({2}, 3)", "torch.full([2], 3)"), ("full({2}, true)", "torch.full([2], True)"), ("ones_like(k)", "torch.ones_like(k)"),
    ("full_like(k, 2.7)", "torch.full_like(k, 2.7)"), ("tensor({1, 2})", "torch.tensor([1, 2])"), ("tensor({1.5, 2.0})", "torch.tensor([1.5, 2.0])"),
    ("tensor({{1, 2}, {3, 4}})", "torch.tensor([[1, 2], [3, 4]])"), ("tensor({true, false})", "torch.tensor([True, False])"), ("tensor({1, 2.5})", "torch.tensor([1, 2.5])"),
    ("tensor(3)", "torch.tensor(3)"), ("tensor({{{1}, {2}}})", "torch.tensor([[[1], [2]]])"), ("tensor({1.9}, int64)", "torch.tensor([1.9]).to(i64)"),
    # contraction
    ("matmul(r, r)", "r @ r"), ("matmul(x, r)", "x @ r"), ("matmul(r, w.t())", "r @ w.t()"), ("matmul(x, w.t())", "x @ w.t()"), ("matmul(c, w.t())", "c @ w.t()"),
    ("matmul(c, r)", "c @ r"), ("matmul(x, c.transpose(1, 2))", "x @ c.transpose(1, 2)"), ("matmul(r, c.transpose(1, 2))", "r @ c.transpose(1, 2)"),
    ("matmul(c, c.transpose(1, 2))", "c @ c.transpose(1, 2)"), ("matmul(c.unsqueeze(1), c.transpose(1, 2))", "c.unsqueeze(1) @ c.transpose(1, 2)"),
    ("matmul(k, j.t())", "k @ j.t()"), ("matmul(e, w.t())", "e @ w.t()"), ("matmul(e.t(), e)", "e.t() @ e"),
    ("linear(c, w)", "F.linear(c, w)"), ("linear(x, w, arange(5, float32))", "F.linear(x, w, torch.arange(5, dtype=f32))"), ("linear(r, w)", "F.linear(r, w)"),
    # index
    "gather(x, 0, idx)", ("gather(x, 1, idx)", "torch.gather(x, 1, idx)"), ("embedding(w, idx)", "F.embedding(idx, w)"),
    ("index_select(x, 1, lab)", "torch.index_select(x, 1, lab)"), ("one_hot(lab, 4)", "F.one_hot(lab, 4)"),
    ("scatter_add_zeros({3, 4}, 0, idx, x[Slice{0, 2}])", "torch.zeros(3, 4).scatter_add(0, idx, x[0:2])"),
    # networks
    "softmax(x, 1)", "softmax(c, 0)", "softmax(h, -1)", "log_softmax(x, 1)", "log_softmax(c, 1)",
    ("layer_norm(c, {4})", "F.layer_norm(c, [4])"), ("layer_norm(c, {3, 4}, x, y, 1e-3)", "F.layer_norm(c, [3, 4], x, y, 1e-3)"), ("layer_norm(h, {4})", "F.layer_norm(h, [4])"),
    ("rms_norm(c, {4}, r)", "F.rms_norm(c, [4], r)"), ("rms_norm(c, {3, 4}, x, 1e-2)", "F.rms_norm(c, [3, 4], x, 1e-2)"),
    ("cross_entropy(x, lab)", "F.cross_entropy(x, lab)"), ("cross_entropy(x, lab, {.reduction = \"none\"})", "F.cross_entropy(x, lab, reduction='none')"),
    ("cross_entropy(x, lab, {.ignore_index = 3})", "F.cross_entropy(x, lab, ignore_index=3)"),
    ("cross_entropy(x, lab, {.ignore_index = 3, .label_smoothing = 0.2})", "F.cross_entropy(x, lab, ignore_index=3, label_smoothing=0.2)"),
    ("cross_entropy(x, lab, {.reduction = \"sum\", .label_smoothing = 0.1})", "F.cross_entropy(x, lab, reduction='sum', label_smoothing=0.1)"),
    ("cross_entropy(r, tensor(2))", "F.cross_entropy(r, torch.tensor(2))"), ("cross_entropy(c, idx % 3)", "F.cross_entropy(c, idx % 3)"),
    ("cross_entropy(h, lab)", "F.cross_entropy(h, lab)"),
    ("nll_loss(x, lab)", "F.nll_loss(x, lab)"), ("mse_loss(x, y)", "F.mse_loss(x, y)"), ("mse_loss(x, y, \"sum\")", "F.mse_loss(x, y, reduction='sum')"),
    ("scaled_dot_product_attention(c, c, c)", "F.scaled_dot_product_attention(c, c, c)"),
    ("scaled_dot_product_attention(c, c, c, {.is_causal = true})", "F.scaled_dot_product_attention(c, c, c, is_causal=True)"),
    ("scaled_dot_product_attention(c, c + 1, c, {.mask = idx[{Slice{0, 1}, Slice{0, 3}}] > 0, .scale = 0.3})",
     "F.scaled_dot_product_attention(c, c + 1, c, attn_mask=(idx[0:1, 0:3] > 0), scale=0.3)"),
    ("dropout(x, 0.5, false)", "F.dropout(x, 0.5, False)"), ("dropout(x, 1.0)", "F.dropout(x, 1.0)"),
]

write("golden.py", cases, {})
