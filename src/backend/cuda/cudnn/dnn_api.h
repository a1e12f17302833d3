// cuDNN's functions, and one fused operation graph: described op by op, planned once for fixed
// shapes, run with new pointers. Only files that are built with cuDNN's headers include this.
#pragma once
#include <cudnn.h>
#include <cudnn_backend.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ingot::cuda::dnn {

struct Functions {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  std::string path;
  std::string load();
};
/// Loaded at the first call; `why` (if given) says what is missing.
Functions* functions(std::string* why = nullptr);

void check(cudnnStatus_t s, const char* what);

class Desc {
 public:
  explicit Desc(cudnnBackendDescriptorType_t type) {
    check(functions()->create_descriptor(type, &raw_), "create");
  }
  ~Desc() {
    if (raw_) functions()->destroy_descriptor(raw_);
  }
  Desc(Desc&& o) noexcept : raw_(std::exchange(o.raw_, nullptr)) {}
  Desc(const Desc&) = delete;
  cudnnBackendDescriptor_t get() const { return raw_; }
  Desc& put(cudnnBackendAttributeName_t a, cudnnBackendAttributeType_t t, int64_t n,
            const void* v) {
    check(functions()->set_attribute(raw_, a, t, n, v), "set attribute");
    return *this;
  }
  Desc& i64(cudnnBackendAttributeName_t a, int64_t v) { return put(a, CUDNN_TYPE_INT64, 1, &v); }
  Desc& i64s(cudnnBackendAttributeName_t a, const std::vector<int64_t>& v) {
    return put(a, CUDNN_TYPE_INT64, static_cast<int64_t>(v.size()), v.data());
  }
  Desc& f64(cudnnBackendAttributeName_t a, double v) { return put(a, CUDNN_TYPE_DOUBLE, 1, &v); }
  Desc& flag(cudnnBackendAttributeName_t a, bool v) { return put(a, CUDNN_TYPE_BOOLEAN, 1, &v); }
  Desc& type(cudnnBackendAttributeName_t a, cudnnDataType_t v) {
    return put(a, CUDNN_TYPE_DATA_TYPE, 1, &v);
  }
  Desc& desc(cudnnBackendAttributeName_t a, const Desc& d) {
    auto r = d.get();
    return put(a, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &r);
  }
  Desc& done() {
    check(functions()->finalize(raw_), "finalize");
    return *this;
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

using Dims = std::vector<int64_t>;

struct Tensor {
  int64_t uid;
  Dims dims, strides;
  cudnnDataType_t type;
  std::shared_ptr<Desc> desc;
};

class Graph {
 public:
  Tensor tensor(int64_t uid, const Dims& dims, const Dims& strides, cudnnDataType_t type) {
    return make(uid, dims, strides, type, false, false);
  }
  Tensor scalar(int64_t uid) {
    return make(uid, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, true);
  }
  Tensor temp(const Dims& dims, const Dims& strides, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return make(next_++, dims, strides, type, true, false);
  }
  Tensor like(const Tensor& t, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return temp(t.dims, t.strides, type);
  }

  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b, const Tensor* cond,
                 const Tensor& y, int64_t axis = -1, cudnnDataType_t math = CUDNN_DATA_FLOAT);
  Tensor binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b);
  Tensor unary(cudnnPointwiseMode_t mode, const Tensor& a);
  void reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& y);
  void matmul(const Tensor& a, const Tensor& b, const Tensor& c);
  Tensor transposed(const Tensor& x, cudnnDataType_t type);

  enum class Conv { Forward, Data, Filter };
  /// x, w, y are image, filter and result; for Data x is written, for Filter w.
  void conv(Conv kind, const Tensor& x, const Tensor& w, const Tensor& y, const Dims& front,
            const Dims& behind, const Dims& stride, const Dims& dilation, cudnnDataType_t math);

  struct Rules {
    bool deterministic = true;     // no engine that may give other bits next time
    bool no_tensor_cores = false;  // float32: none that rounds to TF32
    int64_t most_workspace = int64_t{1} << 40;
    int most_plans = 1;
  };
  /// Keeps the first engines of the heuristics that build and follow the rules; false when none
  /// does (`why`).
  bool plan_all(cudnnHandle_t handle, const Desc* device, const Rules& rules, std::string& why);
  int plans() const { return static_cast<int>(plans_.size()); }
  int64_t plan_workspace(int plan) const { return plans_[static_cast<size_t>(plan)].workspace; }
  void run_plan(int plan, cudnnHandle_t handle, const std::vector<int64_t>& uids,
                const std::vector<void*>& pointers, void* ws) const;

  /// Keeps the first engine of the heuristics that builds; false when none does (`why`). With a
  /// device description instead of a handle it plans without a GPU.
  bool plan(cudnnHandle_t handle, const Desc* device, std::string& why);
  void run(cudnnHandle_t handle, const std::vector<int64_t>& uids,
           const std::vector<void*>& pointers, void* workspace) const;
  int64_t workspace = 0, candidates = 0;

 private:
  Tensor make(int64_t uid, const Dims& dims, const Dims& strides, cudnnDataType_t type,
              bool is_virtual, bool by_value);
  bool try_engines(cudnnBackendHeurMode_t mode, cudnnHandle_t handle, const Desc* device,
                   std::string& why);
  void make_graph(cudnnHandle_t handle, const Desc* device);
  std::vector<Desc> suggestions(cudnnBackendHeurMode_t mode, const Desc* device, int64_t most,
                                std::string& why);
  bool follows(const Desc& config, const Rules& rules) const;
  struct Plan {
    std::unique_ptr<Desc> desc;
    int64_t workspace;
  };

  int64_t next_ = 1000;
  std::vector<std::shared_ptr<Desc>> tensors_;
  std::vector<Desc> kept_, ops_;
  std::unique_ptr<Desc> graph_, plan_;
  std::vector<Plan> plans_;
};

}  // namespace ingot::cuda::dnn
