// What a step of a plan is called, and the bytes and operations it takes.
#include <algorithm>

#include "codegen/flops.h"
#include "codegen/single_index_update.h"
#include "compile/plan.h"

namespace ingot {
namespace {

// Adds the bytes and operations of a kernel to its step. Of what it writes over and leaves as it
// is, nothing is touched.
void count_work(const KernelSpec& k, Step& s) {
  std::vector<int64_t> extent = k.extent;
  if (const SingleIndex single = find_single_index({&k, 1}); single.axis >= 0)
    extent[static_cast<size_t>(single.axis)] = 1;
  double points = 1, outer = 1;
  for (int a = 0; a < k.n_axes(); ++a) {
    points *= static_cast<double>(extent[a]);
    if (a < k.n_outer) outer = points;
  }
  std::vector<double> read(k.buffers.size(), 0);
  for (const Instr& i : k.instrs) {
    double n = i.level == Level::Elem ? points : outer;
    if (i.kind == InstrKind::Compute || i.kind == InstrKind::Reduce) s.flops += n;
    if (i.kind != InstrKind::Load) continue;
    double elements = 1;
    for (int a = 0; a < k.n_axes(); ++a)
      if (i.map.stride[a]) elements *= static_cast<double>(extent[a]);
    if (i.indirect >= 0) elements = n;
    elements = std::min(elements, static_cast<double>(k.buffers[i.buffer].numel));
    read[i.buffer] = std::max(read[i.buffer], elements * static_cast<double>(size_of(i.dtype)));
  }
  for (double r : read) s.bytes_read += r;
  for (const Store& st : k.stores)
    s.bytes_written += (k.instrs[st.value].level == Level::Elem ? points : outer) *
                       static_cast<double>(size_of(k.buffers[st.buffer].dtype));
}

// On a GPU every step of time is two kernels: the weight is read again, and the product goes from
// one to the other in float32. On the CPU both stay in a core's caches.
void count_recurrent_traffic(Step& s) {
  const Dims& first = s.library.operands[0].shape;
  const OperandSpec& w = s.library.operands[static_cast<size_t>(s.library.written) + 1];
  const auto steps = static_cast<double>(first[0]);
  const int gates = is_recurrent_grad(s.library.op) ? 1 : 0;
  const double product = 4.0 * steps * static_cast<double>(first[1] * w.shape[gates]);
  s.bytes_read +=
      (steps - 1) * static_cast<double>(w.shape.numel()) * static_cast<double>(size_of(w.dtype)) +
      product;
  s.bytes_written += product;
}

}  // namespace

void describe_step(const Graph& g, Step& s) {
  if (s.kind == Step::Kernel) {
    s.label = s.parts[0].label + (s.parts.size() > 1 ? " x" + std::to_string(s.parts.size()) : "");
    for (const auto* list : {&s.parts, &s.second})
      for (const KernelSpec& k : *list) count_work(k, s);
    if (!s.second.empty()) s.label += " + " + s.second[0].label;
    return;
  }
  s.label = s.kind == Step::Copy ? "copy" : info(s.library.op).name;
  s.label += to_string(s.library.epilogues);
  for (size_t b = 0; b < s.vals.size(); ++b) {
    if (b > 0 && b < static_cast<size_t>(s.library.written) && s.vals[b] == s.vals[0])
      continue;  // joined
    (b >= static_cast<size_t>(s.library.written) ? s.bytes_read : s.bytes_written) +=
        static_cast<double>(g.vals[s.vals[b]].bytes());
  }
  if (s.kind != Step::Library) return;
  s.flops = flops_of(s.library);
  if (s.device.type() != DeviceType::CPU && is_recurrent(s.library.op)) count_recurrent_traffic(s);
}

}  // namespace ingot
