"""What the golden scripts share: the inputs that golden.h makes too, and how a case becomes a line of a .inc file."""
import math
import re

import torch
import torch.nn.functional as F

torch.manual_seed(0)
f32, f64, f16, bf16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
i64, i32, i16, i8, u8, b = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool

# The same inputs are made in golden_test.cpp.
def ramp(shape, a, m, s):
    n = math.prod(shape)
    return torch.tensor([((k * a) % m) * s[0] + s[1] for k in range(n)], dtype=f64).reshape(shape).to(f32)

x = ramp([3, 4], 7, 23, (0.25, -2.5))
y = ramp([3, 4], 5, 19, (0.5, -3.0))
p = ramp([3, 4], 11, 29, (0.125, 0.125))
r = ramp([4], 3, 7, (1.0, -2.0))
c = ramp([2, 3, 4], 7, 37, (0.125, -2.0))
w = ramp([5, 4], 7, 31, (0.125, -1.5))
k = (ramp([3, 4], 7, 23, (1.0, -11.0))).to(i64)
j = (ramp([3, 4], 5, 19, (1.0, 1.0))).to(i64)
m = x > 0
lab = torch.tensor([1, 3, 0])
idx = torch.tensor([[0, 2, 1, 0], [1, 1, 2, 0]])
h = x.to(f16)
z = torch.tensor(2.5)
e = torch.zeros([0, 4])
# NaN, infinities, zeros of both signs, very large and small numbers.
s = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e30])
q = torch.tensor([1.0, -0.0, 2.0, 3.0, -0.0, math.nan, 0.0, math.inf, -math.inf, -2.0, 1e30, 1e-30])
a = ramp([3, 3], 5, 11, (0.25, -1.0)) + 3 * torch.eye(3)
g = ramp([2, 4, 4], 7, 29, (0.125, -1.5)) + 4 * torch.eye(4)


def python_of(case):
    if isinstance(case, tuple):
        return case
    py = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", case))
    py = py.replace("({0, 2}", "([0, 2]").replace(", {", ", [").replace("})", "])").replace("}, ", "], ").replace("({x", "([x")
    return case, py


def environment(own):
    """torch's functions, the inputs above and the script's own names."""
    names = {n: getattr(torch, n) for n in dir(torch) if not n.startswith("_") and n not in globals()}
    names.update(globals())
    names.update(abs=torch.abs, round=torch.round, sum=torch.sum, max=torch.max, min=torch.min, any=torch.any, all=torch.all, pow=torch.pow)
    names.update(own)
    return names


short = {f32: "float32", f64: "float64", f16: "float16", bf16: "bfloat16", i64: "int64", i32: "int32", i16: "int16", i8: "int8", u8: "uint8", b: "bool_"}


def number(v):
    if isinstance(v, bool):
        return str(int(v))
    if isinstance(v, float):
        return "NAN" if math.isnan(v) else ("INF" if v > 0 else "-INF") if math.isinf(v) else str(int(v)) if v == int(v) and abs(v) < 1e15 and str(v) != "-0.0" else repr(v)
    return str(v)


def write(script, cases, own):
    names = environment(own)
    print("// Written by " + script + " with PyTorch " + torch.__version__.split("+")[0] + ". Do not edit.")
    for case in cases:
        cpp, py = python_of(case)
        out = eval(py, names)
        vals = ", ".join(number(v) for v in out.to(f64 if out.dtype.is_floating_point else out.dtype).flatten().tolist())
        print("GOLDEN((%s), %s, (Dims{%s}), (V{%s}))" % (cpp, short[out.dtype], ", ".join(map(str, out.shape)), vals))
