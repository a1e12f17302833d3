// The offer of recurrent steps: which cells there are, and what they take.
#include "backend/cpu/rnn/recurrence.h"

namespace ingot::cpu {

// Of an op and its gradient
std::unique_ptr<CpuExecutable> make_lstm(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> make_gru(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> make_rnn(const LibrarySpec& spec);

namespace {

struct Made {
  Op forward, backward;
  std::unique_ptr<CpuExecutable> (*make)(const LibrarySpec& spec);
};
constexpr Made kCells[] = {
    {Op::Lstm, Op::LstmGrad, make_lstm},
    {Op::Gru, Op::GruGrad, make_gru},
    {Op::Rnn, Op::RnnGrad, make_rnn},
};

const Made* find(Op op) {
  for (const Made& m : kCells)
    if (m.forward == op || m.backward == op) return &m;
  return nullptr;
}

}  // namespace

const char* recurrent_refuses(const LibrarySpec& s) {
  const Dims& steps = s.operands[0].shape;  // h, or what was kept: [T, N, ..]
  if (!find(s.op)) return "it has no such cell";
  if (s.operands[0].dtype != DType::Float32) return "it computes in float32 only";
  if (gemm_f32().nr > kMostColumns) return "the processor's vectors are too wide for its cells";
  if (steps[0] < 4 || steps[0] * steps[1] < 32) return "too few steps to pack the weight for";
  return nullptr;
}

// A cell reads its element of z and then writes there: what is kept for the gradient, or h where
// nothing else is. In the backward pass it reads what was kept and writes the gradients there.
bool recurrent_in_place(const LibrarySpec& s, size_t operand, size_t result) {
  const bool gates = !is_recurrent_grad(s.op) && info(s.op).results > 1;
  if (operand != static_cast<size_t>(s.written) || result != (gates ? 1 : 0)) return false;
  if (gates && !s.gives(1)) return false;  // the second result is c
  auto whole = [](const OperandSpec& o) {
    return o.offset == 0 && (o.stride.empty() || o.stride == row_major(o.shape));
  };
  const OperandSpec &from = s.operands[operand], &to = s.operands[result];
  return whole(from) && whole(to) && from.shape == to.shape;
}

std::unique_ptr<CpuExecutable> prepare_recurrent(const LibrarySpec& spec, const char*&) {
  return find(spec.op)->make(spec);
}

}  // namespace ingot::cpu
