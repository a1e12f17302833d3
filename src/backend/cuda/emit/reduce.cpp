// From every thread's accumulator to the result of its team, in an order that is fixed by the
// schedule: shuffles within a warp, shared memory between warps (Row) or between the threads of a
// column (Column). All threads of the team get the result, so that the next round can use it. No
// atomics: same bits every time.
#include "backend/cuda/emit/emit.h"

namespace ingot::cuda {

std::string Emitter::accumulator_type(int i) const {
  const Instr& in = k_.instrs[i];
  if (in.op == Op::ArgMax || in.op == Op::ArgMin)
    return (in_order() ? "IgBest<" : "IgArg<") +
           std::string(register_type(k_.instrs[in.arg[0]].dtype)) + ">";
  return register_type(in.dtype);
}

/// Does every thread meet all elements of its columns, in their order?
bool Emitter::in_order() const { return s_.alone() && !s_.wide; }

/// The ArgMax or ArgMin of the elements that instruction i is the largest or smallest of: the
/// element it found is that one. -1: there is none.
int Emitter::finder(int i) const {
  const Instr& in = k_.instrs[i];
  if (!in_order() || in.kind != InstrKind::Reduce || !(in.op == Op::Max || in.op == Op::Min))
    return -1;
  Op op = in.op == Op::Max ? Op::ArgMax : Op::ArgMin;
  for (size_t n = 0; n < k_.instrs.size(); ++n)
    if (k_.instrs[n].kind == InstrKind::Reduce && k_.instrs[n].op == op &&
        k_.instrs[n].arg[0] == in.arg[0] && rounds_.round[n] == rounds_.round[i])
      return static_cast<int>(n);
  return -1;
}

bool Emitter::lane_accumulator(int i) const { return s_.lanes_outer() && !uniform_[i]; }

void Emitter::declare_accumulators(const std::vector<int>& reduces) {
  for (int i : reduces) {
    if (finder(i) >= 0) continue;
    const Instr& in = k_.instrs[i];
    bool position = in.op == Op::ArgMax || in.op == Op::ArgMin;
    std::string zero = reduce_identity(in.op, in.dtype), a = "a" + str(i);
    if (position && in_order()) {
      DType t = k_.instrs[in.arg[0]].dtype;
      zero = "{" + reduce_identity(in.op == Op::ArgMax ? Op::Max : Op::Min, t) + ", 0}";
    }
    if (position) zero = accumulator_type(i) + zero;
    if (!lane_accumulator(i)) {
      out_.plain(accumulator_type(i) + " " + a + " = " + zero + ";");
    } else {
      out_.plain(accumulator_type(i) + " " + a + "[" + str(s_.lanes) + "];");
      out_.lane(a + "[j] = " + zero + ";");
    }
  }
}

/// Adds the current lane group.
void Emitter::accumulate(const std::vector<int>& reduces) {
  for (int i : reduces) {
    if (finder(i) >= 0) continue;
    const Instr& in = k_.instrs[i];
    const Instr& arg = k_.instrs[in.arg[0]];
    bool position = in.op == Op::ArgMax || in.op == Op::ArgMin;
    std::string a = "a" + str(i) + (lane_accumulator(i) ? "[j]" : "");
    std::string x = operand(in.arg[0]);
    std::string lane = s_.mode == Mode::Row && s_.lanes > 1 ? " + j" : "";
    x = position ? accumulator_type(i) + "{" + x + ", (long long)(lin" + lane + ")}"
                 : cast(arg.dtype, is_half(in.dtype) ? DType::Float32 : in.dtype, x);
    std::string line = a + " = " + reduce_function(in.op) + "(" + a + ", " + x + ");";
    if (position && in_order())
      line = std::string(in.op == Op::ArgMax ? "ig_next_max(" : "ig_next_min(") + a + ", " +
             operand(in.arg[0]) + ", lin);";
    std::string in_row = s_.exact ? "" : "ok",
                in_lanes = s_.mode == Mode::Row ? inside_lanes() : "";
    std::string both = in_row + (in_row.empty() || in_lanes.empty() ? "" : " && ") + in_lanes;
    if (!both.empty()) line = "if (" + both + ") " + line;
    if (s_.mode == Mode::Row || lane_accumulator(i))
      out_.lane(line);
    else
      out_.plain(line);
  }
}

void Emitter::combine_row(const std::vector<int>& reduces) {
  int warp = std::min(s_.team, 32), warps = s_.team / 32;
  auto shuffles = [&](int i, int from) {
    std::string a = "a" + str(i), f = reduce_function(k_.instrs[i].op);
    if (from > 1)
      out_.plain("IG_UNROLL for (int m = " + str(from / 2) + "; m > 0; m >>= 1) " + a + " = " + f +
                 "(" + a + ", ig_shuffle(" + a + ", m));");
  };
  for (int i : reduces) shuffles(i, warp);
  if (warps <= 1) return;
  for (int i : reduces) {
    out_.plain("__shared__ IgVec<unsigned char, " + str(s_.threads() / 32) + " * sizeof(" +
               accumulator_type(i) + ")> z" + str(i) + ";");
    out_.plain(accumulator_type(i) + "* y" + str(i) + " = (" + accumulator_type(i) + "*)z" +
               str(i) + ".e;");
    out_.plain("if ((threadIdx.x & 31) == 0) y" + str(i) + "[threadIdx.x >> 5] = a" + str(i) + ";");
  }
  out_.plain("__syncthreads();");
  for (int i : reduces) {
    std::string zero = reduce_identity(k_.instrs[i].op, k_.instrs[i].dtype);
    if (zero[0] == '{') zero = accumulator_type(i) + zero;
    std::string lane = "(threadIdx.x & 31)", first = s_.side > 1 ? "y * " + str(warps) + " + " : "";
    out_.plain("a" + str(i) + " = " + lane + " < " + str(warps) + " ? y" + str(i) + "[" + first +
               lane + "] : " + zero + ";");
    // Lanes from `warps` on hold neutral elements and take part in none of the first `warps` lanes'
    // sums.
    shuffles(i, warps);
    std::string a = "a" + str(i);
    if (warps < 32) out_.plain(a + " = ig_from_lane0(" + a + ");");
  }
}

void Emitter::combine_column(int i) {
  if (s_.team == 1) return;
  std::string a = "a" + str(i), f = reduce_function(k_.instrs[i].op), type = accumulator_type(i);
  bool lanes = lane_accumulator(i);
  std::string at = "[" + std::string(lanes ? "j * " + str(s_.threads()) + " + " : "");
  out_.plain("{ " + type + "* c = (" + type + "*)columns;");
  auto each = [&](const std::string& line) { lanes ? out_.lane(line) : out_.plain(line); };
  each("c" + at + "threadIdx.x] = " + a + (lanes ? "[j]" : "") + ";");
  out_.plain("__syncthreads();");
  out_.plain("for (int m = " + str(s_.team / 2) + "; m > 0; m >>= 1) {");
  out_.plain("if (t < m) {");
  each("c" + at + "threadIdx.x] = " + f + "(c" + at + "threadIdx.x], c" + at +
       "threadIdx.x + m * " + str(s_.side) + "]);");
  out_.plain("}");
  out_.plain("__syncthreads(); }");
  each(a + (lanes ? "[j]" : "") + " = c" + at + "x];");
  out_.plain("__syncthreads(); }");
}

void Emitter::combine(const std::vector<int>& reduces) {
  if (s_.mode == Mode::Row) {
    combine_row(reduces);
  } else {
    for (int i : reduces) combine_column(i);
  }
}

}  // namespace ingot::cuda
