// See dnn.h and dnn_api.h. cuDNN matches attention by its pattern: the order of ops and the strides of the operands matter.
#include "backend/cuda/dnn.h"

#include <dlfcn.h>

#include "backend/cuda/dnn_api.h"
#include "backend/cuda/find_library.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace dnn {

std::string Functions::load() {
  std::string why;
  void* library = open_library({"INGOT_CUDNN", {"libcudnn.so.9"}, {"cudnn/lib"}}, path, why);
  if (!library)
    return "cuDNN 9 was not found (" + why + "). Install it with `pip install nvidia-cudnn-cu13` and set INGOT_VENV to that Python "
           "environment, or set INGOT_CUDNN to the library's path; until then attention is composed from matrix products";
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
  return missing.empty() ? "" : "the cuDNN in " + path + " has no " + missing + ": version 9 is needed";
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
  throw Error(ErrorKind::Internal, "cudnn", std::string(what) + ": " + functions()->error_string(s) + ": " + last);
}

Tensor Graph::make(int64_t uid, const Dims& dims, const Dims& strides, cudnnDataType_t type, bool is_virtual, bool by_value) {
  auto d = std::make_shared<Desc>(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d->type(CUDNN_ATTR_TENSOR_DATA_TYPE, type).i64s(CUDNN_ATTR_TENSOR_DIMENSIONS, dims).i64s(CUDNN_ATTR_TENSOR_STRIDES, strides);
  d->i64(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid).i64(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  d->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual).flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value).done();
  tensors_.push_back(d);
  return {uid, dims, strides, type, d};
}

void Graph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b, const Tensor* cond, const Tensor& y, int64_t axis,
                      cudnnDataType_t math) {
  Desc p(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  p.put(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode).type(CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (axis >= 0) p.i64(CUDNN_ATTR_POINTWISE_AXIS, axis);
  p.done();
  Desc o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p).desc(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x.desc);
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
  r.put(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op).type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).done();
  Desc o(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_REDUCTION_DESC, r).desc(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.desc);
  o.desc(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.desc).done();
  kept_.push_back(std::move(r));
  ops_.push_back(std::move(o));
}

void Graph::matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  Desc m(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  m.type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).done();
  Desc o(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.desc).desc(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.desc);
  o.desc(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c.desc).desc(CUDNN_ATTR_OPERATION_MATMUL_DESC, m).done();
  kept_.push_back(std::move(m));
  ops_.push_back(std::move(o));
}

Tensor Graph::transposed(const Tensor& x, cudnnDataType_t type) {
  Tensor y = temp({x.dims[0], x.dims[1], x.dims[3], x.dims[2]}, {x.strides[0], x.strides[1], x.strides[3], x.strides[2]}, type);
  Desc o(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  o.desc(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.desc).desc(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.desc).done();
  ops_.push_back(std::move(o));
  return y;
}

bool Graph::try_engines(cudnnBackendHeurMode_t mode, cudnnHandle_t handle, const Desc* device, std::string& why) {
  constexpr int64_t kMost = 8;
  Desc heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.desc(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_).put(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (device) heuristics.desc(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  if (functions()->finalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) {
    why += " the heuristics fail;";
    return false;
  }
  std::vector<Desc> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < kMost; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  int64_t n = 0;
  check(functions()->get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &n, raw.data()),
        "heuristic results");
  candidates += n;
  for (int64_t i = 0; i < n; ++i) {
    auto p = std::make_unique<Desc>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    p->desc(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[static_cast<size_t>(i)]);
    if (device)
      p->desc(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
    else
      p->put(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (functions()->finalize(p->get()) != CUDNN_STATUS_SUCCESS) {
      char last[512] = {};
      functions()->last_error(last, sizeof last);
      why += std::string(" ") + last + ";";
      continue;
    }
    plan_ = std::move(p);
    int64_t got = 0;
    check(functions()->get_attribute(plan_->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &got, &workspace),
          "workspace size");
    return true;
  }
  return false;
}

bool Graph::plan(cudnnHandle_t handle, const Desc* device, std::string& why) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (Desc& o : ops_) raw.push_back(o.get());
  graph_ = std::make_unique<Desc>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (!device) graph_->put(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph_->put(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data()).done();
  return try_engines(CUDNN_HEUR_MODE_A, handle, device, why) || try_engines(CUDNN_HEUR_MODE_FALLBACK, handle, device, why);
}

void Graph::run(cudnnHandle_t handle, const std::vector<int64_t>& uids, const std::vector<void*>& pointers, void* ws) const {
  Desc v(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  v.i64s(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  v.put(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()), pointers.data());
  v.put(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &ws).done();
  check(functions()->execute(handle, plan_->get(), v.get()), "execute");
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
  dnn::check(dnn::functions()->set_stream(static_cast<cudnnHandle_t>(handle), reinterpret_cast<cudaStream_t>(stream)), "set stream");
}

}  // namespace ingot::cuda
