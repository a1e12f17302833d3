// See dnn.h and dnn_api.h. cuDNN matches attention by its pattern: the order of ops and the strides
// of the operands matter.
#include "backend/cuda/cudnn/dnn.h"

#include <memory>

#include <dlfcn.h>

#include "backend/cuda/cudnn/dnn_api.h"
#include "backend/cuda/runtime/find_library.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace dnn {

std::string Functions::load() {
  std::string why;
  void* library = open_library({"INGOT_CUDNN", {"libcudnn.so.9"}, {"cudnn/lib"}}, path, why);
  if (!library)
    return "cuDNN 9 was not found (" + why +
           "). Install it with `pip install nvidia-cudnn-cu13` and set INGOT_VENV to that Python "
           "environment, or set INGOT_CUDNN to the library's path; until then attention is "
           "composed from "
           "matrix products";
  std::string missing;
  auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
    if (!slot && missing.empty()) missing = name;
  };
  find(create, "cudnnCreate");
  find(destroy, "cudnnDestroy");
  find(set_stream, "cudnnSetStream");
  find(version, "cudnnGetVersion");
  find(error_string, "cudnnGetErrorString");
  find(last_error, "cudnnGetLastErrorString");
  find(create_descriptor, "cudnnBackendCreateDescriptor");
  find(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(set_attribute, "cudnnBackendSetAttribute");
  find(get_attribute, "cudnnBackendGetAttribute");
  find(finalize, "cudnnBackendFinalize");
  find(execute, "cudnnBackendExecute");
  return missing.empty() ? ""
                         : "the cuDNN in " + path + " has no " + missing + ": version 9 is needed";
}

Functions* functions(std::string* why) {
  static Functions f;
  static const std::string problem = f.load();
  if (why) *why = problem;
  return problem.empty() ? &f : nullptr;
}

void check(cudnnStatus_t s, const char* what) {
  if (s == CUDNN_STATUS_SUCCESS) return;
  char last[512] = {};
  functions()->last_error(last, sizeof last);
  throw Error(ErrorKind::Internal, "cudnn",
              std::string(what) + ": " + functions()->error_string(s) + ": " + last);
}

Tensor Graph::make(int64_t uid, const Dims& dims, const Dims& strides, cudnnDataType_t type,
                   bool is_virtual, bool by_value) {
  auto d = std::make_shared<Desc>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d->type(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .i64s(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .i64s(CUDNN_ATTR_TENSOR_STRIDES, strides);
  d->i64(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid).i64(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  d->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
      .done();
  tensors_.push_back(d);
  return {uid, dims, strides, type, d};
}

void Graph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b,
                      const Tensor* cond, const Tensor& y, int64_t axis, cudnnDataType_t math) {
  Desc p(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  p.put(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .type(CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (axis >= 0) p.i64(CUDNN_ATTR_POINTWISE_AXIS, axis);
  if (mode == CUDNN_POINTWISE_RELU_FWD) {  // as relu() does
    const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    p.put(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
  }
  p.done();
  Desc o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p)
      .desc(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x.desc);
  if (b) o.desc(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b->desc);
  if (cond) o.desc(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *cond->desc);
  o.desc(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y.desc).done();
  kept_.push_back(std::move(p));
  ops_.push_back(std::move(o));
}

Tensor Graph::binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b) {
  Tensor y = like(a);
  pointwise(mode, a, &b, nullptr, y);
  return y;
}

Tensor Graph::unary(cudnnPointwiseMode_t mode, const Tensor& a) {
  Tensor y = like(a);
  pointwise(mode, a, nullptr, nullptr, y);
  return y;
}

void Graph::reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& y) {
  Desc r(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  r.put(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op)
      .type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .done();
  Desc o(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_REDUCTION_DESC, r)
      .desc(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.desc);
  o.desc(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.desc).done();
  kept_.push_back(std::move(r));
  ops_.push_back(std::move(o));
}

void Graph::matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  Desc m(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  m.type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).done();
  Desc o(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.desc)
      .desc(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.desc);
  o.desc(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c.desc)
      .desc(CUDNN_ATTR_OPERATION_MATMUL_DESC, m)
      .done();
  kept_.push_back(std::move(m));
  ops_.push_back(std::move(o));
}

Tensor Graph::transposed(const Tensor& x, cudnnDataType_t type) {
  Tensor y = temp({x.dims[0], x.dims[1], x.dims[3], x.dims[2]},
                  {x.strides[0], x.strides[1], x.strides[3], x.strides[2]}, type);
  Desc o(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.desc)
      .desc(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.desc)
      .done();
  ops_.push_back(std::move(o));
  return y;
}

void Graph::conv(Conv kind, const Tensor& x, const Tensor& w, const Tensor& y, const Dims& front,
                 const Dims& behind, const Dims& stride, const Dims& dilation,
                 cudnnDataType_t math) {
  struct Names {
    cudnnBackendDescriptorType_t op;
    cudnnBackendAttributeName_t desc, x, w, y, alpha, beta;
  };
  static constexpr Names table[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const Names& t = table[static_cast<int>(kind)];
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Desc c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.type(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, math)
      .put(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  c.i64s(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation)
      .i64s(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride);
  c.i64s(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, front)
      .i64s(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, behind);
  c.i64(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(front.size())).done();
  Desc o(t.op);
  o.desc(t.desc, c).desc(t.x, *x.desc).desc(t.w, *w.desc).desc(t.y, *y.desc);
  if (math == CUDNN_DATA_DOUBLE) {
    o.f64(t.alpha, 1.0).f64(t.beta, 0.0);
  } else {
    const float one = 1, zero = 0;
    o.put(t.alpha, CUDNN_TYPE_FLOAT, 1, &one).put(t.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  }
  o.done();
  kept_.push_back(std::move(c));
  ops_.push_back(std::move(o));
}

std::vector<Desc> Graph::suggestions(cudnnBackendHeurMode_t mode, const Desc* device, int64_t most,
                                     std::string& why) {
  Desc heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.desc(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_)
      .put(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (device) heuristics.desc(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  std::vector<Desc> configs;
  if (functions()->finalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) {
    why += " the heuristics fail;";
    return configs;
  }
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  int64_t n = 0;
  check(functions()->get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &n, raw.data()),
        "heuristic results");
  candidates += n;
  while (static_cast<int64_t>(configs.size()) > n) configs.pop_back();
  return configs;
}

// A plan of the config, or nothing; its workspace in `bytes`.
static std::unique_ptr<Desc> plan_of(const Desc& config, cudnnHandle_t handle, const Desc* device,
                                     int64_t& bytes, std::string& why) {
  auto p = std::make_unique<Desc>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  p->desc(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (device)
    p->desc(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
  else
    p->put(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  if (functions()->finalize(p->get()) != CUDNN_STATUS_SUCCESS) {
    char last[512] = {};
    functions()->last_error(last, sizeof last);
    why += std::string(" ") + last + ";";
    return nullptr;
  }
  int64_t got = 0;
  check(functions()->get_attribute(p->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1, &got, &bytes),
        "workspace size");
  return p;
}

bool Graph::follows(const Desc& config, const Rules& rules) const {
  Desc engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  auto raw = engine.get();
  int64_t got = 0;
  if (functions()->get_attribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got,
                                 &raw) != CUDNN_STATUS_SUCCESS)
    return false;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  if (functions()->get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &got,
                                 notes) != CUDNN_STATUS_SUCCESS)
    return false;
  for (int64_t i = 0; i < got; ++i) {
    if (rules.deterministic && notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    if (rules.no_tensor_cores && (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                                  notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
      return false;
  }
  return true;
}

bool Graph::try_engines(cudnnBackendHeurMode_t mode, cudnnHandle_t handle, const Desc* device,
                        std::string& why) {
  for (const Desc& config : suggestions(mode, device, 8, why)) {
    auto p = plan_of(config, handle, device, workspace, why);
    if (!p) continue;
    plan_ = std::move(p);
    return true;
  }
  return false;
}

bool Graph::plan_all(cudnnHandle_t handle, const Desc* device, const Rules& rules,
                     std::string& why) {
  make_graph(handle, device);
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Desc& config : suggestions(mode, device, 24, why)) {
      if (plans() >= rules.most_plans) break;
      if (!follows(config, rules)) {
        why += " an engine breaks the rules;";
        continue;
      }
      int64_t bytes = 0;
      auto p = plan_of(config, handle, device, bytes, why);
      if (p && bytes <= rules.most_workspace) plans_.push_back({std::move(p), bytes});
    }
    if (plans() > 0) return true;
  }
  return false;
}

void Graph::make_graph(cudnnHandle_t handle, const Desc* device) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (Desc& o : ops_) raw.push_back(o.get());
  graph_ = std::make_unique<Desc>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (!device) graph_->put(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph_
      ->put(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(raw.size()), raw.data())
      .done();
}

bool Graph::plan(cudnnHandle_t handle, const Desc* device, std::string& why) {
  make_graph(handle, device);
  return try_engines(CUDNN_HEUR_MODE_A, handle, device, why) ||
         try_engines(CUDNN_HEUR_MODE_FALLBACK, handle, device, why);
}

static void run_it(const Desc& plan, cudnnHandle_t handle, const std::vector<int64_t>& uids,
                   const std::vector<void*>& pointers, void* ws) {
  Desc v(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  v.i64s(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  v.put(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
        static_cast<int64_t>(pointers.size()), pointers.data());
  v.put(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &ws).done();
  check(functions()->execute(handle, plan.get(), v.get()), "execute");
}

void Graph::run_plan(int plan, cudnnHandle_t handle, const std::vector<int64_t>& uids,
                     const std::vector<void*>& pointers, void* ws) const {
  run_it(*plans_[static_cast<size_t>(plan)].desc, handle, uids, pointers, ws);
}

void Graph::run(cudnnHandle_t handle, const std::vector<int64_t>& uids,
                const std::vector<void*>& pointers, void* ws) const {
  run_it(*plan_, handle, uids, pointers, ws);
}

}  // namespace dnn

std::string Dnn::missing() {
  std::string why;
  dnn::functions(&why);
  return why;
}

std::unique_ptr<Dnn> Dnn::open() {
  dnn::Functions* f = dnn::functions();
  if (!f) return nullptr;
  std::unique_ptr<Dnn> d(new Dnn);
  cudnnHandle_t h = nullptr;
  if (f->create(&h) != CUDNN_STATUS_SUCCESS) return nullptr;
  d->handle = h;
  d->version = f->version();
  return d;
}

void Dnn::use(CUstream stream) {
  dnn::check(dnn::functions()->set_stream(static_cast<cudnnHandle_t>(handle),
                                          reinterpret_cast<cudaStream_t>(stream)),
             "set stream");
}

}  // namespace ingot::cuda
