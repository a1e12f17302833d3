#!/usr/bin/env python3
"""Writes golden_FAMILY.inc: what PyTorch says of each case of a family. Run by hand, with PyTorch installed:
    python3 golden_ops.py FAMILY > golden_FAMILY.inc      (elementwise, special, arrange, loss, linalg)
A case is one expression that both languages understand, or a pair (C++, Python)."""
import sys

import torch
import torch.nn.functional as F
from golden_common import *


def f(cpp):
    """A function of torch.nn.functional."""
    return (cpp, "F." + cpp)


elementwise = [
    "asinh(x)", "acosh(p + 1)", "atanh(x / 3)", "erfinv(x / 3)", "lgamma(p)", "lgamma(x)", "digamma(p)", "digamma(x + 0.1)", "polygamma(1, p)",
    "polygamma(2, p)", "polygamma(3, x + 0.1)", "logit(p / 4)", "logit(p / 4, 0.3)", "frac(x)", "sinc(x)", ("round(x, 1)", "torch.round(x, decimals=1)"),
    ("round(x * 100, -1)", "torch.round(x * 100, decimals=-1)"), "signbit(x)", "signbit(k)", "isposinf(x / 0)", "isneginf(x / 0)", "isposinf(k)",
    "deg2rad(x)", "rad2deg(x)", "deg2rad(k)", "nan_to_num(x)", "nan_to_num(x / 0)", "nan_to_num(h / 0)", "nan_to_num(k)", "asinh(k)", "erfinv(h / 3)", "lgamma(k)",
    ("add(x, y, 3)", "torch.add(x, y, alpha=3)"), ("add(x, 2, 3)", "torch.add(x, 2, alpha=3)"), ("sub(k, j, 2)", "torch.sub(k, j, alpha=2)"),
    ("rsub(x, 2)", "torch.rsub(x, 2)"), ("rsub(k, j, 2)", "torch.rsub(k, j, alpha=2)"),
    ("div(x, y + 0.1, \"floor\")", "torch.div(x, y + 0.1, rounding_mode='floor')"), ("div(x, 0.75, \"trunc\")", "torch.div(x, 0.75, rounding_mode='trunc')"),
    ("div(k, j, \"trunc\")", "torch.div(k, j, rounding_mode='trunc')"), ("div(k, 3, \"floor\")", "torch.div(k, 3, rounding_mode='floor')"),
    "true_divide(k, j)", "hypot(x, y)", "hypot(h, h)", "copysign(x, y)", "copysign(x, -1)", "copysign(k, -0.5)", "fmax(x, y)", "fmin(x, y)", "fmax(k, j)", "logaddexp(x, y)",
    "logaddexp2(x, y)", "xlogy(x, p)", "xlogy(x, 2)", "xlogy(2, p)", "xlogy(k, j)", "heaviside(x, y)", "heaviside(k, j)", "float_power(p, y)", "float_power(k, 2)",
    "ldexp(x, k)", ("isclose(x, x + 1e-6)", "torch.isclose(x, x + 1e-6)"), ("isclose(x, y, 0.3, 0.5)", "torch.isclose(x, y, 0.3, 0.5)"),
    ("isclose(x / 0, x / 0, 1e-5, 1e-8, true)", "torch.isclose(x / 0, x / 0, equal_nan=True)"), "isclose(k, j)", "lerp(x, y, 0.3)", "lerp(x, y, 0.8)", "lerp(x, y, p)", "lerp(h, h * 2, 0.3)",
    "addcmul(x, y, p)", ("addcmul(x, y, r, 0.5)", "torch.addcmul(x, y, r, value=0.5)"), ("addcmul(k, j, k, 2)", "torch.addcmul(k, j, k, value=2)"),
    ("addcdiv(x, y, p, 0.5)", "torch.addcdiv(x, y, p, value=0.5)"), "addcdiv(h, h, h + 8)",
    "fix(x)", "absolute(x)", "negative(x)", "sgn(x)", "arcsin(x / 8)", "arctan2(x, y)", "clip(x, -1, 1)", "multiply(x, y)", "not_equal(x, y)",
    f("hardtanh(x)"), f("hardtanh(x, -0.5, 2)"), f("relu6(x * 4)"), f("prelu(x, r)"), ("prelu(c, tensor({0.25}))", "F.prelu(c, torch.tensor([0.25]))"),
    ("rrelu(x)", "F.rrelu(x)"), f("elu(x)"), f("elu(x, 0.5)"), f("selu(x)"), f("celu(x)"), f("celu(x, 0.5)"), f("mish(x)"), f("mish(x * 20)"), f("softsign(x)"),
    f("hardswish(x * 2)"), f("hardsigmoid(x * 2)"), f("logsigmoid(x)"), f("logsigmoid(x * 50)"), f("tanhshrink(x)"), f("hardshrink(x)"), f("hardshrink(x, 1.5)"),
    f("softshrink(x)"), f("softshrink(x, 1.5)"), f("threshold(x, 0.5, 9)"), f("glu(x)"), f("glu(c, 2)"), ("swiglu(x)", "F.silu(x[:, :2]) * x[:, 2:]"),
    ("swiglu(x, y)", "F.silu(x) * y"), f("softmin(x, 1)"), f("softplus(x, 2)"), f("softplus(x, 2, 1)"), f("softplus(x * 20)"), f("elu(h)"), f("mish(h)"), f("hardswish(h)"), f("glu(h)"),
]

one = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
erfinv lgamma sigmoid relu floor ceil round trunc isnan isinf isfinite isposinf isneginf logical_not signbit frac nan_to_num sinc deg2rad""".split()
two = """add sub mul div pow maximum minimum fmax fmin atan2 fmod remainder floor_divide eq ne lt le gt ge logical_and logical_or logical_xor hypot copysign
logaddexp logaddexp2 xlogy heaviside""".split()
activations = """relu6 elu selu celu mish softsign hardswish hardsigmoid logsigmoid tanhshrink hardshrink softshrink hardtanh softplus silu leaky_relu""".split()  # gelu(inf) is NaN in PyTorch, inf here
# Which of two zeros comes out is chance there: added to 0.0 they are the same.
chance = """relu maximum minimum relu6""".split()
def plain(n):
    return "" if n not in chance else " + 0.0"


special = [n + "(s)" + plain(n) for n in one] + [n + "(s, q)" + plain(n) for n in two] + [n + "(q, s)" + plain(n) for n in two] + [f(n + "(s)" + plain(n)) for n in activations] + [
    f("threshold(s, 0.0, 7.0)"), "lerp(s, q, 0.25)", "addcmul(s, q, q)", "addcdiv(s, q, s)", ("clamp(s, -1.0, 1.0)", "torch.clamp(s, -1.0, 1.0)"), "isclose(s, q)", "isclose(s, s)",
    ("isclose(s, s, 1e-5, 1e-8, true)", "torch.isclose(s, s, equal_nan=True)"), "copysign(s, -0.0)", "pow(s, 2)", "pow(s, 0.5)", "pow(s, -1)", "pow(2.0, s)", "pow(s, 0)",
    ("s.to(float16) * q.to(float16)", "s.to(f16) * q.to(f16)"), ("exp(s.to(bfloat16))", "exp(s.to(bf16))"), ("nan_to_num(s.to(float16))", "torch.nan_to_num(s.to(f16))"),
    ("s.to(float64).lgamma()", "s.to(f64).lgamma()"), ("digamma(s.abs() + 0.5)", "torch.digamma(s.abs() + 0.5)"),
]

arrange = [
    ("unflatten(x, 1, {2, -1})", "x.unflatten(1, (2, -1))"), ("unflatten(x, -1, {2, 2})", "x.unflatten(-1, (2, 2))"), "movedim(c, 0, 2)", ("movedim(c, {0, 1}, {2, 0})", "c.movedim((0, 1), (2, 0))"),
    "moveaxis(c, 2, 0)", "swapaxes(c, 0, 1)", "swapdims(c, 0, -1)", ("mT(c)", "c.mT"), "ravel(c)", "fliplr(x)", "flipud(x)", "rot90(x)", ("rot90(c, 3, {0, 2})", "c.rot90(3, (0, 2))"),
    ("rot90(x, -1)", "x.rot90(-1)"), ("squeeze(c.unsqueeze(0).unsqueeze(2), Dims{0, 2})", "c.unsqueeze(0).unsqueeze(2).squeeze((0, 2))"), ("unbind(c, 1)[1]", "c.unbind(1)[1]"),
    ("tensor_split(r, 3)[0]", "r.tensor_split(3)[0]"), ("tensor_split(x, {1, 3}, 1)[1]", "x.tensor_split((1, 3), 1)[1]"), "atleast_1d(z)", "atleast_2d(r)", "atleast_3d(x)", "atleast_3d(r)",
    ("broadcast_tensors({r, x})[0]", "torch.broadcast_tensors(r, x)[0]"), "diagonal(x)", "diagonal(x, 1)", "diagonal(x, -1)", "diagonal(c, 0, 0, 2)", "diagonal(c, 1, 1, 0)", "diagonal(x, 9)",
    ("pad(x, {1, 2}, \"reflect\")", "F.pad(x, (1, 2), 'reflect')"), ("pad(c, {2, 1, 1, 2}, \"reflect\")", "F.pad(c, (2, 1, 1, 2), 'reflect')"),
    ("pad(x, {3, 5}, \"replicate\")", "F.pad(x, (3, 5), 'replicate')"), ("pad(c, {1, 1, 2, 0}, \"replicate\")", "F.pad(c, (1, 1, 2, 0), 'replicate')"),
    ("pad(x, {4, 1}, \"circular\")", "F.pad(x, (4, 1), 'circular')"), ("pad(c, {1, 2, 3, 0}, \"circular\")", "F.pad(c, (1, 2, 3, 0), 'circular')"),
    ("pad(x, {1, 1}, \"constant\", 5.0)", "F.pad(x, (1, 1), 'constant', 5.0)"), ("roll(c, {1, 2}, {0, 2})", "c.roll((1, 2), (0, 2))"), ("roll(c, {7})", "c.roll(7)"),
    ("tile(x, {2})", "x.tile((2,))"), ("tile(r, {2, 3})", "r.tile((2, 3))"), "repeat_interleave(x, 2)", "repeat_interleave(x, 2, 0)", ("repeat_interleave(x, lab, 0)", "x.repeat_interleave(lab, 0)"),
    "diag(r)", "diag(r, 1)", "diag(r, -2)", "diag(x)", "diag(x, 1)", "diag_embed(x)", "diag_embed(x, 1)", "diag_embed(x, -1, 0, 2)", "diagflat(x[0], 1)", ("hstack({x, y})", "torch.hstack([x, y])"),
    ("hstack({r, r})", "torch.hstack([r, r])"), ("vstack({r, x})", "torch.vstack([r, x])"), ("dstack({r, r})", "torch.dstack([r, r])"), ("column_stack({r, x.t()})", "torch.column_stack([r, x.t()])"),
    ("concat({x, y}, 1)", "torch.concat([x, y], 1)"), ("block_diag({x, z, r})", "torch.block_diag(x, z, r)"), ("logspace(0, 2, 5)", "torch.logspace(0, 2, 5)"),
    ("logspace(-1, 1, 4, 2, float64)", "torch.logspace(-1, 1, 4, 2, dtype=f64)"), ("tri(3, 4, 1)", "torch.tril(torch.ones(3, 4), 1)"), ("tril_indices(3, 4, 1)", "torch.tril_indices(3, 4, 1)"),
    ("triu_indices(3, 4)", "torch.triu_indices(3, 4)"), ("meshgrid({r, x[0]})[1]", "torch.meshgrid(r, x[0], indexing='ij')[1]"), ("meshgrid({r, x[1]}, \"xy\")[0]", "torch.meshgrid(r, x[1], indexing='xy')[0]"),
    ("x.new_zeros({2})", "x.new_zeros(2)"), ("k.new_full({2}, 7)", "k.new_full((2,), 7)"), ("k.new_ones({2}, float32)", "k.new_ones(2, dtype=f32)"),
    ("x.clone().exp_()", "x.clone().exp_()"), ("x.clone().add_(y, 2)", "x.clone().add_(y, alpha=2)"), ("k.clone().floor_divide_(3)", "k.clone().floor_divide_(3)"),
    ("k.clone().eq_(3)", "k.clone().eq_(3)"), ("x.clone().gt_(0)", "x.clone().gt_(0)"), ("x.clone().div_(0.75, \"floor\")", "x.clone().div_(0.75, rounding_mode='floor')"),
    ("x.clone().fill_diagonal_(3)", "x.clone().fill_diagonal_(3)"), ("x.clone().tril_(1)", "x.clone().tril_(1)"), ("x.clone().clamp_min_(0.5)", "x.clone().clamp_min_(0.5)"),
    ("x.clone().masked_fill_(m, 9)", "x.clone().masked_fill_(m, 9)"), ("x.clone().fill_(z)", "x.clone().fill_(z)"), ("k.clone().bitwise_and_(j)", "k.clone().bitwise_and_(j)"),
    ("x.clone().lerp_(y, 0.3)", "x.clone().lerp_(y, 0.3)"), ("k.clone().pow_(2)", "k.clone().pow_(2)"), ("x.clone().round_(1)", "x.clone().round_(decimals=1)"), ("k.clone().logical_not_()", "k.clone().logical_not_()"),
]

t1 = "(m.to(float32) * 2 - 1)"  # targets 1 and -1


def loss(name, arguments, options="", python=""):
    """One case per reduction; arguments as C++ writes them, after translation as Python does."""
    out = []
    for how in ("mean", "sum", "none"):
        cpp = "%s(%s, %s)" % (name, arguments, options.replace("HOW", '"%s"' % how) if options else '"%s"' % how)
        py = arguments.replace("float32", "f32").replace("sigmoid", "torch.sigmoid").replace("log_softmax", "F.log_softmax").replace("[{Slice{}, 0}]", "[:, 0]")
        out.append((cpp, "F.%s(%s, %sreduction='%s')" % (name, py, python, how)))
    return out


losses = sum([
    loss("l1_loss", "x, y"), loss("smooth_l1_loss", "x, y"), loss("smooth_l1_loss", "x, y", "HOW, 0.5", "beta=0.5, "), loss("smooth_l1_loss", "x, y", "HOW, 0", "beta=0.0, "),
    loss("huber_loss", "x, y"), loss("huber_loss", "x, y", "HOW, 2.5", "delta=2.5, "), loss("binary_cross_entropy", "sigmoid(x), m.to(float32)", "{}, HOW"),
    loss("binary_cross_entropy", "m.to(float32), sigmoid(y), r", "HOW"), loss("binary_cross_entropy_with_logits", "x * 9, sigmoid(y)", "{}, HOW"),
    loss("binary_cross_entropy_with_logits", "x, sigmoid(y), p", "HOW, p", "pos_weight=p, "), loss("kl_div", "log_softmax(x, 1), sigmoid(y)"),
    loss("kl_div", "log_softmax(x, 1), log_softmax(y, 1)", "HOW, true", "log_target=True, "), loss("kl_div", "x, m.to(float32)"),
    loss("hinge_embedding_loss", "x, " + t1, "1, HOW"), loss("hinge_embedding_loss", "x, " + t1, "0.3, HOW", "margin=0.3, "),
    loss("margin_ranking_loss", "x, y, " + t1, "0.5, HOW", "margin=0.5, "), loss("cosine_embedding_loss", "x, y, " + t1 + "[{Slice{}, 0}]", "0.1, HOW", "margin=0.1, "),
    loss("soft_margin_loss", "x, " + t1), loss("multilabel_soft_margin_loss", "x, m.to(float32)", "{}, HOW"), loss("multilabel_soft_margin_loss", "x, m.to(float32), p", "HOW"),
    loss("triplet_margin_loss", "x, y, p", "{.reduction = HOW}"), loss("triplet_margin_loss", "x, y, p", "{.margin = 2, .p = 1, .swap = true, .reduction = HOW}", "margin=2, p=1, swap=True, "),
    loss("poisson_nll_loss", "x, p", "{.reduction = HOW}"), loss("poisson_nll_loss", "p, p * 2", "{.log_input = false, .full = true, .reduction = HOW}", "log_input=False, full=True, "),
    loss("gaussian_nll_loss", "x, y, p", "{.reduction = HOW}"), loss("gaussian_nll_loss", "x, y, p[{Slice{}, 0}]", "{.full = true, .reduction = HOW}", "full=True, "),
    loss("cross_entropy", "x, lab", "{.weight = p[0], .reduction = HOW}", "weight=p[0], "), loss("cross_entropy", "x, lab", "{.weight = p[0], .ignore_index = 3, .reduction = HOW, .label_smoothing = 0.2}", "weight=p[0], ignore_index=3, label_smoothing=0.2, "),
    loss("cross_entropy", "x, p / 3", "{.reduction = HOW}"), loss("cross_entropy", "x, p / 3", "{.weight = p[1], .reduction = HOW, .label_smoothing = 0.2}", "weight=p[1], label_smoothing=0.2, "),
    loss("cross_entropy", "c, sigmoid(c)", "{.weight = p[{0, Slice{0, 3}}], .reduction = HOW}", "weight=p[0, :3], "), loss("nll_loss", "x, lab", "{.weight = p[0], .ignore_index = 1, .reduction = HOW}", "weight=p[0], ignore_index=1, "),
    loss("l1_loss", "h, h * 2"), loss("huber_loss", "h, h * 2"),
], []) + [
    ("kl_div(x, sigmoid(y), \"batchmean\")", "F.kl_div(x, torch.sigmoid(y), reduction='batchmean')"), ("cosine_embedding_loss(r, x[0], tensor(1))", "F.cosine_embedding_loss(r, x[0], torch.tensor(1))"),
    f("cosine_similarity(x, y)"), f("cosine_similarity(c, x, 0)"), f("cosine_similarity(x, x * 0)"), f("cosine_similarity(r, r, 0)"), f("pairwise_distance(x, y)"), f("pairwise_distance(x, y, 1)"), f("pairwise_distance(x, y, 3)"),
    ("pairwise_distance(x, r, INF, 1e-6, true)", "F.pairwise_distance(x, r, math.inf, 1e-6, True)"), "cdist(x, y)", "cdist(c, w)", "cdist(x, y, 1)", "cdist(x, y, 3)", ("cdist(x, y, INF)", "torch.cdist(x, y, math.inf)"), "cdist(x, x)",
    f("normalize(x)"), f("normalize(x, 1)"), f("normalize(c, 2, 0)"), f("normalize(x * 0)"), f("normalize(x, 3, -1)"), ("cross_entropy(r, p[0])", "F.cross_entropy(r, p[0])"),
]

linalg = [
    ("mm(x, w.t())", "torch.mm(x, w.t())"), ("bmm(c, c.mT())", "torch.bmm(c, c.mT)"), "mv(x, r)", "dot(r, r)", "vdot(r, r)", "inner(x, w)", "inner(r, r)", "inner(x, z)", "outer(r, lab)", ("ger(r, r)", "torch.outer(r, r)"), "kron(x, r)",
    "kron(k, j)", ("vecdot(x, r)", "torch.linalg.vecdot(x, r)"), ("cross(a, a + 1)", "torch.linalg.cross(a, a + 1)"), ("addmm(r, x, a.new_ones({4, 4}))", "torch.addmm(r, x, a.new_ones(4, 4))"),
    ("addmm(x, a, y, 2, 0.5)", "torch.addmm(x, a, y, beta=2, alpha=0.5)"), ("addmm(x / 0, a, y, 0)", "torch.addmm(x / 0, a, y, beta=0)"), ("addmv(r, w.t(), ones({5}), 0.5, 2)", "torch.addmv(r, w.t(), torch.ones(5), beta=0.5, alpha=2)"),
    ("addr(x, a[0], r, 0.5, 2)", "torch.addr(x, a[0], r, beta=0.5, alpha=2)"), ("baddbmm(c, c, g, 0.5, 2)", "torch.baddbmm(c, c, g, beta=0.5, alpha=2)"), ("addbmm(x, c, g, 0.5, 2)", "torch.addbmm(x, c, g, beta=0.5, alpha=2)"),
    ("tensordot(c, c, {0, 1}, {0, 1})", "torch.tensordot(c, c, ([0, 1], [0, 1]))"), ("tensordot(x, w, Dims{1}, Dims{1})", "torch.tensordot(x, w, ([1], [1]))"), ("tensordot(x, w.t(), 1)", "torch.tensordot(x, w.t(), 1)"),
    ("einsum(\"ij,kj->ik\", {x, w})", "torch.einsum('ij,kj->ik', x, w)"), ("einsum(\"bij,bkj\", {c, c})", "torch.einsum('bij,bkj', c, c)"), ("einsum(\"ii\", {a})", "torch.einsum('ii', a)"), ("einsum(\"ii->i\", {a})", "torch.einsum('ii->i', a)"),
    ("einsum(\"...ij->...ji\", {c})", "torch.einsum('...ij->...ji', c)"), ("einsum(\"i,j->ij\", {r, r})", "torch.einsum('i,j->ij', r, r)"), ("einsum(\"bij, bij -> b\", {c, c})", "torch.einsum('bij, bij -> b', c, c)"),
    ("einsum(\"ij,jk,kl->il\", {a, x, w.t()})", "torch.einsum('ij,jk,kl->il', a, x, w.t())"), ("einsum(\"...j,j\", {c, r})", "torch.einsum('...j,j', c, r)"), ("einsum(\"Ba,aB->B\", {a, a})", "torch.einsum('Ba,aB->B', a, a)"), ("einsum(\"ba\", {x})", "torch.einsum('ba', x)"),
    ("multi_dot({a, x, w.t()})", "torch.linalg.multi_dot([a, x, w.t()])"), ("multi_dot({a[0], x, r})", "torch.linalg.multi_dot([a[0], x, r])"), "trace(a)", "trace(x)", "trace(k)", "matrix_power(a, 3)", "matrix_power(a, 0)", "matrix_power(a, -2)", "matrix_power(g, 2)",
    ("solve(a, y)", "torch.linalg.solve(a, y)"), ("solve(a, a[0])", "torch.linalg.solve(a, a[0])"), ("solve(g, c.mT())", "torch.linalg.solve(g, c.mT)"), ("solve(g, r.expand({2, 4}))", "torch.linalg.solve(g, r.expand(2, 4))"), ("solve(g, c, false)", "torch.linalg.solve(g, c, left=False)"),
    ("solve_triangular(a, y, true)", "torch.linalg.solve_triangular(a, y, upper=True)"), ("solve_triangular(a, y, false)", "torch.linalg.solve_triangular(a, y, upper=False)"), ("solve_triangular(a, y.t(), false, false)", "torch.linalg.solve_triangular(a, y.t(), upper=False, left=False)"),
    ("solve_triangular(a, y, true, true, true)", "torch.linalg.solve_triangular(a, y, upper=True, unitriangular=True)"), ("cholesky(matmul(a, a.t()))", "torch.linalg.cholesky(a @ a.t())"), ("cholesky(matmul(g, g.mT()), true)", "torch.linalg.cholesky(g @ g.mT, upper=True)"),
    ("cholesky_solve(y, cholesky(matmul(a, a.t())))", "torch.cholesky_solve(y, torch.linalg.cholesky(a @ a.t()))"), ("inv(a)", "torch.linalg.inv(a)"), ("inv(g)", "torch.linalg.inv(g)"), "inverse(a)", "det(a)", "det(g)", ("det(a * 0)", "torch.det(a * 0)"), "logdet(g)", ("logdet(-a)", "torch.logdet(-a)"),
    ("slogdet(g).sign", "torch.slogdet(g).sign"), ("slogdet(g).logabsdet", "torch.slogdet(g).logabsdet"), ("slogdet(a * 0).sign", "torch.slogdet(a * 0).sign"), ("slogdet(a * 0).logabsdet", "torch.slogdet(a * 0).logabsdet"), ("det(zeros({0, 0}))", "torch.det(torch.zeros(0, 0))"), ("slogdet(-a).sign", "torch.slogdet(-a).sign"),
    ("inv(a.to(float64))", "torch.linalg.inv(a.to(f64))"),
]

families = dict(loss=losses, linalg=linalg, elementwise=elementwise, special=special, arrange=arrange)
family = sys.argv[1]
write("golden_ops.py", families[family], globals())
