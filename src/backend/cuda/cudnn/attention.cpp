// See attention.h. What cuDNN wants (seen with 9.14 and 9.19): K given as transposed strides,
// 16-bit probabilities, row sums and the dQ accumulator as real float32 tensors, the accumulator
// cleared by the caller.
#include "backend/cuda/cudnn/attention.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <memory>

#include "backend/cuda/cudnn/dnn.h"
#include "backend/cuda/cudnn/dnn_api.h"
#include "backend/cuda/runtime/gpu.h"
#include "base/env.h"

namespace ingot::cuda {
namespace {

using namespace dnn;
using Operand = OperandSpec;
enum Uid : int64_t {
  Q = 1,
  K,
  V,
  O,
  Stats,
  Scale,
  NegInf,
  One,
  DO,
  DQ,
  DK,
  DV,
  DQAcc,
  RowSum,
  Bias
};

cudnnDataType_t type_of(DType t) {
  return t == DType::Float16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}
Dims dims_of(const Operand& o) { return o.shape.vec(); }
Dims strides_of(const Operand& o) { return o.stride.vec(); }
Dims swapped(Dims d) {
  std::swap(d[2], d[3]);
  return d;
}

Tensor causal(Graph& g, const Tensor& s, const Tensor& neg_inf) {
  Tensor row = g.like(s, CUDNN_DATA_INT32), col = g.like(s, CUDNN_DATA_INT32),
         keep = g.like(s, CUDNN_DATA_BOOLEAN), out = g.like(s);
  g.pointwise(CUDNN_POINTWISE_GEN_INDEX, s, nullptr, nullptr, row, 2);
  g.pointwise(CUDNN_POINTWISE_GEN_INDEX, s, nullptr, nullptr, col, 3);
  g.pointwise(CUDNN_POINTWISE_CMP_GE, row, &col, nullptr, keep, -1, CUDNN_DATA_BOOLEAN);
  g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, s, &neg_inf, &keep, out);
  return out;
}

struct Sizes {
  int64_t b, h, t, s, d;
  explicit Sizes(const AttentionProblem& p) {
    const Operand &q = p.operands[p.backward ? 3 : 2], &k = p.operands[p.backward ? 4 : 3];
    b = q.shape[0], h = q.shape[1], t = q.shape[2], d = q.shape[3], s = k.shape[2];
  }
  Dims rows() const { return {b, h, t, 1}; }
  Dims row_strides() const { return {h * t, t, 1, 1}; }
  Dims square() const { return {b, h, t, s}; }
  Dims square_strides() const { return {h * t * s, t * s, s, 1}; }
};

Tensor bias_of(Graph& g, const AttentionProblem& p) {
  const Operand& b = p.operands.back();
  return g.tensor(Bias, dims_of(b), strides_of(b), type_of(b.dtype));
}

void build_forward(Graph& g, const AttentionProblem& p) {
  Sizes z(p);
  const Operand &o = p.operands[0], &qo = p.operands[2], &ko = p.operands[3], &vo = p.operands[4];
  cudnnDataType_t t = type_of(qo.dtype);
  Tensor q = g.tensor(Q, dims_of(qo), strides_of(qo), t),
         kt = g.tensor(K, swapped(dims_of(ko)), swapped(strides_of(ko)), t);
  Tensor v = g.tensor(V, dims_of(vo), strides_of(vo), t),
         out = g.tensor(O, dims_of(o), strides_of(o), t);
  Tensor product = g.temp(z.square(), z.square_strides());
  g.matmul(q, kt, product);
  Tensor s = g.binary(CUDNN_POINTWISE_MUL, product, g.scalar(Scale));
  if (p.bias) s = g.binary(CUDNN_POINTWISE_ADD, s, bias_of(g, p));
  if (p.causal) s = causal(g, s, g.scalar(NegInf));
  Tensor most = g.temp(z.rows(), z.row_strides()), sum = g.temp(z.rows(), z.row_strides());
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, s, most);
  Tensor e = g.unary(CUDNN_POINTWISE_EXP, g.binary(CUDNN_POINTWISE_SUB, s, most));
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, e, sum);
  Tensor stats = g.tensor(Stats, z.rows(), z.row_strides(), CUDNN_DATA_FLOAT),
         log = g.unary(CUDNN_POINTWISE_LOG, sum);
  g.pointwise(CUDNN_POINTWISE_ADD, most, &log, nullptr, stats);
  Tensor probability = g.like(e, t);
  g.pointwise(CUDNN_POINTWISE_DIV, e, &sum, nullptr, probability);
  g.matmul(probability, v, out);
}

void build_backward(Graph& g, const AttentionProblem& p) {
  Sizes z(p);
  const auto& x = p.operands;
  cudnnDataType_t t = type_of(x[3].dtype);
  Tensor q = g.tensor(Q, dims_of(x[3]), strides_of(x[3]), t),
         kt = g.tensor(K, swapped(dims_of(x[4])), swapped(strides_of(x[4])), t);
  Tensor vt = g.tensor(V, swapped(dims_of(x[5])), swapped(strides_of(x[5])), t),
         o = g.tensor(O, dims_of(x[6]), strides_of(x[6]), t);
  Tensor dout = g.tensor(DO, dims_of(x[7]), strides_of(x[7]), t);
  Tensor stats = g.tensor(Stats, z.rows(), z.row_strides(), CUDNN_DATA_FLOAT),
         scale = g.scalar(Scale), one = g.scalar(One);
  Tensor product = g.temp(dims_of(x[6]), {z.h * z.t * z.d, z.t * z.d, z.h * z.d, 1}),
         sums = g.temp(z.rows(), z.row_strides());
  Tensor row_sum = g.tensor(RowSum, z.rows(), z.row_strides(), CUDNN_DATA_FLOAT);
  g.pointwise(CUDNN_POINTWISE_MUL, dout, &o, nullptr, product);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, product, sums);
  g.pointwise(CUDNN_POINTWISE_MUL, sums, &one, nullptr, row_sum);
  Tensor s = g.temp(z.square(), z.square_strides()), dp = g.temp(z.square(), z.square_strides());
  g.matmul(q, kt, s);
  Tensor scaled = g.binary(CUDNN_POINTWISE_MUL, s, scale);
  if (p.bias) scaled = g.binary(CUDNN_POINTWISE_ADD, scaled, bias_of(g, p));
  Tensor shifted = g.binary(CUDNN_POINTWISE_SUB, scaled, stats);
  if (p.causal) shifted = causal(g, shifted, g.scalar(NegInf));
  Tensor e = g.unary(CUDNN_POINTWISE_EXP, shifted);
  g.matmul(g.transposed(e, t), dout, g.tensor(DV, dims_of(x[2]), strides_of(x[2]), t));
  g.matmul(dout, vt, dp);
  Tensor ds =
      g.binary(CUDNN_POINTWISE_MUL,
               g.binary(CUDNN_POINTWISE_MUL, g.binary(CUDNN_POINTWISE_SUB, dp, row_sum), e), scale);
  g.matmul(g.transposed(ds, t), q, g.tensor(DK, dims_of(x[1]), strides_of(x[1]), t));
  Tensor acc =
      g.tensor(DQAcc, dims_of(x[0]), {z.h * z.t * z.d, z.t * z.d, z.d, 1}, CUDNN_DATA_FLOAT);
  g.matmul(ds, g.transposed(kt, t), acc);
  g.pointwise(CUDNN_POINTWISE_IDENTITY, acc, nullptr, nullptr,
              g.tensor(DQ, dims_of(x[0]), strides_of(x[0]), t));
}

bool runs(Gpu& gpu, Dnn& d, const AttentionProblem& p, const std::shared_ptr<Graph>& g);

/// A planned graph, shared by all calls of the same problem on a GPU (one plan takes up to a
/// second); nullptr when cuDNN has none, or has one that it then does not run.
std::shared_ptr<Graph> planned(Gpu& gpu, Dnn& d, const AttentionProblem& p) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Graph>> plans;
  std::string key = std::to_string(gpu.ordinal) + (p.backward ? "b" : "f") +
                    (p.causal ? "c" : "n") + (p.bias ? "+" : "");
  for (const Operand& o : p.operands)
    key += "|" + std::string(name_of(o.dtype)) + to_string(o.shape) + to_string(o.stride);
  std::lock_guard lock(mutex);
  auto at = plans.find(key);
  if (at != plans.end()) return at->second;
  auto g = std::make_shared<Graph>();
  std::string why;
  try {
    p.backward ? build_backward(*g, p) : build_forward(*g, p);
    if (!g->plan(static_cast<cudnnHandle_t>(d.handle), nullptr, why) || !runs(gpu, d, p, g))
      g = nullptr;
  } catch (const std::exception& e) {
    why = e.what();
    g = nullptr;
  }
  if (!g && env::debug("plan"))
    std::fprintf(stderr, "[ingot plan] cuDNN refuses attention, which is decomposed: %s\n",
                 why.c_str());
  return plans[key] = g;
}

class Attention : public CudaExecutable {
 public:
  Attention(Dnn& d, AttentionProblem p, std::shared_ptr<Graph> g)
      : dnn_(d), p_(std::move(p)), graph_(std::move(g)) {
    Sizes z(p_);
    if (p_.backward || p_.own_rows) rows_ = rounded(static_cast<size_t>(z.b * z.h * z.t) * 4);
    if (p_.backward) {
      sums_ = rounded(static_cast<size_t>(z.b * z.h * z.t * z.d) * 4);
    }
    scratch_bytes = rows_ + sums_ + rounded(static_cast<size_t>(graph_->workspace));
  }

  void enqueue(const LaunchSite& site) override {
    auto place = [&](int i) {
      const Operand& o = p_.operands[static_cast<size_t>(i)];
      int buffer = p_.own_rows && i > 1 ? i - 1 : i;
      return static_cast<void*>(static_cast<char*>(site.address(buffer)) +
                                o.offset * static_cast<int64_t>(size_of(o.dtype)));
    };
    auto* scratch = static_cast<char*>(site.header.scratch);
    float scale = static_cast<float>(p_.scale), neg_inf = std::numeric_limits<float>::lowest(),
          one = 1;
    std::vector<int64_t> uids;
    std::vector<void*> pointers;
    auto add = [&](int64_t uid, void* p) {
      uids.push_back(uid);
      pointers.push_back(p);
    };
    add(Scale, &scale);
    if (p_.causal) add(NegInf, &neg_inf);
    if (!p_.backward) {
      const Uid order[] = {O, Stats, Q, K, V};
      for (int i = 0; i < 5; ++i) add(order[i], i == 1 && p_.own_rows ? scratch : place(i));
    } else {
      const Uid order[] = {DQ, DK, DV, Q, K, V, O, DO, Stats};
      for (int i = 0; i < 9; ++i) add(order[i], place(i));
      add(One, &one);
      add(RowSum, scratch);
      add(DQAcc, scratch + rows_);
      ingot::cuda::check(driver().memset_d8_async(reinterpret_cast<CUdeviceptr>(scratch + rows_), 0,
                                                  sums_, site.stream),
                         "clearing memory");
    }
    if (p_.bias) add(Bias, place(static_cast<int>(p_.operands.size()) - 1));
    dnn_.use(site.stream);
    graph_->run(static_cast<cudnnHandle_t>(dnn_.handle), uids, pointers, scratch + rows_ + sums_);
  }

 private:
  static size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }
  Dnn& dnn_;
  AttentionProblem p_;
  std::shared_ptr<Graph> graph_;
  size_t rows_ = 0, sums_ = 0;
};

/// Launches it once on memory that means nothing. Throws when cuDNN does not run its own plan.
/// Where there is no memory to try, the plan is believed.
bool runs(Gpu& gpu, Dnn& d, const AttentionProblem& p, const std::shared_ptr<Graph>& g) {
  Attention call(d, p, g);
  size_t bytes = 0;
  for (const Operand& o : p.operands) {
    int64_t last = o.offset;
    for (int i = 0; i < o.shape.size(); ++i) last += (o.shape[i] - 1) * o.stride[i];
    bytes = std::max(bytes, static_cast<size_t>(last + 1) * size_of(o.dtype));
  }
  bytes = (bytes + 255) / 256 * 256;
  std::lock_guard lock(gpu.mutex);
  CUdeviceptr memory = 0;
  if (driver().mem_alloc(&memory, bytes + call.scratch_bytes) != CUDA_SUCCESS) return true;
  const std::vector<int64_t> pointers(p.operands.size(), static_cast<int64_t>(memory));
  LaunchSite site;
  site.stream = gpu.compute;
  site.pointers = pointers.data();
  site.header.scratch = reinterpret_cast<void*>(memory + bytes);
  std::exception_ptr failure;
  try {
    call.enqueue(site);
  } catch (...) {
    failure = std::current_exception();
  }
  driver().mem_free(memory);  // waits for the device
  if (failure) std::rethrow_exception(failure);
  return true;
}

}  // namespace

// A dim of one element has any stride, often 0; cuDNN wants one that could be a real one.
static void give_strides(Operand& o) {
  int64_t whole = 8;
  for (int d = 0; d < o.shape.size(); ++d)
    if (o.shape[d] > 1) whole = std::max(whole, o.stride[d] * o.shape[d]);
  for (int d = 0; d + 1 < o.shape.size(); ++d)
    if (o.shape[d] == 1) o.stride[d] = (whole + 7) / 8 * 8;
}

AttentionProblem attention_problem(const LibrarySpec& spec) {
  AttentionProblem p{spec.op == Op::AttentionGrad, spec.attrs.as<AttentionAttrs>().causal(),
                     spec.attrs.as<AttentionAttrs>().scale, spec.operands};
  p.bias = spec.operands.size() == (p.backward ? 10u : static_cast<size_t>(spec.written) + 4u);
  if (!p.backward && spec.written == 1) {
    const ingot::Dims& q = p.operands[1].shape;
    ingot::Dims rows{q[0], q[1], q[2]};
    p.operands.insert(p.operands.begin() + 1, {DType::Float32, rows, row_major(rows), 0});
    p.own_rows = true;
  }
  for (size_t i = 0; i + (p.bias ? 1 : 0) < p.operands.size(); ++i) {
    Operand& o = p.operands[i];
    if (o.shape.size() == 4) give_strides(o);
    if (o.shape.size() != 3) continue;
    const ingot::Dims packed = row_major(o.shape);
    for (int d = 0; d < 3; ++d)
      if (o.shape[d] == 1) o.stride[d] = packed[d];
  }
  return p;
}

const char* attention_refuses(const AttentionProblem& p) {
  if (p.operands.size() != (p.backward ? 9u : 5u) + (p.bias ? 1u : 0u))
    return "wrong number of operands";
  size_t lse = p.backward ? 8 : 1;
  for (size_t i = 0; i < p.operands.size(); ++i) {
    const Operand& o = p.operands[i];
    if (i == lse) {
      if (o.dtype != DType::Float32 || o.shape.size() != 3 || !(o.stride == row_major(o.shape)))
        return "lse is not a dense float32 [B,H,T]";
      continue;
    }
    if (!is_half(o.dtype) || o.shape.size() != 4) return "not float16 or bfloat16 [B,H,T,D]";
    if (o.stride[3] != 1) return "the last stride is not 1";
    bool bias = p.bias && i + 1 == p.operands.size();
    for (int d = 0; d < 3; ++d)
      if (o.stride[d] % 8 != 0 || (o.stride[d] == 0 && !(bias && o.shape[d] == 1)))
        return "a stride is not a multiple of 16 bytes";
    if (o.offset % 8 != 0) return "an operand is not aligned to 16 bytes";
  }
  Sizes z(p);
  const Operand& k = p.operands[p.backward ? 4 : 3];
  if (z.d % 8 != 0 || z.d > 128) return "the head size is not a multiple of 8 up to 128";
  if (k.shape[1] != z.h) return "grouped heads";
  if (p.bias) {
    const ingot::Dims& b = p.operands.back().shape;
    bool ok =
        (b[0] == 1 || b[0] == z.b) && (b[1] == 1 || b[1] == z.h) && b[2] == z.t && b[3] == z.s;
    if (!ok) return "a bias that is not [B or 1, H or 1, T, S]";
    if (p.causal) return "causal with a bias";
  }
  if (p.causal && z.t != z.s) return "causal with queries and keys of different lengths";
  return nullptr;
}

std::unique_ptr<Executable> prepare_attention(Gpu& gpu, const AttentionProblem& p) {
  gpu.make_current();
  Dnn* d = gpu.dnn();
  if (!d || attention_refuses(p)) return nullptr;
  std::shared_ptr<Graph> g = planned(gpu, *d, p);
  if (!g) return nullptr;
  return std::make_unique<Attention>(*d, p, std::move(g));
}

std::string plan_attention_for(const std::string& device_json, const AttentionProblem& p) {
  std::string why;
  if (!functions(&why)) return why;
  if (const char* refusal = attention_refuses(p)) return refusal;
  try {
    Desc device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device
        .put(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<int64_t>(device_json.size()), device_json.data())
        .done();
    Graph g;
    p.backward ? build_backward(g, p) : build_forward(g, p);
    if (g.plan(nullptr, &device, why)) return {};
    return "no engine (" + std::to_string(g.candidates) + " candidates):" + why;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace ingot::cuda
