// Workshop of the CPU backend: hand-built kernels timed alone, as time, GB/s against this machine's
// copy bandwidth and, for matmul, GFLOP/s.   bench_cpu_backend [part of a name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/support/threads.h"

using namespace ingot;

namespace {

std::unique_ptr<Backend> backend = make_cpu_backend();
std::string wanted;
double copy_gbs = 0;
double at_least = 0;  // seconds per case, for profiling: BENCH_SECONDS

struct Builder {
  KernelSpec k;
  using S = std::vector<int64_t>;
  Builder(S extent, int n_outer) {
    k.extent = std::move(extent);
    k.n_outer = n_outer;
  }
  int buffer(DType t, int64_t n, bool written, bool alias = false) {
    k.buffers.push_back({t, n, written, alias});
    return static_cast<int>(k.buffers.size()) - 1;
  }
  int add(Instr i) {
    if (i.map.stride.empty()) i.map.stride.assign(k.extent.size(), 0);
    k.instrs.push_back(std::move(i));
    return static_cast<int>(k.instrs.size()) - 1;
  }
  int load(int b, S stride, Level level = Level::Elem) {
    Instr i;
    i.kind = InstrKind::Load;
    i.dtype = k.buffers[static_cast<size_t>(b)].dtype;
    i.buffer = b;
    i.map.stride = std::move(stride);
    i.level = level;
    return add(i);
  }
  int num(double v) {
    Instr i;
    i.fvalue = v;
    return add(i);
  }
  int arg(int slot) {
    Instr i;
    i.kind = InstrKind::Arg;
    i.slot = slot;
    return add(i);
  }
  int op(Op o, int a, int b = -1, Level level = Level::Elem) {
    Instr i;
    i.kind = InstrKind::Compute;
    i.op = o;
    i.arg[0] = a;
    i.arg[1] = b;
    i.level = level;
    return add(i);
  }
  int reduce(Op o, int a) {
    Instr i;
    i.kind = InstrKind::Reduce;
    i.op = o;
    i.arg[0] = a;
    i.level = Level::Outer;
    return add(i);
  }
  void store(int v, int b, S stride) {
    Store s;
    s.value = v;
    s.buffer = b;
    s.map.stride = std::move(stride);
    k.stores.push_back(s);
  }
};

/// With one thread: processor time, which other programs on the machine disturb least.
double now() {
  if (get_num_threads() > 1)
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double best_of(const std::function<void()>& f) {
  f();
  double t0 = now();
  f();
  const int inner =
      static_cast<int>(std::max(1.0, 2e-5 / std::max(1e-9, now() - t0)));  // clocks cost, too
  double best = 1e9, total = 0;
  for (int r = 0; (r < 200 && (total < 0.25 || r < 4)) || total < at_least; ++r) {
    t0 = now();
    for (int i = 0; i < inner; ++i) f();
    const double d = now() - t0;
    best = std::min(best, d / inner);
    total += d;
  }
  return best;
}

struct Memory {
  std::vector<void*> ptr;
  std::vector<size_t> size;
  void add(size_t bytes, int fill_index = 0) {
    ptr.push_back(backend->allocate(0, bytes));
    size.push_back(bytes);
    float* f = static_cast<float*>(ptr.back());
    for (size_t i = 0; i < bytes / 4; ++i)
      f[i] = static_cast<float>(
                 static_cast<int>((i * 2654435761u + static_cast<unsigned>(fill_index)) >> 20) &
                 1023) /
                 256.0f -
             2.0f;
  }
  ~Memory() {
    for (size_t k = 0; k < ptr.size(); ++k) backend->deallocate(0, ptr[k], size[k]);
  }
};

void report(const char* name, double s, double bytes, double flops = 0) {
  std::printf("%-28s %10.4f ms", name, s * 1e3);
  if (bytes > 0)
    std::printf("  %6.1f GB/s (%3.0f%% of copy)", bytes / s / 1e9,
                100 * bytes / s / 1e9 / copy_gbs);
  if (flops > 0) std::printf("  %6.1f GFLOP/s", flops / s / 1e9);
  std::printf("\n");
  std::fflush(stdout);
}

bool skip(const char* name) { return !wanted.empty() && !std::strstr(name, wanted.c_str()); }

void bench(const char* name, std::vector<KernelSpec> parts, double bytes,
           std::function<void(Memory&)> prepare = nullptr) {
  if (skip(name)) return;
  Memory m;
  for (const KernelSpec& k : parts)
    for (const BufferSpec& b : k.buffers)
      m.add(static_cast<size_t>(b.numel) * size_of(b.dtype), static_cast<int>(m.ptr.size()));
  if (prepare) prepare(m);
  auto exe = backend->compile(0, parts);
  void* scratch = backend->allocate(0, exe->scratch_bytes);
  const double args[] = {1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01};
  const uint64_t seeds[] = {1}, offsets[] = {0};
  RunStatus status;
  RunArgs run{args, seeds, offsets, &status};
  report(name, best_of([&] { backend->launch(0, *exe, m.ptr.data(), scratch, run); }), bytes);
  backend->deallocate(0, scratch, exe->scratch_bytes);
}

// ---- Kernels

int gelu_value(Builder& b, int x, int* tanh_out = nullptr) {
  const int x3 = b.op(Op::Mul, b.op(Op::Mul, x, x), x);
  const int in =
      b.op(Op::Mul, b.num(0.79788456), b.op(Op::Add, x, b.op(Op::Mul, b.num(0.044715), x3)));
  const int t = b.op(Op::Tanh, in);
  if (tanh_out) *tanh_out = t;
  return b.op(Op::Mul, b.op(Op::Mul, b.num(0.5), x), b.op(Op::Add, b.num(1), t));
}

KernelSpec gelu(int64_t n) {
  Builder b({n}, 1);
  const int in = b.buffer(float32, n, false), out = b.buffer(float32, n, true);
  b.store(gelu_value(b, b.load(in, {1})), out, {1});
  return b.k;
}

KernelSpec gelu_backward(int64_t n) {
  Builder b({n}, 1);
  const int in = b.buffer(float32, n, false), grad = b.buffer(float32, n, false),
            out = b.buffer(float32, n, true), dx = b.buffer(float32, n, true);
  const int x = b.load(in, {1}), g = b.load(grad, {1});
  int t;
  b.store(gelu_value(b, x, &t), out, {1});
  const int dt = b.op(Op::Sub, b.num(1), b.op(Op::Mul, t, t));
  const int inner =
      b.op(Op::Mul, b.num(0.79788456),
           b.op(Op::Add, b.num(1), b.op(Op::Mul, b.num(3 * 0.044715), b.op(Op::Mul, x, x))));
  const int left = b.op(Op::Mul, b.num(0.5), b.op(Op::Add, b.num(1), t));
  const int right = b.op(Op::Mul, b.op(Op::Mul, b.op(Op::Mul, b.num(0.5), x), dt), inner);
  b.store(b.op(Op::Mul, g, b.op(Op::Add, left, right)), dx, {1});
  return b.k;
}

KernelSpec add(int64_t n) {
  Builder b({n}, 1);
  const int x = b.buffer(float32, n, false), y = b.buffer(float32, n, false),
            out = b.buffer(float32, n, true);
  b.store(b.op(Op::Add, b.load(x, {1}), b.load(y, {1})), out, {1});
  return b.k;
}

KernelSpec softmax(int64_t R, int64_t C, bool columns = false) {
  Builder b({R, C}, 1);
  const int in = b.buffer(float32, R * C, false), out = b.buffer(float32, R * C, true);
  const std::vector<int64_t> s = columns ? std::vector<int64_t>{1, R} : std::vector<int64_t>{C, 1};
  const int x = b.load(in, s), m = b.reduce(Op::Max, x), e = b.op(Op::Exp, b.op(Op::Sub, x, m));
  b.store(b.op(Op::Div, e, b.reduce(Op::Sum, e)), out, s);
  return b.k;
}

/// Returns xhat; mean and rstd are stored per row.
KernelSpec layer_norm(int64_t R, int64_t C) {
  Builder b({R, C}, 1);
  const int in = b.buffer(float32, R * C, false), w = b.buffer(float32, C, false),
            bias = b.buffer(float32, C, false), out = b.buffer(float32, R * C, true);
  const int x = b.load(in, {C, 1}), inv = b.num(1.0 / static_cast<double>(C));
  const int mean = b.op(Op::Mul, b.reduce(Op::Sum, x), inv, Level::Outer);
  const int d = b.op(Op::Sub, x, mean);
  const int var = b.op(Op::Mul, b.reduce(Op::Sum, b.op(Op::Mul, d, d)), inv, Level::Outer);
  const int rstd = b.op(Op::Rsqrt, b.op(Op::Add, var, b.num(1e-5), Level::Outer), -1, Level::Outer);
  const int y =
      b.op(Op::Add, b.op(Op::Mul, b.op(Op::Mul, d, rstd), b.load(w, {0, 1})), b.load(bias, {0, 1}));
  b.store(y, out, {C, 1});
  return b.k;
}

KernelSpec sum(int64_t A, int64_t B, int kind) {  // kind 0: over axis 0, 1: over axis 1, 2: all
  if (kind == 2) {
    Builder b({A * B}, 0);
    const int in = b.buffer(float32, A * B, false), out = b.buffer(float32, 1, true);
    b.store(b.reduce(Op::Sum, b.load(in, {1})), out, {0});
    return b.k;
  }
  Builder b(kind ? std::vector<int64_t>{A, B} : std::vector<int64_t>{B, A}, 1);
  const int in = b.buffer(float32, A * B, false), out = b.buffer(float32, kind ? A : B, true);
  b.store(
      b.reduce(Op::Sum, b.load(in, kind ? std::vector<int64_t>{B, 1} : std::vector<int64_t>{1, B})),
      out, {1, 0});
  return b.k;
}

KernelSpec transpose(int64_t n) {
  Builder b({n, n}, 2);
  const int in = b.buffer(float32, n * n, false), out = b.buffer(float32, n * n, true);
  b.store(b.load(in, {1, n}), out, {n, 1});
  return b.k;
}

KernelSpec embedding(int64_t rows, int64_t C, int64_t V) {
  Builder b({rows, C}, 2);
  const int idx = b.buffer(int64, rows, false), w = b.buffer(float32, V * C, false),
            out = b.buffer(float32, rows * C, true);
  const int i = b.load(idx, {1, 0});
  Instr l;
  l.kind = InstrKind::Load;
  l.buffer = w;
  l.map.stride = {0, 1};
  l.indirect = i;
  l.indirect_stride = C;
  l.indirect_extent = V;
  b.store(b.add(l), out, {C, 1});
  return b.k;
}

KernelSpec adamw(int64_t n) {
  Builder b({n}, 1);
  const int P = b.buffer(float32, n, true, true), G = b.buffer(float32, n, false),
            M = b.buffer(float32, n, true, true), V = b.buffer(float32, n, true, true);
  const int p = b.load(P, {1}), g = b.load(G, {1}), m = b.load(M, {1}), v = b.load(V, {1});
  const int lr = b.arg(0), b1 = b.arg(1), b2 = b.arg(2), c1 = b.arg(3), c2 = b.arg(4),
            eps = b.arg(5), wd = b.arg(6);
  const int m2 = b.op(Op::Add, b.op(Op::Mul, m, b1), b.op(Op::Mul, g, b.op(Op::Sub, b.num(1), b1)));
  const int v2 = b.op(Op::Add, b.op(Op::Mul, v, b2),
                      b.op(Op::Mul, b.op(Op::Mul, g, g), b.op(Op::Sub, b.num(1), b2)));
  const int den = b.op(Op::Add, b.op(Op::Sqrt, b.op(Op::Div, v2, c2)), eps);
  const int step = b.op(Op::Div, b.op(Op::Div, m2, c1), den);
  const int q = b.op(Op::Sub, p, b.op(Op::Mul, lr, b.op(Op::Add, step, b.op(Op::Mul, wd, p))));
  b.store(q, P, {1});
  b.store(m2, M, {1});
  b.store(v2, V, {1});
  for (Store& s : b.k.stores) s.predicated = true;
  return b.k;
}

void matmul(const char* name, int64_t batch, int64_t M, int64_t N, int64_t K,
            bool b_transposed = false) {
  if (skip(name)) return;
  Memory m;
  m.add(static_cast<size_t>(batch * M * N) * 4);
  m.add(static_cast<size_t>(batch * M * K) * 4);
  m.add(static_cast<size_t>(batch * K * N) * 4);
  LibrarySpec s;
  s.operands = {{float32, {batch, M, N}, {M * N, N, 1}, 0},
                {float32, {batch, M, K}, {M * K, K, 1}, 0},
                {float32, {batch, K, N}, b_transposed ? Dims{K * N, 1, K} : Dims{K * N, N, 1}, 0}};
  auto exe = backend->prepare(0, s);
  void* scratch = backend->allocate(0, exe->scratch_bytes);
  report(name, best_of([&] { backend->launch(0, *exe, m.ptr.data(), scratch, {}); }), 0,
         2.0 * static_cast<double>(batch * M) * static_cast<double>(N) * static_cast<double>(K));
  backend->deallocate(0, scratch, exe->scratch_bytes);
}

void scatter(const char* name, int64_t rows, int64_t C, int64_t V) {
  if (skip(name)) return;
  Memory m;
  m.add(static_cast<size_t>(V * C) * 4);
  m.add(static_cast<size_t>(rows) * 8);
  m.add(static_cast<size_t>(rows * C) * 4);
  for (int64_t i = 0; i < rows; ++i) static_cast<int64_t*>(m.ptr[1])[i] = (i * 2654435761) % V;
  LibrarySpec s;
  s.op = Op::ScatterAdd;
  s.attrs = IndexAttrs{};
  s.operands = {
      {float32, {V, C}, {C, 1}, 0}, {int64, {rows, C}, {1, 0}, 0}, {float32, {rows, C}, {C, 1}, 0}};
  auto exe = backend->prepare(0, s);
  RunStatus status;
  RunArgs run;
  run.status = &status;
  report(name, best_of([&] { backend->launch(0, *exe, m.ptr.data(), nullptr, run); }),
         static_cast<double>(4 * C * (V + 3 * rows)));
}

void measure_copy() {
  Memory m;
  const size_t bytes = size_t{128} << 20;
  m.add(bytes);
  m.add(bytes);
  const double s = best_of([&] { backend->copy_on_device(0, m.ptr[1], m.ptr[0], bytes); });
  copy_gbs = 2.0 * static_cast<double>(bytes) / s / 1e9;
  std::printf("copy: %.1f GB/s read and written, %d threads\n", copy_gbs, get_num_threads());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  measure_copy();
  if (const char* e = std::getenv("BENCH_SECONDS")) at_least = std::atof(e);
  const int64_t n16 = 16 << 20;
  bench("add_10", {add(10)}, 0);
  bench("add_10 x1000", std::vector<KernelSpec>(1000, add(10)), 0);
  bench("add_16M", {add(n16)}, 12.0 * n16);
  bench("gelu_16M", {gelu(n16)}, 8.0 * n16);
  bench("gelu_16K", {gelu(16 << 10)}, 8.0 * (16 << 10));
  bench("gelu_fwdbwd_16M", {gelu_backward(n16)}, 16.0 * n16);
  bench("softmax_4096x1024", {softmax(4096, 1024)}, 8.0 * 4096 * 1024);
  bench("softmax_64x100000", {softmax(64, 100000)}, 8.0 * 6400000);
  bench("softmax_4096x64", {softmax(4096, 64)}, 8.0 * 4096 * 64);
  bench("softmax_columns_1024x4096", {softmax(4096, 1024, true)}, 8.0 * 4096 * 1024);
  bench("layer_norm_4096x768", {layer_norm(4096, 768)}, 8.0 * 4096 * 768);
  bench("layer_norm_64x768", {layer_norm(64, 768)}, 8.0 * 64 * 768);
  bench("softmax_64x1024", {softmax(64, 1024)}, 8.0 * 64 * 1024);
  bench("adamw_16K", {adamw(16 << 10)}, 28.0 * (16 << 10));
  bench("gelu_fwdbwd_16K", {gelu_backward(16 << 10)}, 16.0 * (16 << 10));
  bench("sum_axis0_4096", {sum(4096, 4096, 0)}, 4.0 * n16);
  bench("sum_axis1_4096", {sum(4096, 4096, 1)}, 4.0 * n16);
  bench("sum_all_4096", {sum(4096, 4096, 2)}, 4.0 * n16);
  bench("transpose_4096", {transpose(4096)}, 8.0 * n16);
  bench("embedding_8192x768", {embedding(8192, 768, 50257)}, 8.0 * 8192 * 768, [](Memory& m) {
    for (int64_t i = 0; i < 8192; ++i)
      static_cast<int64_t*>(m.ptr[0])[i] = (i * 2654435761) % 50257;
  });
  bench("adamw_10M", std::vector<KernelSpec>(10, adamw(1000000)), 28e7);
  scatter("scatter_8192x768", 8192, 768, 50257);
  matmul("matmul_512", 1, 512, 512, 512);
  matmul("matmul_1024", 1, 1024, 1024, 1024);
  matmul("matmul_2048", 1, 2048, 2048, 2048);
  matmul("bmm_64x128x64x128", 64, 128, 128, 64);
  matmul("linear_64x784x256", 1, 64, 256, 784, true);
  matmul("linear_768x128x512", 1, 768, 512, 128, true);
  matmul("linear_64x256x10", 1, 64, 10, 256, true);
  matmul("decode_1x768x3072", 1, 1, 3072, 768, true);
  matmul("matmul_16x16x16", 1, 16, 16, 16);
}
