// How a kernel file says what it is made of: INGOT_KERNEL_PARAMS declares the parameters once, for
// the host and for the device text; make_kernel() puts text, template arguments and launch
// together.
//
// A device text is plain CUDA C++: function templates that take `const Argument<Params> p`, as a
// __global__ function does, or a reference where p is passed on or an array in it is indexed by a
// variable (by value, that could be a copy in local memory). The entry points that NVRTC compiles
// are made here, one per stage, each a call of one such function with its template arguments:
// Float32, BFloat16, ... for dtypes (kernel_source.cpp), numbers and flags.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {

/// An operand's address, filled in at launch: plain, or with kIndirectPointer set the address of
/// the place where it stands. ig_pointer() on the device takes both.
using Address = long long;

struct ParamsText {
  const char* name;
  const char* definition;
};

/// INGOT_KERNEL_PARAMS(Name, { fields }); at namespace scope: struct Name for the host, and the
/// same struct as device text. Fields are Address (operands first, in the call's order), long long,
/// double, and structs and arrays of those: eight bytes each, so that both sides agree.
#define INGOT_KERNEL_PARAMS(Name, ...)                        \
  struct Name __VA_ARGS__;                                    \
  inline ::ingot::cuda::ParamsText params_text(const Name*) { \
    return {#Name, "struct " #Name " " #__VA_ARGS__ ";\n"};   \
  }                                                           \
  static_assert(sizeof(Name) % 8 == 0 && std::is_trivially_copyable_v<Name>)

std::string template_argument(DType t);
inline std::string template_argument(bool on) { return on ? "true" : "false"; }
inline std::string template_argument(int value) { return std::to_string(value); }
inline std::string template_argument(int64_t value) { return std::to_string(value); }
inline std::string template_argument(std::string_view text) { return std::string(text); }
inline std::string template_argument(const char* text) { return text; }

/// "name<Float32, 4, true>"
template <class... A>
std::string instance(const char* name, const A&... arguments) {
  std::string list;
  ((list += (list.empty() ? "" : ", ") + template_argument(arguments)), ...);
  return name + ("<" + list + ">");
}

/// Template arguments by name, for a kernel that has many: struct Call { ... }, which the kernel
/// takes as one argument.
class CallTraits {
 public:
  CallTraits& type(const char* name, std::string_view is);
  CallTraits& type(const char* name, DType is) { return type(name, template_argument(is)); }
  CallTraits& value(const char* name, int64_t is);
  CallTraits& flag(const char* name, bool is);
  std::string text() const { return "struct Call {\n" + members_ + "};\n"; }

 private:
  std::string members_;
};

struct KernelStage {
  std::string function;  // a device function of (const Argument<Params>&), template arguments too
  int64_t blocks;
  unsigned threads;
  bool barriers = false;      // do its threads wait for one another?
  unsigned shared_bytes = 0;  // dynamic shared memory
  int cluster = 1;            // blocks of a cluster
};

CudaKernel make_kernel(const std::string& name, const ParamsText& params, const std::string& text,
                       const std::vector<KernelStage>& stages, std::vector<int64_t> words);

/// A kernel whose stages are launched one after the other with the same parameters.
template <class Params>
CudaKernel make_kernel(const std::string& name, const std::string& text,
                       const std::vector<KernelStage>& stages, const Params& params) {
  std::vector<int64_t> words(sizeof params / sizeof(int64_t));
  std::memcpy(words.data(), &params, sizeof params);
  return make_kernel(name, params_text(&params), text, stages, std::move(words));
}

/// The cell of a recurrent op: rows of `width` elements, a thread for some neighbouring elements of
/// a row, which loads before the previous kernel has ended what that one does not write.
inline constexpr unsigned kCellThreads = 128;

template <class Params>
CudaKernel cell_kernel(const char* name, const char* text, const std::string& function,
                       int64_t threads, int64_t width, int64_t row_stride) {
  Params p{};
  p.threads = threads, p.width = width, p.row_stride = row_stride;
  const int64_t blocks = (threads + kCellThreads - 1) / kCellThreads;
  CudaKernel k = make_kernel(name, text, {{function, blocks, kCellThreads}}, p);
  k.text.waits = true;
  return k;
}

}  // namespace ingot::cuda
