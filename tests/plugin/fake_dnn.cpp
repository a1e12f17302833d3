// cuDNN for the fake CUDA machine: descriptors are kept as they are set, and of all graphs
// attention's alone have an engine, which computes naively in float64. FAKE_CUDNN makes it refuse,
// at each question:
//   engines    no graph has an engine        gradients   no gradient has one
//   execute    plans are made and not run
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/convert.h"
#include "plugin/fake_machine.h"

using fake::kOk;

namespace {

// Constants of cudnn_backend.h, repeated here, so that no header is needed: kinds of descriptors,
// their attributes, the attributes' types, types of elements, statuses.
enum { kConvolution = 1, kTensor = 17, kHeuristic = 4, kPlan = 5 };
enum {
  kGraphOps = 801,
  kTensorVirtual = 907,
  kTensorUid = 906,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorType = 901,
  kHeuristicGraph = 201,
  kPlanConfig = 401,
  kHeuristicResults = 202,
  kPlanWorkspace = 402,
  kPackUids = 1000,
  kPackPointers = 1001
};
enum {
  kInt64 = 3,
  kDouble = 5,
  kHandle = 0,
  kPointer = 6,
  kDescriptor = 15,
  kBoolean = 2,
  kChar = 24
};
enum { kFloat = 0, kHalf = 2 };
enum { kNotSupported = 3000, kBadParameter = 2000, kExecutionFailed = 5000 };

// What backend/cuda/cudnn/attention.cpp calls its operands.
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

int executed = 0;

bool refuses(const char* what) {
  const char* e = std::getenv("FAKE_CUDNN");
  return e && std::strcmp(e, what) == 0;
}

struct Operand {
  std::vector<int64_t> dims, strides;
  int type = kFloat;
  char* data = nullptr;

  char* at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t i[] = {a, b, c, d};
    int64_t n = 0;
    for (size_t k = 0; k < 4; ++k) n += (dims[k] == 1 ? 0 : i[k]) * strides[k];
    return data + n * (type == kFloat ? 4 : 2);
  }
  ingot::DType dtype() const {
    return type == kFloat  ? ingot::DType::Float32
           : type == kHalf ? ingot::DType::Float16
                           : ingot::DType::BFloat16;
  }
  double get(int64_t a, int64_t b, int64_t c, int64_t d) const {
    double x = 0;
    ingot::convert_elements(&x, ingot::DType::Float64, at(a, b, c, d), dtype(), 1);
    return x;
  }
  void set(int64_t a, int64_t b, int64_t c, int64_t d, double x) const {
    ingot::convert_elements(at(a, b, c, d), dtype(), &x, ingot::DType::Float64, 1);
  }
};
using Problem = std::map<int64_t, Operand>;  // by what they are called; none: no attention

struct Descriptor {
  int type;
  std::map<int, std::vector<char>> attributes;
  std::map<int, int> types;
  std::shared_ptr<Problem> problem;  // of a heuristic, an engine's configuration, a plan

  template <class T>
  std::vector<T> all(int name) const {
    auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  T one(int name, T otherwise = {}) const {
    auto values = all<T>(name);
    return values.empty() ? otherwise : values[0];
  }
};

Descriptor* of(void* d) { return static_cast<Descriptor*>(d); }

size_t size_of(int t) {
  switch (t) {
    case kInt64:
    case kDouble:
    case kHandle:
    case kPointer:
    case kDescriptor:
      return 8;
    case kBoolean:
    case kChar:
      return 1;
    default:
      return 4;
  }
}

Problem problem_of(const Descriptor& graph) {
  Problem p;
  for (auto* op : graph.all<Descriptor*>(kGraphOps))
    for (auto& [name, type] : op->types) {
      if (type != kDescriptor) continue;
      const auto* t = op->one<const Descriptor*>(name);
      if (t->type == kConvolution) return {};
      if (t->type != kTensor || t->one<char>(kTensorVirtual)) continue;
      p[t->one<int64_t>(kTensorUid)] = {t->all<int64_t>(kTensorDims),
                                        t->all<int64_t>(kTensorStrides), t->one<int>(kTensorType)};
    }
  return p.count(Q) && p.count(K) && p.count(V) ? p : Problem{};
}

/// One row of scores.
std::vector<double> scores(const Problem& p, double scale, int64_t b, int64_t h, int64_t t) {
  const Operand &q = p.at(Q), &k = p.at(K);  // k with its last dims swapped
  std::vector<double> s(static_cast<size_t>(k.dims[3]));
  for (int64_t j = 0; j < k.dims[3]; ++j) {
    double x = 0;
    for (int64_t d = 0; d < q.dims[3]; ++d) x += q.get(b, h, t, d) * k.get(b, h, d, j);
    x *= scale;
    if (p.count(Bias)) x += p.at(Bias).get(b, h, t, j);
    if (p.count(NegInf) && j > t) x = -INFINITY;
    s[static_cast<size_t>(j)] = x;
  }
  return s;
}

void forward(const Problem& p, double scale) {
  const Operand &v = p.at(V), &o = p.at(O);
  for (int64_t b = 0; b < o.dims[0]; ++b)
    for (int64_t h = 0; h < o.dims[1]; ++h)
      for (int64_t t = 0; t < o.dims[2]; ++t) {
        std::vector<double> s = scores(p, scale, b, h, t);
        double most = -INFINITY, sum = 0;
        for (double x : s) most = std::max(most, x);
        for (double& x : s) sum += x = std::exp(x - most);
        p.at(Stats).set(b, h, t, 0, most + std::log(sum));
        for (int64_t d = 0; d < o.dims[3]; ++d) {
          double x = 0;
          for (size_t j = 0; j < s.size(); ++j)
            x += s[j] / sum * v.get(b, h, static_cast<int64_t>(j), d);
          o.set(b, h, t, d, x);
        }
      }
}

void backward(const Problem& p, double scale) {
  const Operand &q = p.at(Q), &k = p.at(K), &v = p.at(V), &o = p.at(O),
                &go = p.at(DO);  // v swapped too
  const int64_t T = q.dims[2], D = q.dims[3], S = k.dims[3];
  for (int64_t b = 0; b < q.dims[0]; ++b)
    for (int64_t h = 0; h < q.dims[1]; ++h) {
      std::vector<double> dk(static_cast<size_t>(S * D)), dv(dk.size());
      for (int64_t t = 0; t < T; ++t) {
        std::vector<double> s = scores(p, scale, b, h, t), dq(static_cast<size_t>(D));
        double delta = 0;
        for (int64_t d = 0; d < D; ++d) delta += go.get(b, h, t, d) * o.get(b, h, t, d);
        for (int64_t j = 0; j < S; ++j) {
          const double x = std::exp(s[static_cast<size_t>(j)] - p.at(Stats).get(b, h, t, 0));
          double dp = 0;
          for (int64_t d = 0; d < D; ++d) dp += go.get(b, h, t, d) * v.get(b, h, d, j);
          const double ds = x * (dp - delta) * scale;
          for (int64_t d = 0; d < D; ++d) {
            dq[static_cast<size_t>(d)] += ds * k.get(b, h, d, j);
            dk[static_cast<size_t>(j * D + d)] += ds * q.get(b, h, t, d);
            dv[static_cast<size_t>(j * D + d)] += x * go.get(b, h, t, d);
          }
        }
        for (int64_t d = 0; d < D; ++d) p.at(DQ).set(b, h, t, d, dq[static_cast<size_t>(d)]);
      }
      for (int64_t j = 0; j < S; ++j)
        for (int64_t d = 0; d < D; ++d) {
          p.at(DK).set(b, h, j, d, dk[static_cast<size_t>(j * D + d)]);
          p.at(DV).set(b, h, j, d, dv[static_cast<size_t>(j * D + d)]);
        }
    }
}

struct Handle {
  void* stream = nullptr;
};

}  // namespace

extern "C" {

/// How many graphs were run, or put on a stream that is being captured.
int fake_cudnn_executed() { return executed; }

int cudnnCreate(Handle** h) { return *h = new Handle, kOk; }
int cudnnDestroy(Handle* h) { return delete h, kOk; }
int cudnnSetStream(Handle* h, void* s) { return h->stream = s, kOk; }
size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(int) { return "an error of the fake cuDNN"; }
void cudnnGetLastErrorString(char* text, size_t n) {
  std::strncpy(text, "as it was told to", n - 1);
}

int cudnnBackendCreateDescriptor(int type, void** d) {
  return *d = new Descriptor{type, {}, {}, {}}, kOk;
}
int cudnnBackendDestroyDescriptor(void* d) { return delete of(d), kOk; }
int cudnnBackendSetAttribute(void* d, int name, int type, int64_t n, const void* values) {
  const auto* bytes = static_cast<const char*>(values);
  of(d)->attributes[name].assign(bytes, bytes + static_cast<size_t>(n) * size_of(type));
  of(d)->types[name] = type;
  return kOk;
}
int cudnnBackendFinalize(void* descriptor) {
  Descriptor& d = *of(descriptor);
  if (d.type == kHeuristic) {
    Problem p = problem_of(*d.one<Descriptor*>(kHeuristicGraph));
    if (p.empty() || refuses("engines") || (refuses("gradients") && p.count(DO)))
      return kNotSupported;
    d.problem = std::make_shared<Problem>(std::move(p));
  }
  if (d.type == kPlan) d.problem = d.one<Descriptor*>(kPlanConfig)->problem;
  return kOk;
}
int cudnnBackendGetAttribute(void* d, int name, int, int64_t, int64_t* n, void* out) {
  *n = 1;
  if (name == kHeuristicResults)
    of(*static_cast<void**>(out))->problem = of(d)->problem;
  else if (name == kPlanWorkspace)
    *static_cast<int64_t*>(out) = 512;
  else
    return kNotSupported;
  return kOk;
}
int cudnnBackendExecute(Handle* h, void* plan, void* pack) {
  if (refuses("execute")) return kExecutionFailed;
  auto uids = of(pack)->all<int64_t>(kPackUids);
  auto pointers = of(pack)->all<char*>(kPackPointers);
  Problem p = *of(plan)->problem;
  float scale = 0;
  for (size_t i = 0; i < uids.size(); ++i) {
    if (!p.count(uids[i])) return kBadParameter;
    p[uids[i]].data = pointers[i];
    if (uids[i] == Scale) std::memcpy(&scale, pointers[i], 4);  // by value
  }
  for (auto& [uid, operand] : p)
    if (!operand.data) return kBadParameter;
  ++executed;
  fake_cuda_put(h->stream, [p = std::move(p), scale] {
    if (!fake::nothing_runs()) p.count(DO) ? backward(p, scale) : forward(p, scale);
    return kOk;
  });
  return kOk;
}
}
