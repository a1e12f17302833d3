// Attention through cuDNN, as fused graphs of its backend API.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

class Gpu;

struct AttentionProblem {
  bool backward = false;
  bool causal = false;
  double scale = 1;
  // Forward:  o [B,H,T,D], lse [B,H,T] (float32), q [B,H,T,D], k, v [B,H,S,D].
  // Backward: dq, dk, dv, then q, k, v, o, do, lse. Any strides whose last is 1.
  std::vector<OperandSpec> operands;
  bool bias = false;      // the last operand is added to the scores: [B or 1, H or 1, T, S]
  bool own_rows = false;  // forward: nobody asked for lse, it goes to scratch (but is still one of
                          // the operands)
};

/// The problem of a library call.
AttentionProblem attention_problem(const LibrarySpec& spec);
/// Why cuDNN has no graph for this, or nullptr. Asks no device.
const char* attention_refuses(const AttentionProblem& p);
/// nullptr when there is no cuDNN or it finds no engine: the caller decomposes.
std::unique_ptr<Executable> prepare_attention(Gpu& gpu, const AttentionProblem& p);
/// Plans for the device that a description (JSON text) names, without one: empty, or what went
/// wrong.
std::string plan_attention_for(const std::string& device_json, const AttentionProblem& p);

}  // namespace ingot::cuda
