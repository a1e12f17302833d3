// A compiled launch: one Plan per different part, and the order in which their boxes are given to
// threads.
#pragma once
#include <memory>
#include <span>

#include "backend/cpu/kernel/exec.h"

namespace ingot::cpu {

/// What the CPU backend's launch() calls.
class CpuExecutable : public Executable {
 public:
  virtual void run(void* const* buffers, void* scratch, const RunArgs& args) = 0;
};

/// One kernel after the other.
class Chain final : public CpuExecutable {
 public:
  Chain(std::unique_ptr<Executable> first, std::unique_ptr<Executable> second, int buffers)
      : first_(std::move(first)), second_(std::move(second)), buffers_(buffers) {
    scratch_ = add_up(*first_, *second_);
  }
  size_t host_bytes() const override {
    return sizeof *this + first_->host_bytes() + second_->host_bytes();
  }
  void run(void* const* buffers, void* scratch, const RunArgs& args) override {
    static_cast<CpuExecutable&>(*first_).run(buffers, scratch, args);
    static_cast<CpuExecutable&>(*second_).run(buffers + buffers_,
                                              static_cast<char*>(scratch) + scratch_, args);
  }

 private:
  std::unique_ptr<Executable> first_, second_;
  int buffers_;
  size_t scratch_;
};

class Kernel final : public CpuExecutable {
 public:
  explicit Kernel(std::span<const KernelSpec> parts);
  size_t host_bytes() const override;
  void run(void* const* buffers, void* scratch, const RunArgs& args) override;

 private:
  struct Part {
    const Plan* plan;
    int first_buffer;
    int64_t scratch;  // offset, split plans
  };
  /// Parts and the number of their first task among the tasks of a pass.
  struct Pass {
    std::vector<int> part;
    std::vector<int64_t> first;
    int64_t tasks = 0;
    int64_t work = 0;
  };
  void run_pass(const Pass& pass, size_t round, void* const* buffers, char* scratch,
                const RunArgs& args);
  void run_tasks(const Pass& pass, size_t round, int64_t begin, int64_t end, void* const* buffers,
                 char* scratch, const RunArgs& args);
  void merge_pass(size_t round, void* const* buffers, char* scratch, const RunArgs& args);
  char* box_area(const Part& p, char* scratch, int64_t box) const;
  char* acc_area(const Part& p, char* scratch, int64_t box, int64_t split) const;

  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Part> parts_;
  std::vector<Pass> passes_;  // pass r: round r of split parts; pass 0 has all the others too
  bool splits_ = false;
};

}  // namespace ingot::cpu
