// Every op, table-driven: one list of cases x element types x fused and unfused x the devices
// present. Forward against the oracle; gradients against finite differences (of the oracle) and
// against the oracle's view of the same graph.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "ops/op_cases.h"

using namespace ingot;
using namespace ingot::check;

namespace {

const std::vector<DType> kFloats = {float64, float32, float16, bfloat16};
const std::vector<DType> kInts = {int64, int32, int16, int8, uint8};

std::vector<DType> types_of(const Case& c) {
  switch (c.types) {
    case Types::Float:
      return kFloats;
    case Types::Number: {
      std::vector<DType> all = kFloats;
      all.insert(all.end(), kInts.begin(), kInts.end());
      return all;
    }
    case Types::Int:
      return kInts;
    case Types::Any: {
      std::vector<DType> all = kFloats;
      all.insert(all.end(), kInts.begin(), kInts.end());
      all.push_back(bool_);
      return all;
    }
    case Types::Bits:
      return {int64, int32, int16, int8, uint8, bool_};
  }
  return {};
}

std::vector<Tensor> inputs_of(const Case& c, DType dtype, const Device& device) {
  Numbers numbers(11);
  std::vector<Tensor> result;
  for (const In& in : c.inputs) {
    DType t = in.fixed.value_or(dtype);
    double lo = in.lo, hi = in.hi;
    if (!is_float(t) && !in.fixed) {  // integers: a small range that keeps products in int8
      lo = t == DType::UInt8 || lo >= 0 ? std::max(1.0, std::ceil(lo)) : -4;
      hi = 5;
    }
    result.push_back(random_tensor(in.shape, t, lo, hi, numbers, device));
  }
  return result;
}

void check_forward(const Case& c, DType dtype, const Device& device) {
  std::vector<Tensor> inputs = inputs_of(c, dtype, device);
  std::vector<Tensor> outputs = c.fn(inputs);
  std::vector<oracle::Value> want;
  for (const Tensor& t : outputs) want.push_back(expected(t));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tolerance tol = tolerance(is_float(dtype) && is_float(outputs[i].dtype()) &&
                                      size_of(dtype) < size_of(outputs[i].dtype())
                                  ? dtype
                                  : outputs[i].dtype());
    tol.rel *= c.slack;
    tol.abs *= c.slack;
    std::string wrong = difference(computed(outputs[i]), want[i], tol);
    CHECK_MESSAGE(wrong.empty(), c.name, " ", name_of(dtype), " on ", device.name(), ": output ", i,
                  " ", wrong);
  }
}

struct Gradients {
  std::vector<Tensor> leaves, grads;
  Tensor sum;
};

Gradients gradients_of(const Case& c, const Device& device, bool again = false) {
  Gradients g;
  std::vector<Tensor> inputs = inputs_of(c, float64, device);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (c.inputs[i].fixed) continue;
    inputs[i].requires_grad_();
    g.leaves.push_back(inputs[i]);
  }
  g.sum = weighted_sum(c.fn(inputs));
  g.grads.resize(g.leaves.size());
  if (g.sum.requires_grad()) g.grads = grad({g.sum}, g.leaves, {}, true, again, true);
  return g;
}

void check_rules(const Case& c) {
  Gradients g = gradients_of(c, "cpu");
  std::string wrong = check_differences(g.sum, g.leaves, g.grads);
  CHECK_MESSAGE(wrong.empty(), c.name, ": ", wrong);
}

// The gradient of a weighted sum of the gradients.
void check_second(const Case& c) {
  Gradients g = gradients_of(c, "cpu", true);
  std::vector<Tensor> first;
  for (const Tensor& t : g.grads)
    if (t.defined()) first.push_back(t);
  Tensor sum = weighted_sum(first);
  if (!sum.requires_grad()) return;
  std::vector<Tensor> second = grad({sum}, g.leaves, {}, true, false, true);
  std::string wrong = check_differences(sum, g.leaves, second);
  CHECK_MESSAGE(wrong.empty(), c.name, ", second gradient: ", wrong);
}

void check_gradients(const Case& c, const Device& device) {
  Gradients g = gradients_of(c, device);
  std::vector<oracle::Value> want;
  for (const Tensor& t : g.grads) want.push_back(t.defined() ? expected(t) : oracle::Value());
  for (size_t i = 0; i < g.grads.size(); ++i) {
    if (!g.grads[i].defined()) continue;
    std::string wrong = difference(computed(g.grads[i]), want[i], {1e-9, 1e-10});
    CHECK_MESSAGE(wrong.empty(), c.name, " on ", device.name(), ": gradient ", i, " ", wrong);
  }
}

// A case that throws is one failure, not the end of the list.
template <class F>
void guarded(const Case& c, F check) {
  try {
    check();
  } catch (const std::exception& e) {
    FAIL_CHECK(c.name, ": threw ", std::string(e.what()));
  }
}

/// All cases, or with INGOT_TEST_SHARD=2/8 the third of every eight: several processes share the
/// work.
std::vector<Case> my_cases() {
  unsigned shard = 0, shards = 1;
  if (const char* e = std::getenv("INGOT_TEST_SHARD")) std::sscanf(e, "%u/%u", &shard, &shards);
  std::vector<Case> mine;
  size_t n = 0;
  for (const Case& c : cases())
    if (n++ % std::max(shards, 1u) == shard) mine.push_back(c);
  return mine;
}

std::vector<Device> devices() {
  if (const char* only = std::getenv("INGOT_TEST_DEVICE")) return {only};
  std::vector<Device> list = {"cpu"};
  for (const Device& d : Device::all())
    if (d.is_cuda()) list.push_back(d);
  return list;
}

}  // namespace

TEST_CASE("gradient rules agree with finite differences") {
  for (const Case& c : my_cases())
    if (c.grad) guarded(c, [&] { check_rules(c); });
}

TEST_CASE("second gradients agree with finite differences") {
  for (const Case& c : my_cases())
    if (c.grad) guarded(c, [&] { check_second(c); });
}

TEST_CASE("forward agrees with the oracle, fused and not") {
  for (bool fused : {true, false}) {
    CAPTURE(fused);
    set_fusion(fused);
    for (const Device& d : devices())
      for (const Case& c : my_cases())
        for (DType t : types_of(c)) guarded(c, [&] { check_forward(c, t, d); });
  }
  set_fusion(true);
}

TEST_CASE("computed gradients agree with the oracle, fused and not") {
  for (bool fused : {true, false}) {
    CAPTURE(fused);
    set_fusion(fused);
    for (const Device& d : devices())
      for (const Case& c : my_cases())
        if (c.grad) guarded(c, [&] { check_gradients(c, d); });
  }
  set_fusion(true);
}
