#include <functional>

#include "ingot/distributed.h"

#include "graph/handle.h"
#include "ingot/ops.h"

namespace ingot {
namespace {

// While one lives, the parameters' cells refer to copies on a device. The copies have
// the parameters as history.
class Replica {
 public:
  Replica(const std::vector<Tensor>& params, const Device& device) : default_(device) {
    std::vector<Tensor> copies;
    for (const Tensor& p : params) copies.push_back(p.to(device));
    for (size_t i = 0; i < params.size(); ++i) {
      Cell* cell = params[i].cell();
      NodeRef here = cell->current(), copy = copies[i].cell()->current();
      if (here == copy) continue;
      kept_.emplace_back(CellRef(cell), NodeRef(here));
      cell->rebind(NodeRef(copy));
    }
  }
  ~Replica() {
    for (auto& [cell, node] : kept_) cell->rebind(node);
  }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

 private:
  DeviceScope default_;
  std::vector<std::pair<CellRef, NodeRef>> kept_;
};

int64_t batch_of(const std::vector<Tensor>& inputs, const SourceLoc& loc) {
  int64_t n = -1;
  for (const Tensor& t : inputs) {
    int64_t size = t.dim(loc) > 0 ? t.size(0, loc) : 0;
    if (n >= 0 && size != n)
      throw Error(ErrorKind::Shape, "data_parallel",
                  "the inputs' sizes along dim 0 differ: " + std::to_string(n) + " and " +
                      std::to_string(size),
                  loc, "give inputs that hold one entry per sample along dim 0");
    n = size;
  }
  if (n == 0)
    throw Error(ErrorKind::Shape, "data_parallel", "there are no samples along dim 0", loc);
  return n;
}

}  // namespace

Tensor data_parallel(const std::vector<Device>& devices, const std::vector<Tensor>& params,
                     const std::vector<Tensor>& inputs,
                     const std::function<Tensor(const std::vector<Tensor>&)>& fn, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  if (devices.empty() || inputs.empty())
    throw Error(ErrorKind::Value, "data_parallel", "there are no devices or no inputs", loc,
                "give at least one of each");
  int64_t batch = batch_of(inputs, loc), count = static_cast<int64_t>(devices.size());
  Tensor total;
  for (int64_t d = 0; d < count; ++d) {
    int64_t from = batch * d / count, size = batch * (d + 1) / count - from;
    if (size == 0) continue;
    const Device& device = devices[static_cast<size_t>(d)];
    std::vector<Tensor> part;
    for (const Tensor& t : inputs) part.push_back(t.narrow(0, from, size).to(device));
    Tensor loss = [&] {
      Replica replica(params, device);
      return fn(part);
    }();
    if (loss.numel(loc) != 1)
      throw Error(ErrorKind::Shape, "data_parallel",
                  "the function returned shape " + to_string(loss.shape()), loc,
                  "return the mean loss of the part, a single element");
    Tensor share = loss.to(devices[0]) * (static_cast<double>(size) / static_cast<double>(batch));
    total = total.defined() ? total + share : share;
  }
  return total;
}

}  // namespace ingot
