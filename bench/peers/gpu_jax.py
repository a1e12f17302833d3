"""JAX peers on one GPU (same cases as gpu_torch.py). Usage: gpu_jax.py OUT.json [case ...]"""
import json, sys, time, functools
import jax, jax.numpy as jnp
OUT = open(sys.argv[1], "w"); WANT = set(sys.argv[2:])
def say(**k):
    l = json.dumps(k); print(l, flush=True); OUT.write(l + "\n"); OUT.flush()
def case(n): return not WANT or n in WANT
def timeit(fn, n=20, warm=3, inner=5):
    for _ in range(warm): r = fn()
    jax.block_until_ready(r); ts = []
    for _ in range(n):
        t = time.perf_counter()
        for _ in range(inner): r = fn()
        jax.block_until_ready(r); ts.append((time.perf_counter() - t) / inner * 1e3)
    ts.sort(); return ts[len(ts) // 2]
key = jax.random.PRNGKey(0)
def init(V, T, L, C):
    k = iter(jax.random.split(key, 8)); n = lambda *s: 0.02 * jax.random.normal(next(k), s)
    return dict(te=n(V, C), pe=n(T, C), l1g=jnp.ones((L, C)), l1b=jnp.zeros((L, C)), qkv=n(L, C, 3 * C), qb=jnp.zeros((L, 3 * C)), o=n(L, C, C), ob=jnp.zeros((L, C)),
        l2g=jnp.ones((L, C)), l2b=jnp.zeros((L, C)), f=n(L, C, 4 * C), fb=jnp.zeros((L, 4 * C)), p=n(L, 4 * C, C), pb=jnp.zeros((L, C)), lg=jnp.ones(C), lb=jnp.zeros(C))
def ln(x, g, b):
    x32 = x.astype(jnp.float32); m = x32.mean(-1, keepdims=True); v = ((x32 - m) ** 2).mean(-1, keepdims=True)
    return ((x32 - m) * jax.lax.rsqrt(v + 1e-5) * g + b).astype(x.dtype)
def gpt_loss(P, i, t, L, H, unroll=True):
    bf = jnp.bfloat16; P16 = jax.tree.map(lambda a: a.astype(bf), P); B, T = i.shape; C = P["te"].shape[1]
    x = P16["te"][i] + P16["pe"][:T]
    for l in range(L):
        h = ln(x, P["l1g"][l], P["l1b"][l]) @ P16["qkv"][l] + P16["qb"][l]
        q, k, v = [z.reshape(B, T, H, C // H) for z in jnp.split(h, 3, -1)]
        a = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").reshape(B, T, C)
        x = x + a @ P16["o"][l] + P16["ob"][l]
        h = jax.nn.gelu(ln(x, P["l2g"][l], P["l2b"][l]) @ P16["f"][l] + P16["fb"][l], approximate=True)
        x = x + h @ P16["p"][l] + P16["pb"][l]
    lo = (ln(x, P["lg"], P["lb"]) @ P16["te"].T).astype(jnp.float32)
    return (jax.nn.logsumexp(lo, -1) - jnp.take_along_axis(lo, t[..., None], -1)[..., 0]).mean()
def adamw(P, M, V, G, n):
    b1, b2 = 0.9, 0.999
    M = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, M, G); V = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, V, G)
    P = jax.tree.map(lambda p, m, v: p - 1e-4 * (m / (1 - b1 ** n) / (jnp.sqrt(v / (1 - b2 ** n)) + 1e-8) + 0.1 * p), P, M, V)
    return P, M, V
def train(name, V, T, L, H, C, B):
    P = init(V, T, L, C); M = jax.tree.map(jnp.zeros_like, P); S = jax.tree.map(jnp.zeros_like, P)
    i = jax.random.randint(key, (B, T), 0, min(V, 50257)); t = jax.random.randint(key, (B, T), 0, min(V, 50257))
    @functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def step(P, M, S, n):
        l, G = jax.value_and_grad(gpt_loss)(P, i, t, L, H); P, M, S = adamw(P, M, S, G, n); return P, M, S, n + 1, l
    st = [(P, M, S, jnp.float32(1))]
    def go():
        P, M, S, n, l = step(*st[0]); st[0] = (P, M, S, n); return l
    t0 = time.time(); jax.block_until_ready(go()); t1 = time.time()
    ms = timeit(go, 8, 2, 3); N = 12 * L * C * C + V * C; fl = (6 * N + 6 * L * C * T) * B * T
    say(case=name, peer="jax", ms=round(ms, 4), rate=round(B * T / ms * 1e3), unit="tokens/s", first_s=round(t1 - t0, 1), tflops=round(fl / ms / 1e9, 1))
say(case="machine", jax=jax.__version__, dev=str(jax.devices()))
if case("gpt2"): train("gpt2-124M-train-B32-T1024-bf16", 50304, 1024, 12, 12, 768, 32)
if case("chargpt"): train("chargpt-6x384-B64-T256-bf16", 65, 256, 6, 6, 384, 64)
if case("mlp"):
    P = dict(a=jax.random.normal(key, (784, 256)) * 0.05, b=jnp.zeros(256), c=jax.random.normal(key, (256, 10)) * 0.05, d=jnp.zeros(10)); Z = jax.tree.map(jnp.zeros_like, P)
    x = jax.random.normal(key, (64, 784)); t = jax.random.randint(key, (64,), 0, 10)
    def loss(P):
        lo = jax.nn.relu(x @ P["a"] + P["b"]) @ P["c"] + P["d"]; return (jax.nn.logsumexp(lo, -1) - jnp.take_along_axis(lo, t[:, None], 1)[:, 0]).mean()
    @functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def step(P, M, S, n):
        l, G = jax.value_and_grad(loss)(P); P, M, S = adamw(P, M, S, G, n); return P, M, S, n + 1, l
    st = [(P, Z, jax.tree.map(jnp.zeros_like, P), jnp.float32(1))]
    def go():
        P, M, S, n, l = step(*st[0]); st[0] = (P, M, S, n); return l
    ms = timeit(go, 20, 3, 200); say(case="mlp-784-256-10-B64-fp32", peer="jax", ms=ms, rate=round(1e3 / ms), unit="steps/s")
if case("micro"):
    x = jax.random.normal(key, (1 << 26,)); g = lambda x: 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x * x * x))); f = jax.jit(g)
    ms = timeit(lambda: f(x)); say(case="gelu-chain-64M-fwd", peer="jax", ms=ms, gbs=round(2 * 4 * x.size / ms / 1e6))
    z = jax.random.normal(key, (8192, 8192))
    for nm, h, b in (("softmax", lambda z: jax.nn.softmax(z, -1), 2), ("sum-axis0", lambda z: z.sum(0), 1), ("sum-axis1", lambda z: z.sum(1), 1), ("layernorm", lambda z: ln(z, 1.0, 0.0), 2)):
        for dt in (jnp.float32, jnp.bfloat16):
            zz = z.astype(dt); hh = jax.jit(h); ms = timeit(lambda: hh(zz), 10, 3, 20); say(case=(f"{nm}-8192x8192-{dt.__name__}" if nm in ("softmax", "layernorm") else f"{nm}-{dt.__name__}"), peer="jax", ms=ms, gbs=round(b * zz.size * zz.dtype.itemsize / ms / 1e6))
