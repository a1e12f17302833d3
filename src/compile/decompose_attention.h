// Attention that a backend has a call for, but refuses when it sees the operands.
#pragma once
#include <vector>

#include "compile/ir.h"

namespace ingot {

/// What tells one attention call from another, its operands' strides aside.
struct AttentionCall {
  Op op = Op::Attention;
  DType dtype = DType::Float32;
  Dims q, k, v;
  Attributes attrs;
  int inputs = 0;
  Device device{DeviceType::CPU, 0};
  bool operator==(const AttentionCall&) const = default;
};
AttentionCall attention_call(const Graph& g, const Val& v);

/// Can it be written out?
bool is_written_out(const Val& v);
/// The named calls -> products, a softmax and what else they stand for; scores are float32.
void write_out_attention(Graph& g, const std::vector<AttentionCall>& calls);

}  // namespace ingot
