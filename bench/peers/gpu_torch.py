"""PyTorch peers on one GPU: eager and compiled, same work as the project's own cases.
Usage: gpu_torch.py OUT.json [case ...]; each case prints one JSON line. PEER_MODES=compile,eager takes these modes of training alone
(max-autotune, "compile-max", warms up for minutes)."""
import json, math, os, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
dev = "cuda"; torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True
OUT = open(sys.argv[1], "w") if len(sys.argv) > 1 else sys.stdout
WANT = set(sys.argv[2:])
def say(**k):
    line = json.dumps(k); print(line, flush=True); OUT.write(line + "\n"); OUT.flush()
def timeit(fn, n=20, warm=5, inner=5):
    for _ in range(warm): fn()
    torch.cuda.synchronize()
    ts = []
    for _ in range(n):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record()
        for _ in range(inner): fn()
        b.record(); torch.cuda.synchronize(); ts.append(a.elapsed_time(b) / inner)
    ts.sort(); return ts[len(ts) // 2]
def case(name):
    return not WANT or name in WANT

# ---------- models
class Attn(nn.Module):
    def __init__(s, C, H): super().__init__(); s.qkv = nn.Linear(C, 3 * C); s.o = nn.Linear(C, C); s.H = H
    def forward(s, x):
        B, T, C = x.shape
        q, k, v = s.qkv(x).split(C, 2)
        q, k, v = [t.view(B, T, s.H, C // s.H).transpose(1, 2) for t in (q, k, v)]
        return s.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))
class Block(nn.Module):
    def __init__(s, C, H):
        super().__init__(); s.l1 = nn.LayerNorm(C); s.a = Attn(C, H); s.l2 = nn.LayerNorm(C)
        s.f = nn.Linear(C, 4 * C); s.p = nn.Linear(4 * C, C)
    def forward(s, x):
        x = x + s.a(s.l1(x)); return x + s.p(F.gelu(s.f(s.l2(x)), approximate="tanh"))
class GPT(nn.Module):
    def __init__(s, V, T, L, H, C):
        super().__init__(); s.te = nn.Embedding(V, C); s.pe = nn.Embedding(T, C)
        s.b = nn.ModuleList([Block(C, H) for _ in range(L)]); s.ln = nn.LayerNorm(C); s.h = nn.Linear(C, V, bias=False); s.h.weight = s.te.weight
        for p in s.parameters():
            if p.dim() > 1: nn.init.normal_(p, 0, 0.02)
    def forward(s, i, t=None):
        x = s.te(i) + s.pe(torch.arange(i.shape[1], device=i.device))
        for b in s.b: x = b(x)
        lo = s.h(s.ln(x))
        return lo if t is None else F.cross_entropy(lo.view(-1, lo.shape[-1]), t.view(-1))
def gpt_flops(V, T, L, C): # per token fwd+bwd, 6N + attention
    N = 12 * L * C * C + V * C
    return 6 * N + 6 * L * C * T  # causal half: 12*L*C*T/2
def train_case(name, model, opt, batch, amp=torch.bfloat16, modes=("eager", "compile"), unit=1, unit_name="samples", flops=None, n=15):
    wanted = os.environ.get("PEER_MODES", "").split(",")
    for mode in modes:
        if wanted != [""] and mode not in wanted: continue
        try:
            torch._dynamo.reset(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
            m = model(); o = opt(m)
            def fwd(*b):
                with torch.autocast("cuda", amp, enabled=amp is not None): return m(*b)
            f = fwd
            t0 = time.time()
            if mode == "compile": f = torch.compile(fwd)
            if mode == "compile-graphs": f = torch.compile(fwd, mode="reduce-overhead")
            if mode == "compile-max": f = torch.compile(fwd, mode="max-autotune-no-cudagraphs")
            def step():
                l = f(*batch); l.backward(); o.step(); o.zero_grad(set_to_none=True); return l
            step(); torch.cuda.synchronize(); t1 = time.time()
            ms = timeit(step, n)
            r = dict(case=name, peer="torch-" + mode, ms=round(ms, 4), rate=round(unit / ms * 1e3, 1), unit=unit_name + "/s", first_s=round(t1 - t0, 2), peak_gib=round(torch.cuda.max_memory_allocated() / 2**30, 2))
            if flops: r["tflops"] = round(flops / ms / 1e9, 1)
            say(**r)
        except Exception as e:
            say(case=name, peer="torch-" + mode, error=repr(e)[:300])
        finally:
            m = o = f = None

adamw = lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
sgd = lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True)
ri = lambda hi, *s: torch.randint(0, hi, s, device=dev)

say(case="machine", gpu=torch.cuda.get_device_name(), torch=torch.__version__, cudnn=torch.backends.cudnn.version())
if case("ceilings"):
    a = torch.randn(8192, 8192, device=dev, dtype=torch.bfloat16); b = torch.randn_like(a)
    ms = timeit(lambda: a @ b); say(case="matmul-bf16-8192", peer="torch", ms=ms, tflops=round(2 * 8192**3 / ms / 1e9, 1))
    for M in (1024, 2048, 4096):
        x = torch.randn(M, M, device=dev, dtype=torch.bfloat16); y = torch.randn_like(x)
        ms = timeit(lambda: x @ y, 50); say(case=f"matmul-bf16-{M}", peer="torch", ms=ms, tflops=round(2 * M**3 / ms / 1e9, 1))
    x = torch.randn(4096, 4096, device=dev); y = torch.randn_like(x)
    ms = timeit(lambda: x @ y, 30); say(case="matmul-tf32-4096", peer="torch", ms=ms, tflops=round(2 * 4096**3 / ms / 1e9, 1))
    c = torch.randn(1 << 30, device=dev); d = torch.empty_like(c)
    ms = timeit(lambda: d.copy_(c)); say(case="copy-4GiB", peer="torch", ms=ms, gbs=round(2 * c.numel() * 4 / ms / 1e6, 1)); del c, d
    h = torch.empty(1 << 28, pin_memory=True); g = torch.empty(1 << 28, device=dev)
    ms = timeit(lambda: g.copy_(h, non_blocking=True), 5); say(case="h2d-pinned-1GiB", peer="torch", ms=ms, gbs=round(h.numel() * 4 / ms / 1e6, 1))
if case("micro"):
    n = 1 << 26
    x = torch.randn(n, device=dev, requires_grad=True)
    gelu = lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    for mode, f in (("eager", gelu), ("compile", torch.compile(gelu))):
        with torch.no_grad(): ms = timeit(lambda: f(x))
        say(case="gelu-chain-64M-fwd", peer="torch-" + mode, ms=ms, gbs=round(2 * n * 4 / ms / 1e6))
        gr = torch.ones(n, device=dev)
        def fb():
            x.grad = None; f(x).backward(gr)
        ms = timeit(fb); say(case="gelu-chain-64M-fwdbwd", peer="torch-" + mode, ms=ms, gbs=round(5 * n * 4 / ms / 1e6))
    for dt in (torch.float32, torch.bfloat16):
        z = torch.randn(8192, 8192, device=dev, dtype=dt); es = z.element_size()
        ln = nn.LayerNorm(8192).to(dev, dt)
        for nm, f, byt in (("softmax-8192x8192", lambda z: torch.softmax(z, -1), 2), ("layernorm-8192x8192", ln, 2), ("sum-axis0", lambda z: z.sum(0), 1), ("sum-axis1", lambda z: z.sum(1), 1), ("sum-all", lambda z: z.sum(), 1), ("transpose-copy", lambda z: z.t().contiguous(), 2),
            ("rmsnorm-prims", lambda z: z * torch.rsqrt((z.float() * z.float()).mean(-1, keepdim=True) + 1e-5).to(z.dtype), 2)):
            for mode, g in (("eager", f), ("compile", torch.compile(f))):
                with torch.no_grad(): ms = timeit(lambda: g(z))
                say(case=f"{nm}-{str(dt)[6:]}", peer="torch-" + mode, ms=ms, gbs=round(byt * z.numel() * es / ms / 1e6))
    lo = torch.randn(32768, 50304, device=dev, dtype=torch.bfloat16, requires_grad=True); t = ri(50304, 32768)
    for mode, f in (("eager", F.cross_entropy), ("compile", torch.compile(lambda a, b: F.cross_entropy(a, b)))):
        def fb(): lo.grad = None; f(lo, t).backward()
        ms = timeit(fb, 10); say(case="xent-32768x50304-bf16-fwdbwd", peer="torch-" + mode, ms=ms)
    del lo
    for (B, H, T, D) in ((32, 12, 1024, 64), (4, 16, 8192, 128)):
        q, k, v = [torch.randn(B, H, T, D, device=dev, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
        fl = 4 * B * H * T * T * D / 2
        from torch.nn.attention import sdpa_kernel, SDPBackend
        for bk in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, None):
            import contextlib
            try:
                with (sdpa_kernel(bk) if bk is not None else contextlib.nullcontext()):
                    ms = timeit(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)); say(case=f"sdpa-causal-{B}x{H}x{T}x{D}-fwd", peer="torch-" + str(bk), ms=ms, tflops=round(fl / ms / 1e9, 1))
                    o = F.scaled_dot_product_attention(q, k, v, is_causal=True); go = torch.randn_like(o)
                    def bw(): torch.autograd.grad(o, (q, k, v), go, retain_graph=True)
                    ms = timeit(bw); say(case=f"sdpa-causal-{B}x{H}x{T}x{D}-bwd", peer="torch-" + str(bk), ms=ms, tflops=round(2.5 * fl / ms / 1e9, 1))
            except Exception as e: say(case="sdpa", peer=str(bk), error=repr(e)[:200])
    small = torch.randn(10, device=dev)
    def adds():
        y = small
        for _ in range(1000): y = y + small
        return y
    torch.cuda.synchronize(); adds(); torch.cuda.synchronize(); t0 = time.time(); adds(); torch.cuda.synchronize()
    say(case="1000-tiny-adds", peer="torch-eager", ms=(time.time() - t0) * 1e3)
if case("gpt2"):
    B, T = 32, 1024
    i, t = ri(50257, B, T), ri(50257, B, T)
    train_case("gpt2-124M-train-B32-T1024-bf16", lambda: GPT(50304, T, 12, 12, 768).to(dev), adamw, (i, t), unit=B * T, unit_name="tokens", flops=gpt_flops(50304, T, 12, 768) * B * T, modes=("eager", "compile", "compile-max"))
if case("gpt2xl"):
    B, T = 8, 1024
    i, t = ri(50257, B, T), ri(50257, B, T)
    train_case("gpt2-1558M-train-B8-T1024-bf16", lambda: GPT(50304, T, 48, 25, 1600).to(dev), adamw, (i, t), unit=B * T, unit_name="tokens", flops=gpt_flops(50304, T, 48, 1600) * B * T, modes=("eager", "compile"), n=8)
if case("chargpt"):
    B, T = 64, 256
    i, t = ri(65, B, T), ri(65, B, T)
    train_case("chargpt-6x384-B64-T256-bf16", lambda: GPT(65, T, 6, 6, 384).to(dev), adamw, (i, t), unit=B * T, unit_name="tokens", modes=("eager", "compile", "compile-graphs"))
if case("mlp"):
    class MLP(nn.Module):
        def __init__(s): super().__init__(); s.a = nn.Linear(784, 256); s.b = nn.Linear(256, 10)
        def forward(s, x, t): return F.cross_entropy(s.b(F.relu(s.a(x))), t)
    x, t = torch.randn(64, 784, device=dev), ri(10, 64)
    train_case("mlp-784-256-10-B64-fp32", lambda: MLP().to(dev), adamw, (x, t), amp=None, unit=1, unit_name="steps", modes=("eager", "compile", "compile-graphs"), n=200)
if case("resnet50"):
    import torchvision
    class R(nn.Module):
        def __init__(s): super().__init__(); s.m = torchvision.models.resnet50()
        def forward(s, x, t): return F.cross_entropy(s.m(x), t)
    B = 256
    x, t = torch.randn(B, 3, 224, 224, device=dev).to(memory_format=torch.channels_last), ri(1000, B)
    train_case("resnet50-train-B256-bf16", lambda: R().to(dev, memory_format=torch.channels_last), sgd, (x, t), unit=B, unit_name="images", flops=3 * 2 * 4.09e9 * B)
    m = torchvision.models.resnet50().to(dev, torch.bfloat16, memory_format=torch.channels_last).eval()
    for Bi in (1, 256):
        xi = torch.randn(Bi, 3, 224, 224, device=dev, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        for mode, f in (("eager", m), ("compile-graphs", torch.compile(m, mode="reduce-overhead"))):
            with torch.no_grad(): ms = timeit(lambda: f(xi), 30)
            say(case=f"resnet50-infer-B{Bi}-bf16", peer="torch-" + mode, ms=ms, rate=round(Bi / ms * 1e3), unit="images/s")
if case("lstm"):
    class L(nn.Module):
        def __init__(s): super().__init__(); s.e = nn.Embedding(10000, 512); s.l = nn.LSTM(512, 1024, 2, batch_first=True); s.h = nn.Linear(1024, 10000)
        def forward(s, x, t): return F.cross_entropy(s.h(s.l(s.e(x))[0]).flatten(0, 1), t.flatten())
    B, T = 64, 512
    i, t = ri(10000, B, T), ri(10000, B, T)
    train_case("lstm-2x1024-B64-T512-bf16", lambda: L().to(dev), adamw, (i, t), unit=B * T, unit_name="tokens", modes=("eager",))
if case("decode"):
    # batch-1 decode with a static KV cache, GPT-2 124M and 1.5B, bf16
    for (nm, L, H, C) in (("124M", 12, 12, 768), ("1558M", 48, 25, 1600)):
        g = GPT(50304, 1024, L, H, C).to(dev, torch.bfloat16).eval()
        kc = torch.zeros(L, 2, 1, H, 1024, C // H, device=dev, dtype=torch.bfloat16); pos = torch.tensor([512], device=dev); mask = (torch.arange(1024, device=dev) <= pos)[None, None, None]
        def tok(i, pos):
            x = g.te(i) + g.pe(pos)
            for n, b in enumerate(g.b):
                q, k, v = b.a.qkv(b.l1(x)).split(C, 2)
                q, k, v = [z.view(1, 1, H, C // H).transpose(1, 2) for z in (q, k, v)]
                kc[n, 0].index_copy_(2, pos, k); kc[n, 1].index_copy_(2, pos, v)
                m_ = (torch.arange(1024, device=dev) <= pos)[None, None, None]
                x = x + b.a.o(F.scaled_dot_product_attention(q, kc[n, 0], kc[n, 1], attn_mask=m_).transpose(1, 2).reshape(1, 1, C))
                x = x + b.p(F.gelu(b.f(b.l2(x)), approximate="tanh"))
            return g.h(g.ln(x)).argmax(-1)
        i0 = ri(50257, 1, 1)
        npar = sum(p.numel() for p in g.parameters())
        for mode, f in (("eager", tok), ("compile-graphs", torch.compile(tok, mode="reduce-overhead"))):
            try:
                with torch.no_grad(): ms = timeit(lambda: f(i0, pos), 50, 10)
                say(case=f"gpt2-{nm}-decode-B1-bf16", peer="torch-" + mode, ms=ms, rate=round(1e3 / ms), unit="tokens/s", weights_gbs=round(npar * 2 / ms / 1e6))
            except Exception as e: say(case="decode", peer=mode, error=repr(e)[:300])
        del g
