// See conv.h. Of the engines that cuDNN's heuristics suggest, only deterministic ones count, and
// for float32 only those that do not round to TF32. The fastest of the first few is found by
// measuring at the first run and kept in the tuning file, by its index in the heuristics' list.
#include "backend/cuda/cudnn/conv.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "backend/cuda/cublaslt/blaslt.h"
#include "backend/cuda/cudnn/dnn.h"
#include "backend/cuda/cudnn/dnn_api.h"
#include "backend/cuda/runtime/gpu.h"
#include "backend/cuda/runtime/tuning.h"

namespace ingot::cuda {
namespace {

using namespace dnn;
enum Uid : int64_t { X = 1, W, Y, Bias, Residual };

constexpr int64_t kMostWorkspace = int64_t{256} << 20;
constexpr int kMostPlans = 6;

cudnnDataType_t type_of(DType t) {
  return t == DType::Float16    ? CUDNN_DATA_HALF
         : t == DType::BFloat16 ? CUDNN_DATA_BFLOAT16
         : t == DType::Float64  ? CUDNN_DATA_DOUBLE
                                : CUDNN_DATA_FLOAT;
}

// Which operands are x, w and y.
struct Roles {
  const OperandSpec *x, *w, *y;
  int ix, iw, iy;
  explicit Roles(const LibrarySpec& s) {
    iy = s.op == Op::Conv ? 0 : s.op == Op::ConvGradInput ? 1 : 2;
    ix = s.op == Op::ConvGradInput ? 0 : 1;
    iw = s.op == Op::ConvGradWeight ? 0 : 2;
    x = &s.operands[static_cast<size_t>(ix)], w = &s.operands[static_cast<size_t>(iw)],
    y = &s.operands[static_cast<size_t>(iy)];
  }
};

// cuDNN wants two dims at least; a single one is preceded by one of size 1. Strides of
// dims of size 1 are made those of a dense tensor in the same order, which is what its engines look
// for.
struct Described {
  Dims dims, strides;
};
Described describe_operand(const OperandSpec& o) {
  Described d{o.shape.vec(), o.stride.vec()};
  if (d.dims.size() == 3) {
    d.dims.insert(d.dims.begin() + 2, 1);
    d.strides.insert(d.strides.begin() + 2, 0);
  }
  const bool last = d.strides[1] == 1 || d.dims[1] == 1;  // channels last
  const size_t r = d.dims.size();
  std::vector<size_t> order;  // slowest first
  order.push_back(0);
  if (!last) order.push_back(1);
  for (size_t i = 2; i < r; ++i) order.push_back(i);
  if (last) order.push_back(1);
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    if (d.dims[order[k]] == 1) d.strides[order[k]] = step;
    step = d.strides[order[k]] * d.dims[order[k]];
  }
  return d;
}

void build(Graph& g, const LibrarySpec& spec) {
  const Roles r(spec);
  const cudnnDataType_t t = type_of(spec.operands[0].dtype);
  const int n = r.x->shape.size() - 2;
  const ConvAttrs& a = spec.attrs.as<ConvAttrs>();
  const auto dims = [](const ingot::Dims& d) { return Dims(d.begin(), d.end()); };
  Dims stride = dims(a.stride), dilation = dims(a.dilation), front = dims(a.front),
       behind = dims(a.behind);
  if (n == 1) {
    stride.insert(stride.begin(), 1);
    dilation.insert(dilation.begin(), 1);
    front.insert(front.begin(), 0);
    behind.insert(behind.begin(), 0);
  }
  const Described dx = describe_operand(*r.x), dw = describe_operand(*r.w),
                  dy = describe_operand(*r.y);
  const cudnnDataType_t math = t == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  Tensor x = g.tensor(X, dx.dims, dx.strides, t), w = g.tensor(W, dw.dims, dw.strides, t),
         y = g.tensor(Y, dy.dims, dy.strides, t);
  const Graph::Conv kind = spec.op == Op::Conv            ? Graph::Conv::Forward
                           : spec.op == Op::ConvGradInput ? Graph::Conv::Data
                                                          : Graph::Conv::Filter;
  // cuDNN has ready-made kernels for this order of what follows: residual, bias, ReLU.
  struct End {
    cudnnPointwiseMode_t mode;
    const Tensor* value;
  };
  std::vector<Tensor> values;
  values.reserve(2);
  std::vector<End> ends;
  if (spec.has(Epilogue::Residual)) {
    values.push_back(g.tensor(Residual, dy.dims, dy.strides, t));
    ends.push_back({CUDNN_POINTWISE_ADD, &values.back()});
  }
  if (spec.has(Epilogue::Bias)) {
    Dims bd(dy.dims.size(), 1), bs(dy.dims.size(), dy.dims[1]);
    bd[1] = dy.dims[1], bs[1] = 1;
    values.push_back(g.tensor(Bias, bd, bs, t));
    ends.push_back({CUDNN_POINTWISE_ADD, &values.back()});
  }
  if (spec.has(Epilogue::Relu)) ends.push_back({CUDNN_POINTWISE_RELU_FWD, nullptr});
  Tensor value = ends.empty() ? y : g.temp(dy.dims, dy.strides, math);
  g.conv(kind, x, w, value, front, behind, stride, dilation, math);
  for (size_t i = 0; i < ends.size(); ++i) {
    const Tensor next = i + 1 == ends.size() ? y : g.temp(dy.dims, dy.strides, math);
    g.pointwise(ends[i].mode, value, ends[i].value, nullptr, next, -1, math);
    value = next;
  }
}

/// A graph and its plans, shared by all calls of the same problem on a GPU.
struct Planned {
  Graph graph;
  std::string key;
  std::mutex mutex;
  int chosen = -1;
};

Graph::Rules rules_of(const LibrarySpec& spec) {
  Graph::Rules r;
  r.deterministic = true;
  r.no_tensor_cores = spec.operands[0].dtype == DType::Float32;
  r.most_workspace = kMostWorkspace;
  r.most_plans = kMostPlans;
  return r;
}

std::shared_ptr<Planned> planned(Gpu& gpu, Dnn& d, const LibrarySpec& spec) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Planned>> plans;
  const std::string key = std::to_string(gpu.ordinal) + to_string(spec);
  std::lock_guard lock(mutex);
  auto at = plans.find(key);
  if (at != plans.end()) return at->second;
  auto p = std::make_shared<Planned>();
  std::string why;
  try {
    build(p->graph, spec);
    if (!p->graph.plan_all(static_cast<cudnnHandle_t>(d.handle), nullptr, rules_of(spec), why))
      p = nullptr;
  } catch (const std::exception&) {
    p = nullptr;
  }
  if (p) {
    p->key = "cudnn" + std::to_string(d.version) + ":" + to_string(spec);
    std::replace(p->key.begin(), p->key.end(), ' ', '_');
  }
  return plans[key] = p;
}

class Conv final : public CudaExecutable {
 public:
  Conv(Gpu& gpu, Dnn& d, const LibrarySpec& spec, std::shared_ptr<Planned> p)
      : gpu_(gpu), dnn_(d), spec_(spec), roles_(spec_), planned_(std::move(p)) {
    recall();
    int64_t most = 0;
    for (int i = 0; i < planned_->graph.plans(); ++i)
      if (planned_->chosen < 0 || planned_->chosen == i)
        most = std::max(most, planned_->graph.plan_workspace(i));
    scratch_bytes = static_cast<size_t>((most + 255) / 256 * 256);
  }

  void enqueue(const LaunchSite& site) override {
    std::lock_guard lock(planned_->mutex);
    int plan = planned_->chosen;
    if (plan < 0) plan = site.capturing ? 0 : choose(site);
    call(site, plan);
  }

 private:
  void recall() {
    std::lock_guard lock(planned_->mutex);
    if (planned_->chosen >= 0) return;
    if (!Tuning::wanted() || planned_->graph.plans() == 1) {
      planned_->chosen = 0;
      return;
    }
    const std::string kept = gpu_.blas().tuning.find(planned_->key);
    planned_->chosen = place_in(kept, planned_->graph.plans()).value_or(-1);
  }

  void call(const LaunchSite& site, int plan) {
    auto place = [&](int i) {
      const OperandSpec& o = spec_.operands[static_cast<size_t>(i)];
      return static_cast<void*>(static_cast<char*>(site.address(i)) +
                                o.offset * static_cast<int64_t>(size_of(o.dtype)));
    };
    std::vector<int64_t> uids{X, W, Y};
    std::vector<void*> pointers{place(roles_.ix), place(roles_.iw), place(roles_.iy)};
    if (spec_.has(Epilogue::Bias)) {
      uids.push_back(Bias);
      pointers.push_back(place(3));
    }
    if (spec_.has(Epilogue::Residual)) {
      uids.push_back(Residual);
      pointers.push_back(place(static_cast<int>(spec_.operands.size()) - 1));
    }
    dnn_.use(site.stream);
    planned_->graph.run_plan(plan, static_cast<cudnnHandle_t>(dnn_.handle), uids, pointers,
                             site.header.scratch);
  }

  /// Times the plans on the run's own operands; what this writes is written again by the call
  /// itself.
  int choose(const LaunchSite& site) {
    CUevent begin, end;
    ingot::cuda::check(driver().event_create(&begin, CU_EVENT_DEFAULT), "making an event");
    ingot::cuda::check(driver().event_create(&end, CU_EVENT_DEFAULT), "making an event");
    auto time = [&](int plan, int repeats) {
      ingot::cuda::check(driver().event_record(begin, site.stream), "recording an event");
      for (int r = 0; r < repeats; ++r) call(site, plan);
      ingot::cuda::check(driver().event_record(end, site.stream), "recording an event");
      ingot::cuda::check(driver().event_synchronize(end), "measuring a convolution");
      float ms = 0;
      ingot::cuda::check(driver().event_elapsed_time(&ms, begin, end), "measuring a convolution");
      return ms / static_cast<float>(repeats);
    };
    float best = 1e30f;
    int chosen = 0;
    for (int i = 0; i < planned_->graph.plans(); ++i) {
      time(i, 1);
      const float again = time(i, 1);
      if (again > 1.5f * best) continue;
      const int repeats = std::clamp(static_cast<int>(0.5f / std::max(again, 1e-3f)), 2, 20);
      const float ms = std::min(time(i, repeats), time(i, repeats));
      if (ms < best * 0.99f) {  // a later suggestion must be clearly better
        best = ms;
        chosen = i;
      }
    }
    driver().event_destroy(begin);
    driver().event_destroy(end);
    gpu_.blas().tuning.keep(planned_->key, std::to_string(chosen));
    return planned_->chosen = chosen;
  }

  Gpu& gpu_;
  Dnn& dnn_;
  LibrarySpec spec_;
  Roles roles_;
  std::shared_ptr<Planned> planned_;
};

}  // namespace

// Do both have their elements in the same order?
static bool same_places(const OperandSpec& a, const OperandSpec& b) {
  for (int d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != b.shape[d] || (a.shape[d] > 1 && a.stride[d] != b.stride[d])) return false;
  return b.offset * static_cast<int64_t>(size_of(b.dtype)) % 16 == 0;
}

const char* conv_refuses(const LibrarySpec& spec) {
  const Roles r(spec);
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != spec.operands[0].dtype || !is_float(o.dtype)) return "not one floating type";
  if (spec.has(Epilogue::Bias) && (spec.op != Op::Conv || spec.operands[3].stride[0] != 1))
    return "a bias that is not dense";
  if (spec.has(Epilogue::Residual) &&
      (spec.op != Op::Conv || !same_places(spec.operands[0], spec.operands.back())))
    return "a residual with another layout than the result";
  if (spec.activates() && !spec.has(Epilogue::Relu)) return "an epilogue that cuDNN does not have";
  for (const OperandSpec* o : {r.x, r.w, r.y}) {
    // Dense, with channels first or last.
    const int n = o->shape.size();
    auto dense = [&](bool channels_last) {
      int64_t step = 1;
      auto fits = [&](int d) {
        const bool ok = o->shape[d] == 1 || o->stride[d] == step;
        step *= o->shape[d];
        return ok;
      };
      if (channels_last && !fits(1)) return false;
      for (int d = n - 1; d >= 2; --d)
        if (!fits(d)) return false;
      if (!channels_last && !fits(1)) return false;
      return fits(0);
    };
    if (!dense(true) && !dense(false)) return "an operand is not dense";
    if (o->offset * static_cast<int64_t>(size_of(o->dtype)) % 16)
      return "an operand is not aligned to 16 bytes";
  }
  return nullptr;
}

std::unique_ptr<Executable> prepare_conv(Gpu& gpu, const LibrarySpec& spec) {
  gpu.make_current();
  Dnn* d = gpu.dnn();
  if (!d || conv_refuses(spec)) return nullptr;
  std::shared_ptr<Planned> p = planned(gpu, *d, spec);
  if (!p) return nullptr;
  return std::make_unique<Conv>(gpu, *d, spec, std::move(p));
}

std::string plan_conv_for(const std::string& device_json, const LibrarySpec& spec) {
  std::string why;
  if (!functions(&why)) return why;
  if (const char* refusal = conv_refuses(spec)) return refusal;
  try {
    Desc device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device
        .put(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<int64_t>(device_json.size()), device_json.data())
        .done();
    Graph g;
    build(g, spec);
    if (g.plan_all(nullptr, &device, rules_of(spec), why)) return {};
    return "no engine (" + std::to_string(g.candidates) + " candidates):" + why;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace ingot::cuda
