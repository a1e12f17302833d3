#!/usr/bin/env python3
"""CPU peer benchmark: PyTorch 2.13 (CPU build), float32.

  python cpu_torch.py --threads 2 [--only REGEX] [--compile] [--budget 1.5] [--tag NAME] >> out.jsonl

One JSON line per case: case, ms (median), min_ms, iters, gflops or gbs.
--compile measures the cases that torch.compile can fuse, through torch.compile, under the same names.
--serve reads one regular expression per line from standard input, measures what matches, and ends each answer with
an empty line: bench/compare_cpu alternates several such processes.
The thread count is set in the environment BEFORE torch loads, so that it reaches every library underneath.
gbs counts the least traffic a perfectly fused kernel would need ("effective" bandwidth).
"""
import argparse, os, sys, time, json, statistics, math, re, gc
ap = argparse.ArgumentParser()
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--only", default="")
ap.add_argument("--budget", type=float, default=1.5)
ap.add_argument("--tag", default="")
ap.add_argument("--compile", action="store_true")
ap.add_argument("--serve", action="store_true")
ap.add_argument("--list", action="store_true")
A = ap.parse_args()
for v in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[v] = str(A.threads)
import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(A.threads)
torch.manual_seed(0)
A.tag = A.tag or "torch" + torch.__version__.split("+")[0] + ("-compile" if A.compile else "")
CASES = []
def case(f):
    CASES.append(f); return f
COMPILED = {}
def fused(key, f):
    """f, or with --compile its compiled form, made once per key."""
    if not A.compile: return f
    if key not in COMPILED: COMPILED[key] = torch.compile(f, dynamic=False)
    return COMPILED[key]
KEPT = {}
def kept(key, make):
    """What make() returns, made once: a served model is not built (nor compiled) again in every round."""
    if key not in KEPT: KEPT[key] = make()
    return KEPT[key]

def cpu_other():
    '''CPU seconds used by everything else on the machine (incl. steal) so far: shows whether a case was measured alone.'''
    f = [int(v) for v in open('/proc/stat').readline().split()[1:9]]; busy = (sum(f) - f[3] - f[4]) / os.sysconf('SC_CLK_TCK')
    t = os.times(); return busy - (t[0] + t[1])
def timed(fn, inner):
    t = time.perf_counter()
    for _ in range(inner): fn()
    return (time.perf_counter() - t) / inner

def report(name, fn, flops=None, nbytes=None, note=None, compiled=False):
    if A.only and not re.search(A.only, name): return
    if A.compile and not compiled: return
    if A.list: print(name); return
    fn(); t1 = timed(fn, 1)
    w0 = time.perf_counter()
    while time.perf_counter() - w0 < min(0.4, A.budget / 3): t1 = min(t1, timed(fn, 1))
    inner = max(1, int(math.ceil(5e-4 / max(t1, 1e-9))))
    gc.collect(); gc.disable()
    xs = []; o0 = cpu_other(); t0 = time.perf_counter()
    while (time.perf_counter() - t0 < A.budget or len(xs) < 7) and len(xs) < 400:
        xs.append(timed(fn, inner))
    gc.enable(); oc = (cpu_other() - o0) / (time.perf_counter() - t0)
    m = statistics.median(xs)
    d = dict(peer=A.tag, threads=A.threads, case=name, ms=round(m * 1e3, 5), min_ms=round(min(xs) * 1e3, 5), iters=len(xs) * inner, other_cpu=round(max(oc, 0.0), 2))
    if flops: d["gflops"] = round(flops / m / 1e9, 2)
    if nbytes: d["gbs"] = round(nbytes / m / 1e9, 2)
    if note: d["note"] = note
    print(json.dumps(d), flush=True)

def want(*names):
    return (not A.only) or any(re.search(A.only, n) for n in names)

# ------------------------------------------------------------------ BLAS-like
@case
def matmul():
    if not want("matmul_512", "matmul_1024", "matmul_2048", "bmm_64x128x64x128"): return
    for n in (512, 1024, 2048):
        a, b = torch.randn(n, n), torch.randn(n, n)
        report(f"matmul_{n}", lambda: a @ b, flops=2 * n**3)
    a, b = torch.randn(64, 128, 64), torch.randn(64, 64, 128)
    report("bmm_64x128x64x128", lambda: torch.bmm(a, b), flops=2 * 64 * 128 * 128 * 64)

# ------------------------------------------------------------------ elementwise
def gelu_prim(x): return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
def gelu_prim_mul(x): return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * (x * x * x))))
@case
def gelu():
    n = 16 * 1024 * 1024
    if not want(*[f"gelu_{k}_{d}_16M" for k in ("prim", "primmul", "fused") for d in ("fwd", "fwdbwd")], "add_16M", "add_out_16M"): return
    x = torch.randn(n); xg = torch.randn(n, requires_grad=True); g = torch.ones(n); y = torch.randn(n)
    prim, primmul = fused("gelu_prim", gelu_prim), fused("gelu_prim_mul", gelu_prim_mul)
    library = fused("gelu", lambda t: F.gelu(t, approximate="tanh"))
    report("gelu_prim_fwd_16M", lambda: prim(x), nbytes=8 * n, compiled=True)
    report("gelu_primmul_fwd_16M", lambda: primmul(x), nbytes=8 * n, note="x*x*x instead of pow", compiled=True)
    report("gelu_fused_fwd_16M", lambda: library(x), nbytes=8 * n, note="F.gelu(approximate=tanh)", compiled=True)
    def fb(f):
        def go():
            xg.grad = None
            f(xg).backward(g)
        return go
    report("gelu_prim_fwdbwd_16M", fb(prim), nbytes=20 * n, compiled=True)
    report("gelu_primmul_fwdbwd_16M", fb(primmul), nbytes=20 * n, compiled=True)
    report("gelu_fused_fwdbwd_16M", fb(library), nbytes=20 * n, compiled=True)
    report("add_16M", lambda: x + y, nbytes=12 * n)
    out = torch.empty(n)
    report("add_out_16M", lambda: torch.add(x, y, out=out), nbytes=12 * n, note="preallocated output")

@case
def rows():
    if want("softmax_4096x1024"):
        x = torch.randn(4096, 1024); n = x.numel()
        softmax = fused("softmax", lambda t: torch.softmax(t, -1))
        report("softmax_4096x1024", lambda: softmax(x), nbytes=8 * n, compiled=True)
    if want("layernorm_fwd_4096x768", "layernorm_fwdbwd_4096x768"):
        x2 = torch.randn(4096, 768); n2 = x2.numel(); ln = kept("ln", lambda: nn.LayerNorm(768)); norm = fused("layernorm", ln)
        def f():
            with torch.no_grad(): return norm(x2)
        report("layernorm_fwd_4096x768", f, nbytes=8 * n2, compiled=True)
        xg = torch.randn(4096, 768, requires_grad=True); g = torch.randn(4096, 768)
        def fb():
            xg.grad = None; ln.zero_grad(set_to_none=True)
            norm(xg).backward(g)
        report("layernorm_fwdbwd_4096x768", fb, nbytes=20 * n2, compiled=True)
    if want("sum_axis0_4096x4096", "sum_axis1_4096x4096", "sum_all_4096x4096", "transpose_copy_4096x4096"):
        xs = torch.randn(4096, 4096); n3 = xs.numel()
        report("sum_axis0_4096x4096", lambda: xs.sum(0), nbytes=4 * n3)
        report("sum_axis1_4096x4096", lambda: xs.sum(1), nbytes=4 * n3)
        report("sum_all_4096x4096", lambda: xs.sum(), nbytes=4 * n3)
        report("transpose_copy_4096x4096", lambda: xs.t().contiguous(), nbytes=8 * n3)
    if want("embedding_8192x768_of_50257"):
        w = torch.randn(50257, 768); idx = torch.randint(0, 50257, (8192,))
        report("embedding_8192x768_of_50257", lambda: F.embedding(idx, w), nbytes=8 * 8192 * 768)

# ------------------------------------------------------------------ conv
def conv_case(name, N, C, H, K, R, s, p, groups=1):
    names = [f"{name}_fwd", f"{name}_fwdbwd", f"{name}_fwdbwd_nodx"]
    if not want(*names, *[n + "_cl" for n in names]): return
    Ho = (H + 2 * p - R) // s + 1
    fl = 2 * N * K * Ho * Ho * (C // groups) * R * R
    for suf, mf in (("", torch.contiguous_format), ("_cl", torch.channels_last)):
        x = torch.randn(N, C, H, H).to(memory_format=mf)
        w = (torch.randn(K, C // groups, R, R) * 0.05).to(memory_format=mf)
        def f():
            with torch.no_grad(): return F.conv2d(x, w, None, s, p, 1, groups)
        report(names[0] + suf, f, flops=fl)
        xg = x.clone().requires_grad_(True); wg = w.clone().requires_grad_(True)
        y = F.conv2d(xg, wg, None, s, p, 1, groups); g = torch.randn_like(y)
        def fb():
            xg.grad = None; wg.grad = None
            F.conv2d(xg, wg, None, s, p, 1, groups).backward(g)
        report(names[1] + suf, fb, flops=3 * fl)
        if C == 3:
            def fb2():
                wg.grad = None
                F.conv2d(x, wg, None, s, p, 1, groups).backward(g)
            report(names[2] + suf, fb2, flops=2 * fl)
@case
def convs():
    conv_case("conv_32x3x224_k7s2_64", 32, 3, 224, 64, 7, 2, 3)
    conv_case("conv_32x64x56_k3_64", 32, 64, 56, 64, 3, 1, 1)
    conv_case("conv_32x256x14_k3_256", 32, 256, 14, 256, 3, 1, 1)
    conv_case("dwconv_32x64x56_k3", 32, 64, 56, 64, 3, 1, 1, groups=64)
@case
def poolbn():
    names = ["maxpool_32x64x112_k3s2_fwd", "maxpool_32x64x112_k3s2_fwdbwd"]
    if not want(*names, *[n + "_cl" for n in names], "batchnorm_32x64x56_fwdbwd"): return
    x = torch.randn(32, 64, 112, 112); n = x.numel()
    report("maxpool_32x64x112_k3s2_fwd", lambda: F.max_pool2d(x, 3, 2, 1), nbytes=4 * n + n)
    xg = x.clone().requires_grad_(True); g = torch.randn(32, 64, 56, 56)
    def fb():
        xg.grad = None
        F.max_pool2d(xg, 3, 2, 1).backward(g)
    report("maxpool_32x64x112_k3s2_fwdbwd", fb, nbytes=8 * n + 2 * n + 2 * n)
    last = torch.channels_last
    xl = x.to(memory_format=last)
    report("maxpool_32x64x112_k3s2_fwd_cl", lambda: F.max_pool2d(xl, 3, 2, 1), nbytes=4 * n + n)
    xlg = xl.clone().requires_grad_(True); gl = g.to(memory_format=last)
    def fbl():
        xlg.grad = None
        F.max_pool2d(xlg, 3, 2, 1).backward(gl)
    report("maxpool_32x64x112_k3s2_fwdbwd_cl", fbl, nbytes=8 * n + 2 * n + 2 * n)
    x2 = torch.randn(32, 64, 56, 56, requires_grad=True); g2 = torch.randn(32, 64, 56, 56); bn = nn.BatchNorm2d(64)
    n2 = x2.numel()
    def fb2():
        x2.grad = None; bn.zero_grad(set_to_none=True)
        bn(x2).backward(g2)
    report("batchnorm_32x64x56_fwdbwd", fb2, nbytes=20 * n2)

# ------------------------------------------------------------------ models
class LeNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(1, 6, 5, padding=2); s.c2 = nn.Conv2d(6, 16, 5)
        s.f1 = nn.Linear(400, 120); s.f2 = nn.Linear(120, 84); s.f3 = nn.Linear(84, 10)
    def forward(s, x):
        x = F.max_pool2d(F.relu(s.c1(x)), 2); x = F.max_pool2d(F.relu(s.c2(x)), 2)
        x = x.flatten(1)
        return s.f3(F.relu(s.f2(F.relu(s.f1(x)))))
class MnistCnn(nn.Module):  # pytorch/examples mnist, without dropout
    def __init__(s):
        super().__init__()
        s.c1 = nn.Conv2d(1, 32, 3); s.c2 = nn.Conv2d(32, 64, 3)
        s.f1 = nn.Linear(9216, 128); s.f2 = nn.Linear(128, 10)
    def forward(s, x):
        x = F.max_pool2d(F.relu(s.c2(F.relu(s.c1(x)))), 2)
        return s.f2(F.relu(s.f1(x.flatten(1))))
class MLP(nn.Module):
    def __init__(s):
        super().__init__(); s.a = nn.Linear(784, 256); s.b = nn.Linear(256, 10)
    def forward(s, x): return s.b(F.relu(s.a(x)))
class Block(nn.Module):
    def __init__(s, cin, c, st):
        super().__init__()
        s.c1 = nn.Conv2d(cin, c, 3, st, 1, bias=False); s.b1 = nn.BatchNorm2d(c)
        s.c2 = nn.Conv2d(c, c, 3, 1, 1, bias=False); s.b2 = nn.BatchNorm2d(c)
        s.d = nn.Sequential(nn.Conv2d(cin, c, 1, st, bias=False), nn.BatchNorm2d(c)) if st != 1 or cin != c else None
    def forward(s, x):
        y = F.relu(s.b1(s.c1(x)), inplace=True); y = s.b2(s.c2(y))
        return F.relu(y + (x if s.d is None else s.d(x)), inplace=True)
class ResNet18(nn.Module):
    def __init__(s):
        super().__init__()
        s.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False); s.bn = nn.BatchNorm2d(64)
        L = []; cin = 64
        for c, st in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            L.append(Block(cin, c, st)); cin = c
        s.body = nn.Sequential(*L); s.fc = nn.Linear(512, 1000)
    def forward(s, x):
        x = F.max_pool2d(F.relu(s.bn(s.stem(x)), inplace=True), 3, 2, 1)
        return s.fc(s.body(x).mean((2, 3)))

def train_step(m, opt, x, t, clip=None):
    def go():
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(m(x), t).backward()
        opt.step()
    return go
@case
def small_models():
    if want("mlp_784_256_10_b64_train"):
        m = kept("mlp", MLP); o = torch.optim.SGD(m.parameters(), lr=0.01)
        report("mlp_784_256_10_b64_train", train_step(fused("mlp", m), o, torch.randn(64, 784), torch.randint(0, 10, (64,))), flops=6 * 64 * (784 * 256 + 2560), compiled=True)
    if not want("lenet5_b64_train", "mnistcnn_32_64_b64_train"): return
    m = LeNet(); o = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
    report("lenet5_b64_train", train_step(m, o, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))))
    m = MnistCnn(); o = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
    report("mnistcnn_32_64_b64_train", train_step(m, o, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))))
@case
def resnet():
    if not want("resnet18_b8_train", "resnet18_b8_train_cl", "resnet18_b1_infer", "resnet18_b1_infer_cl", "resnet18_b1_infer_frozen"): return
    for suf, mf in (("", torch.contiguous_format), ("_cl", torch.channels_last)):
        m = ResNet18().to(memory_format=mf)
        o = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        x = torch.randn(8, 3, 224, 224).to(memory_format=mf)
        report("resnet18_b8_train" + suf, train_step(m, o, x, torch.randint(0, 1000, (8,))), flops=3 * 8 * 2 * 1.814e9)
    for suf, mf in (("", torch.contiguous_format), ("_cl", torch.channels_last)):
        m = ResNet18().to(memory_format=mf).eval(); x1 = torch.randn(1, 3, 224, 224).to(memory_format=mf)
        def inf():
            with torch.inference_mode(): return m(x1)
        report("resnet18_b1_infer" + suf, inf, flops=2 * 1.814e9)
    m = ResNet18().eval(); x1 = torch.randn(1, 3, 224, 224)
    try:
        with torch.no_grad():
            tm = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(m, x1)))
            tm(x1); tm(x1)
        def inf2():
            with torch.inference_mode(): return tm(x1)
        report("resnet18_b1_infer_frozen", inf2, flops=2 * 1.814e9, note="jit.freeze+optimize_for_inference (folds BN, mkldnn layouts)")
    except Exception as e:
        print("resnet frozen failed:", repr(e)[:300], file=sys.stderr)
@case
def lstm():
    if not want("lstm_h256_i128_s64_b32_fwdbwd", "lstm_h256_i128_s64_b32_fwd"): return
    m = nn.LSTM(128, 256); x = torch.randn(64, 32, 128, requires_grad=True); g = torch.randn(64, 32, 256)
    def fb():
        m.zero_grad(set_to_none=True); x.grad = None
        m(x)[0].backward(g)
    report("lstm_h256_i128_s64_b32_fwdbwd", fb, flops=3 * 2 * 64 * 32 * 1024 * (128 + 256))
    def f():
        with torch.no_grad(): return m(x)[0]
    report("lstm_h256_i128_s64_b32_fwd", f, flops=2 * 64 * 32 * 1024 * (128 + 256))

class LNb(nn.Module):
    def __init__(s, n, bias):
        super().__init__(); s.weight = nn.Parameter(torch.ones(n)); s.bias = nn.Parameter(torch.zeros(n)) if bias else None
    def forward(s, x): return F.layer_norm(x, s.weight.shape, s.weight, s.bias, 1e-5)
class Attn(nn.Module):
    def __init__(s, d, h, bias, ctx):
        super().__init__(); s.h = h; s.qkv = nn.Linear(d, 3 * d, bias=bias); s.o = nn.Linear(d, d, bias=bias)
        s.register_buffer("mask", torch.tril(torch.ones(ctx, ctx)).view(1, 1, ctx, ctx))
    def forward(s, x, cache=None, pos=0):
        B, T, D = x.shape; q, k, v = s.qkv(x).split(D, 2); hd = D // s.h
        q = q.view(B, T, s.h, hd).transpose(1, 2); k = k.view(B, T, s.h, hd).transpose(1, 2); v = v.view(B, T, s.h, hd).transpose(1, 2)
        if cache is not None:  # decode: one token at position pos
            ck, cv = cache; ck[:, :, pos:pos + T] = k; cv[:, :, pos:pos + T] = v
            k, v = ck[:, :, :pos + T], cv[:, :, :pos + T]
            a = torch.softmax((q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(hd)), -1)
        else:
            a = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(hd))
            a = torch.softmax(a.masked_fill(s.mask[:, :, :T, :T] == 0, float("-inf")), -1)
        return s.o((a @ v).transpose(1, 2).contiguous().view(B, T, D))
class GBlock(nn.Module):
    def __init__(s, d, h, bias, ctx, approx):
        super().__init__(); s.l1 = LNb(d, bias); s.at = Attn(d, h, bias, ctx); s.l2 = LNb(d, bias)
        s.fc = nn.Linear(d, 4 * d, bias=bias); s.pr = nn.Linear(4 * d, d, bias=bias); s.ap = approx
    def forward(s, x, cache=None, pos=0):
        x = x + s.at(s.l1(x), cache, pos)
        return x + s.pr(F.gelu(s.fc(s.l2(x)), approximate=s.ap))
class GPT(nn.Module):
    def __init__(s, L, h, d, ctx, V, bias, approx):
        super().__init__(); s.wte = nn.Embedding(V, d); s.wpe = nn.Embedding(ctx, d)
        s.b = nn.ModuleList([GBlock(d, h, bias, ctx, approx) for _ in range(L)]); s.lf = LNb(d, bias)
        s.head = nn.Linear(d, V, bias=False)
        for p in s.parameters():
            if p.dim() > 1: nn.init.normal_(p, 0, 0.02)
        s.wte.weight = s.head.weight
    def forward(s, i, caches=None, pos=0):
        x = s.wte(i) + s.wpe(torch.arange(pos, pos + i.shape[1]))
        for j, b in enumerate(s.b): x = b(x, None if caches is None else caches[j], pos)
        return s.head(s.lf(x))
@case
def nanogpt():
    if not want("nanogpt_4l4h128_b12_t64_train"): return
    m = kept("nanogpt", lambda: GPT(4, 4, 128, 64, 65, False, "none")); forward = fused("nanogpt", m)
    dec = [p for p in m.parameters() if p.dim() > 1]; nod = [p for p in m.parameters() if p.dim() < 2]
    o = torch.optim.AdamW([dict(params=dec, weight_decay=0.1), dict(params=nod, weight_decay=0.0)], lr=1e-3, betas=(0.9, 0.99))
    x = torch.randint(0, 65, (12, 64)); t = torch.randint(0, 65, (12, 64))
    def go():
        o.zero_grad(set_to_none=True)
        F.cross_entropy(forward(x).view(-1, 65), t.view(-1)).backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
    n = sum(p.numel() for p in m.parameters())
    report("nanogpt_4l4h128_b12_t64_train", go, flops=6 * n * 12 * 64 + 12 * 4 * 128 * 64 * 12 * 64, note=f"{n} params", compiled=True)
@case
def gpt2():
    if not want("gpt2_124M_fwd_1x64", "gpt2_124M_decode_ctx64"): return
    m = GPT(12, 12, 768, 1024, 50257, True, "tanh").eval(); n = sum(p.numel() for p in m.parameters())
    i = torch.randint(0, 50257, (1, 64))
    def fwd():
        with torch.inference_mode(): return m(i)
    report("gpt2_124M_fwd_1x64", fwd, flops=2 * (n - 1024 * 768) * 64, note=f"{n} params, logits for all 64 positions")
    caches = [(torch.randn(1, 12, 1024, 64), torch.randn(1, 12, 1024, 64)) for _ in range(12)]
    j = torch.randint(0, 50257, (1, 1))
    def dec():
        with torch.inference_mode(): return m(j, caches, 64)
    report("gpt2_124M_decode_ctx64", dec, nbytes=4 * (n - 1024 * 768), note="one token with 64 in the KV cache, logits included")
@case
def attention():
    if not want("attention_8x12x1024x64_fwd", "attention_8x12x1024x64_fwdbwd"): return
    q, k, v, g = (torch.randn(8, 12, 1024, 64) for _ in range(4)); flops = 4 * 96 * 1024 * 1024 * 64
    def fwd():
        with torch.no_grad(): return F.scaled_dot_product_attention(q, k, v)
    report("attention_8x12x1024x64_fwd", fwd, flops=flops)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    def fb():
        for t in leaves: t.grad = None
        F.scaled_dot_product_attention(*leaves).backward(g)
    report("attention_8x12x1024x64_fwdbwd", fb, flops=3.5 * flops)
@case
def overhead():
    a, b = torch.randn(10), torch.randn(10)
    def f():
        for _ in range(1000): a + b
    report("tiny_add10_x1000", f)
    ag = torch.randn(10, requires_grad=True)
    def f2():
        for _ in range(1000): ag + b
    report("tiny_add10_grad_x1000", f2)
@case
def adamw():
    if not want("adamw_10M", "adamw_10M_foreach"): return
    for suf, fe in (("", False), ("_foreach", True)):
        ps = [torch.randn(1000, 1000, requires_grad=True) for _ in range(10)]
        for p in ps: p.grad = torch.randn(1000, 1000) * 0.01
        o = torch.optim.AdamW(ps, lr=1e-4, weight_decay=0.01, foreach=fe)
        report("adamw_10M" + suf, o.step, nbytes=28 * 10_000_000)

def run_all():
    for c in CASES: c()

if __name__ == "__main__":
    if A.serve:
        for line in sys.stdin:
            A.only = line.strip(); run_all(); print(flush=True)
    else:
        run_all()
