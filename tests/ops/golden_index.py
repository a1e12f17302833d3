#!/usr/bin/env python3
"""Writes golden_index.inc: what PyTorch says of each case of golden_index_test.cpp. Run by hand, with PyTorch installed:
    python3 golden_index.py > golden_index.inc
A case is a pair (C++, Python), or one expression that both languages understand."""
import math
import torch
import torch.nn.functional as F

f32, f64, f16, bf16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
i64, i32, i16, i8, u8, b = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool


# The same inputs are made in golden_index_test.cpp.
def ramp(shape, a, m, s):
    n = math.prod(shape)
    return torch.tensor([((k * a) % m) * s[0] + s[1] for k in range(n)], dtype=f64).reshape(shape).to(f32)


x = ramp([3, 4], 7, 23, (0.25, -2.5))
y = ramp([3, 4], 5, 19, (0.5, -3.0))
c = ramp([2, 3, 4], 7, 37, (0.125, -2.0))
k = (ramp([3, 4], 7, 23, (1.0, -11.0))).to(i64)
d = k % 4
v = k.flatten()[[0, 4, 1, 1, 8, 0]] % 5
m = x > 0
nan = torch.tensor([1.0, math.nan, -2.0, math.inf, -math.inf, math.nan, 0.0, -0.0])
lab = torch.tensor([1, 3, 0])
idx = torch.tensor([[0, 2, 1, 0], [1, 1, 2, 0]])
z = torch.tensor(2.5)
e = torch.zeros([0, 4])
h = x.to(f16)

cases = []
for t in "xckh":
    dims = [0, -1] if t != "c" else [0, 1, 2]
    for dim in dims:
        cases += ["cumsum(%s, %d)" % (t, dim), "cumprod(%s, %d)" % (t, dim)]
        for f in ("cummax", "cummin"):
            cases += [("%s(%s, %d).values" % (f, t, dim),) * 2, ("%s(%s, %d).indices" % (f, t, dim),) * 2]
        for down in ("false", "true"):
            py = "torch.sort(%s, dim=%d, descending=%s, stable=True)" % (t, dim, down.capitalize())
            cases += [("sort(%s, %d, %s).values" % (t, dim, down), py + ".values"), ("sort(%s, %d, %s).indices" % (t, dim, down), py + ".indices")]
cases += [
    "logcumsumexp(x, 0)", "logcumsumexp(c, 1)", "logcumsumexp(h, 1)", ("cumsum(m, 1)", "m.cumsum(1)"), ("cumsum(k, 0, float32)", "k.cumsum(0, dtype=f32)"),
    "cumsum(nan, 0)", "cumprod(nan, 0)", "logcumsumexp(nan, 0)", ("cummax(nan, 0).values",) * 2, ("cummax(nan, 0).indices",) * 2, ("cummin(nan, 0).indices",) * 2,
    "cumsum(z, 0)", ("cummax(z, 0).values",) * 2, ("cummax(z, 0).indices",) * 2, "cumsum(e, 0)", "cumsum(e, 1)", ("sort(z).values", "z.sort().values"),
    ("sort(nan).values", "nan.sort(stable=True).values"), ("sort(nan).indices", "nan.sort(stable=True).indices"),
    ("sort(nan, 0, true).indices", "nan.sort(stable=True, descending=True).indices"), ("sort(m, 1).indices", "m.sort(dim=1, stable=True).indices"),
    ("sort(d, 1, true).indices", "d.sort(dim=1, descending=True, stable=True).indices"), ("argsort(d, 0)", "d.argsort(dim=0, stable=True)"),
    ("argsort(x)", "x.argsort()"), "msort(x)", ("topk(x, 2).values", "x.topk(2).values"), ("topk(x, 2).indices", "x.topk(2).indices"),
    ("topk(c, 2, 1, false).values", "c.topk(2, 1, False).values"), ("topk(nan, 3).values", "nan.topk(3).values"), ("topk(x, 0).values", "x.topk(0).values"),
    ("kthvalue(x, 2).values", "x.kthvalue(2).values"), ("kthvalue(c, 2, 1, true).indices", "c.kthvalue(2, 1, True).indices"),
    "median(x)", ("median(x, 1).values", "x.median(1).values"), ("median(c, 1, true).indices", "c.median(1, True).indices"), "median(k)", "median(nan)", "nanmedian(nan)",
    ("nanmedian(nan, 0).values", "nan.nanmedian(0).values"), ("median(z)", "z.median()"),
    ("searchsorted(sort(x, 1).values, y)", "torch.searchsorted(x.sort(1).values, y)"), ("searchsorted(sort(x, 1).values, x, true)", "torch.searchsorted(x.sort(1).values, x, right=True)"),
    ("searchsorted(tensor({1, 3, 3, 5}), k)", "torch.searchsorted(torch.tensor([1, 3, 3, 5]), k)"), ("searchsorted(tensor({1, 3, 3, 5}), 3, true)", "torch.searchsorted(torch.tensor([1, 3, 3, 5]), 3, right=True)"),
    ("bucketize(x, tensor({-1.0, 0.0, 2.25}))", "torch.bucketize(x, torch.tensor([-1.0, 0.0, 2.25]))"), ("bucketize(nan, tensor({-1.0, 0.0, 2.25}), true)", "torch.bucketize(nan, torch.tensor([-1.0, 0.0, 2.25]), right=True)"),
    ("unique(d).values", "d.unique()"), ("unique(d).inverse", "d.unique(return_inverse=True)[1]"), ("unique(d).counts", "d.unique(return_counts=True)[1]"),
    ("unique(x).values", "x.unique()"), ("unique(m).counts", "m.unique(return_counts=True)[1]"), ("unique(e).values", "e.unique()"), ("unique(z).inverse", "z.unique(return_inverse=True)[1]"),
    ("bincount(v)", "v.bincount()"), ("bincount(v, {}, 9)", "v.bincount(minlength=9)"), ("bincount(v, cumsum(ones({6}), 0))", "v.bincount(torch.ones(6).cumsum(0))"),
    ("histc(x, 5)", "x.histc(5)"), ("histc(x, 4, -1, 2)", "x.histc(4, -1, 2)"), ("histc(z, 3)", "z.histc(3)"), ("histc(x)", "x.histc()"),
    # reductions
    ("var_mean(x, 1).first", "torch.var_mean(x, 1)[0]"), ("var_mean(x, 1).second", "torch.var_mean(x, 1)[1]"), ("std_mean(c, {0, 2}, 0, true).first", "torch.std_mean(c, (0, 2), correction=0, keepdim=True)[0]"),
    ("aminmax(x).min", "x.aminmax().min"), ("aminmax(x, 1, true).max", "x.aminmax(dim=1, keepdim=True).max"), ("count_nonzero(d)", "d.count_nonzero()"), ("count_nonzero(x, {0, 1})", "x.count_nonzero((0, 1))"),
    ("count_nonzero(m, 1)", "m.count_nonzero(1)"), "nansum(nan)", "nanmean(nan)", ("nanmean(x, 1)", "x.nanmean(1)"), ("nansum(k, 1)", "k.nansum(1)"), ("nanmean(nan[Slice{5, 6}])", "nan[5:6].nanmean()"),
    ("logsumexp(e, 0)", "e.logsumexp(0)"), ("logsumexp(c, {0, 1, 2})", "c.logsumexp((0, 1, 2))"), ("prod(x, 1)", "x.prod(1)"),
]
for p in ("0", "1", "2", "3", "0.5", "-1", "INF", "-INF"):
    py = p.replace("INF", "math.inf")
    cases += [("norm(x, %s)" % p, "torch.linalg.vector_norm(x, %s)" % py), ("vector_norm(c, %s, {0, 2}, true)" % p, "torch.linalg.vector_norm(c, %s, dim=(0, 2), keepdim=True)" % py)]
cases += [
    # index
    ("scatter(x, 0, idx, y)", "x.scatter(0, idx, y)"), ("scatter(x, 1, lab.reshape({3, 1}), 7)", "x.scatter(1, lab.reshape(3, 1), 7)"), ("scatter_add(x, 0, idx, y)", "x.scatter_add(0, idx, y)"),
    ("scatter_add(x, 1, idx % 4, y)", "x.scatter_add(1, idx % 4, y)"), ("index_add(x, 1, lab, y[{Slice{}, Slice{0, 3}}])", "x.index_add(1, lab, y[:, 0:3])"),
    ("index_add(x, 1, lab, y[{Slice{}, Slice{0, 3}}], 2)", "x.index_add(1, lab, y[:, 0:3], alpha=2)"), ("index_copy(x, 1, lab, y[{Slice{}, Slice{0, 3}}])", "x.index_copy(1, lab, y[:, 0:3])"),
    ("index_fill(x, 1, lab, 9)", "x.index_fill(1, lab, 9)"), ("take(x, idx - 5)", "x.take(idx - 5)"), ("take_along_dim(x, argsort(x, 1), 1)", "x.take_along_dim(x.argsort(1), 1)"),
    ("take_along_dim(x, idx)", "x.take_along_dim(idx)"), ("take_along_dim(x, argmax(x, 1, true), 1)", "x.take_along_dim(x.argmax(1, True), 1)"),
    ("put(x, lab, y[{0, Slice{0, 3}}])", "x.put(lab, y[0, 0:3])"), ("put(x, v % 2, y.flatten()[Slice{0, 6}], true)", "x.put(v % 2, y.flatten()[0:6], accumulate=True)"),
    ("masked_select(x, m)", "x.masked_select(m)"), ("masked_select(c, m[{Slice{0, 1}}])", "c.masked_select(m[0:1])"), ("masked_scatter(x, m, y)", "x.masked_scatter(m, y)"),
    ("nonzero(d)", "d.nonzero()"), ("nonzero(m)", "m.nonzero()"), ("argwhere(c > 1)", "torch.argwhere(c > 1)"), ("nonzero(z)", "z.nonzero()"), ("nonzero(e)", "e.nonzero()"), ("where(m)[1]", "torch.where(m)[1]"),
    ("where(z)[0]", "torch.where(z)[0]"), ("one_hot(lab)", "F.one_hot(lab)"), ("embedding(x, idx, 1)", "F.embedding(idx, x, 1)"),
]
for how in ("sum", "prod", "mean", "amax", "amin"):
    for self in ("true", "false"):
        for t in ("x", "k"):
            src = "y" if t == "x" else "d"
            cases.append(('scatter_reduce(%s, 0, idx, %s, "%s", %s)' % (t, src, how, self), '%s.scatter_reduce(0, idx, %s, "%s", include_self=%s)' % (t, src, how, self.capitalize())))

# advanced indexing
for cpp, py in [
    ("x[lab % 3]", "x[lab % 3]"), ("x[idx]", "x[idx]"), ("x[-idx]", "x[-idx]"), ("x[{Slice{}, lab}]", "x[:, lab]"), ("x[{lab % 3, lab}]", "x[lab % 3, lab]"),
    ("x[m]", "x[m]"), ("c[{Slice{}, m}]", "c[:, m]"), ("c[{0, m}]", "c[0, m]"), ("x[{m[{Slice{}, 0}]}]", "x[m[:, 0]]"), ("c[{Slice{}, m[{Slice{}, 2}], lab}]", "c[:, m[:, 2], lab[:1]]"),
    ("c[{lab % 2, Slice{}, lab}]", "c[lab % 2, :, lab]"), ("c[{lab % 2, 1, lab}]", "c[lab % 2, 1, lab]"), ("c[{Ellipsis, idx}]", "c[..., idx]"), ("c[{idx % 2, Ellipsis}]", "c[idx % 2, ...]"),
    ("c[{Slice{}, idx % 3, idx}]", "c[:, idx % 3, idx]"), ("c[{NewAxis, lab % 2, NewAxis, lab % 3}]", "c[None, lab % 2, None, lab % 3]"), ("c[{Slice{{}, {}, -1}, lab % 3}]", "c.flip(0)[:, lab % 3]"),
    ("c[{idx.reshape({2, 4, 1}) % 2, lab % 3}]", "c[idx.reshape(2, 4, 1) % 2, lab % 3]"), ("x[tensor(1)]", "x[torch.tensor(1)]"), ("x[{tensor(1), lab}]", "x[torch.tensor(1), lab]"),
    ("x[zeros({0}, int64)]", "x[torch.zeros(0, dtype=i64)]"), ("x[x > 100]", "x[x > 100]"), ("z[tensor(true)]", "z[torch.tensor(True)]"), ("x[{Slice{0, 2}, lab, NewAxis}]", "x[0:2, lab, None]"),
    ("c[{lab % 2, Slice{1, 3}, Slice{{}, {}, 2}}]", "c[lab % 2, 1:3, ::2]"), ("c[{1, Slice{}, lab}]", "c[1, :, lab]"), ("c[{lab % 2, Slice{}, 1}]", "c[lab % 2, :, 1]"),
]:
    if "m[{Slice{}, 2}], lab}" in cpp:
        cpp = cpp.replace("lab}", "lab[Slice{0, 1}]}")
    cases.append((cpp, py))
for index_cpp, index_py, value_cpp, value_py, t in [
    ("lab % 3", "lab % 3", "5", "5", "x"), ("lab % 3", "lab % 3", "y", "y", "x"), ("idx", "idx", "y[Slice{0, 1}]", "y[0:1]", "x"), ("{Slice{}, lab}", "(slice(None), lab)", "y[{Slice{}, Slice{0, 3}}]", "y[:, 0:3]", "x"),
    ("m", "m", "7", "7", "x"), ("m", "m", "-y.flatten()[Slice{0, 5}]", "-y.flatten()[0:5]", "x"), ("{Slice{}, m}", "(slice(None), m)", "2", "2", "c"),
    ("{lab % 2, Slice{}, lab}", "(lab % 2, slice(None), lab)", "y[{Slice{}, Slice{0, 3}}]", "y[:, 0:3]", "c"), ("{Slice{0, 2, 1}, lab % 2 + 1, Slice{1}}", "(slice(0, 2), lab % 2 + 1, slice(1, None))", "y[{Slice{0, 1}, Slice{0, 3}}]", "y[0:1, 0:3]", "c"),
    ("{1, lab % 3, lab}", "(1, lab % 3, lab)", "y[0][Slice{0, 3}]", "y[0][0:3]", "c"),
]:
    cases.append(("assigned(%s, %s, %s)" % (t, index_cpp, value_cpp), "assigned(%s, %s, %s)" % (t, index_py, value_py)))
    cases.append(("index_put(%s, %s, %s, true)" % (t, index_cpp, value_cpp), "accumulated(%s, %s, %s)" % (t, index_py, value_py)))
    cases.append(("increased(%s, %s, %s)" % (t, index_cpp, value_cpp), "increased(%s, %s, %s)" % (t, index_py, value_py)))


def assigned(base, index, value):
    out = base.clone()
    out[index] = value
    return out


def increased(base, index, value):
    out = base.clone()
    out[index] += value
    return out


def accumulated(base, index, value):
    # Slices and integers become index tensors, which broadcast as they would.
    places = torch.arange(base.numel()).reshape(base.shape)[index]
    value = torch.as_tensor(value).to(base.dtype).expand(places.shape)
    return base.flatten().index_put((places,), value, accumulate=True).reshape(base.shape)


names = {n: getattr(torch, n) for n in dir(torch) if not n.startswith("_") and n not in globals()}
names.update(globals())
short = {f32: "float32", f64: "float64", f16: "float16", bf16: "bfloat16", i64: "int64", i32: "int32", i16: "int16", i8: "int8", u8: "uint8", b: "bool_"}


def number(n):
    if isinstance(n, bool):
        return str(int(n))
    if isinstance(n, float):
        return "NAN" if math.isnan(n) else ("INF" if n > 0 else "-INF") if math.isinf(n) else repr(n) if n != int(n) else str(int(n))
    return str(n)


print("// Written by golden_index.py with PyTorch " + torch.__version__.split("+")[0] + ". Do not edit.")
for case in cases:
    cpp, py = case if isinstance(case, tuple) else (case, case)
    out = eval(py, names)
    vals = ", ".join(number(n) for n in out.to(f64 if out.dtype.is_floating_point else out.dtype).flatten().tolist())
    print("GOLDEN((%s), %s, (Dims{%s}), (V{%s}))" % (cpp, short[out.dtype], ", ".join(map(str, out.shape)), vals))
