// See conv_epilogue.h.
#include "backend/cuda/cudnn/conv_epilogue.h"

#include <algorithm>

namespace ingot::cuda {
namespace {

// A result's dims, slowest first. Neighbouring dims that are contiguous with each other in all
// operands are merged.
struct Axes {
  std::vector<int64_t> extent;
  std::vector<std::vector<int64_t>> stride;  // per operand
};

Axes axes_of(const std::vector<const OperandSpec*>& operands) {
  const OperandSpec& y = *operands[0];
  std::vector<int> order;
  for (int d = 0; d < y.shape.size(); ++d)
    if (y.shape[d] > 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return y.stride[a] > y.stride[b]; });
  Axes axes;
  axes.stride.resize(operands.size());
  for (int d : order) {
    bool joins = !axes.extent.empty();
    for (size_t k = 0; k < operands.size(); ++k)
      joins = joins && axes.stride[k].back() == operands[k]->stride[d] * y.shape[d];
    if (!joins) axes.extent.push_back(1);
    axes.extent.back() *= y.shape[d];
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!joins) axes.stride[k].push_back(0);
      axes.stride[k].back() = operands[k]->stride[d];
    }
  }
  return axes;
}

int64_t reached(const OperandSpec& o) {
  int64_t last = o.offset;
  for (int d = 0; d < o.shape.size(); ++d) last += (o.shape[d] - 1) * o.stride[d];
  return last + 1;
}

}  // namespace

bool has_residual_or_relu(const LibrarySpec& spec) {
  return spec.op == Op::Conv && (spec.has(Epilogue::Residual) || spec.has(Epilogue::Relu));
}

LibrarySpec without_residual_and_relu(const LibrarySpec& spec) {
  LibrarySpec plain = spec;
  if (plain.has(Epilogue::Residual)) plain.operands.pop_back();
  plain.epilogues = plain.epilogues.without({Epilogue::Residual, Epilogue::Relu});
  return plain;
}

std::vector<int> residual_relu_buffers(const LibrarySpec& spec) {
  std::vector<int> b{0};
  if (spec.has(Epilogue::Residual)) b.push_back(static_cast<int>(spec.operands.size()) - 1);
  b.push_back(0);
  return b;
}

KernelSpec residual_relu_kernel(const LibrarySpec& spec) {
  const OperandSpec& y = spec.operands[0];
  std::vector<const OperandSpec*> read{&y};
  if (spec.has(Epilogue::Residual)) read.push_back(&spec.operands.back());
  const Axes axes = axes_of(read);
  KernelSpec k;
  k.extent = axes.extent;
  k.n_outer = static_cast<int>(k.extent.size());
  k.label = spec.has(Epilogue::Residual) ? "add relu" : "relu";
  auto compute = [&](Op op, int a, int b) {
    Instr i;
    i.kind = InstrKind::Compute;
    i.op = op;
    i.dtype = y.dtype;
    i.arg[0] = a, i.arg[1] = b;
    k.instrs.push_back(i);
    return static_cast<int>(k.instrs.size()) - 1;
  };
  for (size_t n = 0; n < read.size(); ++n) {
    Instr i;
    i.kind = InstrKind::Load;
    i.dtype = read[n]->dtype;
    i.buffer = static_cast<int32_t>(n);
    i.map = {read[n]->offset, axes.stride[n]};
    k.instrs.push_back(i);
    k.buffers.push_back({read[n]->dtype, reached(*read[n]), false, n == 0});
  }
  int value = spec.has(Epilogue::Residual) ? compute(Op::Add, 0, 1) : 0;
  if (spec.has(Epilogue::Relu)) value = compute(Op::Relu, value, -1);
  Store s;
  s.value = value;
  s.buffer = static_cast<int32_t>(k.buffers.size());
  s.map = {y.offset, axes.stride[0]};
  k.stores.push_back(s);
  k.buffers.push_back({y.dtype, reached(y), true, true});
  return k;
}

static std::unique_ptr<CudaExecutable> as_cuda(std::unique_ptr<Executable> e) {
  return std::unique_ptr<CudaExecutable>(static_cast<CudaExecutable*>(e.release()));
}

SplitConv::SplitConv(std::unique_ptr<Executable> conv, std::unique_ptr<Executable> epilogue,
                     std::vector<int> buffers)
    : conv_(as_cuda(std::move(conv))),
      epilogue_(as_cuda(std::move(epilogue))),
      buffers_(std::move(buffers)) {
  scratch_ = add_up(*conv_, *epilogue_);
}

std::vector<int64_t> SplitConv::epilogue_pointers(const int64_t* pointers) const {
  std::vector<int64_t> p;
  for (int b : buffers_) p.push_back(pointers[b]);
  return p;
}

void SplitConv::write_table(int64_t* table, const int64_t* pointers) const {
  conv_->write_table(table, pointers);
  epilogue_->write_table(table + conv_->table_words(), epilogue_pointers(pointers).data());
}

void SplitConv::ready() {
  conv_->ready();
  epilogue_->ready();
}

void SplitConv::enqueue(const LaunchSite& site) {
  conv_->enqueue(site);
  const std::vector<int64_t> pointers = epilogue_pointers(site.pointers);
  LaunchSite next = site;
  next.header.table += conv_->table_words();
  next.header.scratch = static_cast<char*>(site.header.scratch) + scratch_;
  next.pointers = pointers.data();
  next.after_kernel = site.after_kernel && conv_->ends_with_kernel();
  epilogue_->enqueue(next);
}

}  // namespace ingot::cuda
