// Where the library is put together: which engine runs what is recorded, and which backends are
// part of it. Both functions are declared in rooms below, which see no more than an interface; no
// other function is defined above the room that declares it.
#include <memory>

#include "autograd/decompositions.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_backend.h"
#include "compile/executor.h"
#include "graph/composite.h"
#include "graph/engine.h"
#include "ops/cached_attention.h"
#include "ops/recurrent.h"
#include "runtime/plugin.h"

namespace ingot {

Engine& make_engine() {
  set_decomposition(Op::CompositeGrad, autograd::decompose_composite_grad);
  set_decomposition(Op::Attention, decompose_attention);
  set_decomposition(Op::AttentionGrad, autograd::decompose_attention_grad);
  for (int op = 0; op < static_cast<int>(Op::Count_); ++op)
    if (is_recurrent(static_cast<Op>(op)))
      set_decomposition(static_cast<Op>(op), decompose_recurrent);
  return executor();
}

std::unique_ptr<Backend> make_builtin_backend(DeviceType type, std::string& reason) {
  switch (type) {
    case DeviceType::CPU:
      return make_cpu_backend();
    case DeviceType::Null:
      return make_null_backend();
    case DeviceType::CUDA:
      return load_cuda_plugin(reason);
  }
  return nullptr;
}

}  // namespace ingot
