// See executable.h.
#include "backend/cuda/runtime/executable.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace ingot::cuda {

void launch(CUfunction function, unsigned blocks, unsigned threads, unsigned shared_bytes,
            CUstream stream, void* argument, bool early) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  void* arguments[] = {argument};
  check(driver().launch_kernel_ex(&config, function, arguments, nullptr), "launching a kernel");
}

KernelExecutable::KernelExecutable(const CudaText& text, CudaLaunch launch, int parts,
                                   int buffers_per_part, std::shared_ptr<Module> module)
    : launch_(std::move(launch)),
      waits_(text.waits),
      parts_(parts),
      buffers_(buffers_per_part),
      module_(std::move(module)) {
  for (const CudaStage& s : text.stages) threads_.push_back(s.threads);
  scratch_bytes = launch_.scratch_bytes;
  launches = static_cast<int>(launch_.stages.size());
}

void KernelExecutable::ready() {
  if (!functions_.empty()) return;
  std::vector<CUfunction> f;
  for (size_t s = 0; s < launch_.stages.size(); ++s)
    f.push_back(module_->function(s, launch_.stages[s].shared_bytes));
  functions_ = std::move(f);
}

void KernelExecutable::write_table(int64_t* table, const int64_t* pointers) const {
  if (launch_.table.empty()) return;
  std::copy(launch_.table.begin(), launch_.table.end(), table);
  for (int p = 0; p < parts_; ++p)
    std::copy_n(pointers + static_cast<ptrdiff_t>(p) * buffers_, buffers_,
                table + launch_.first_part + static_cast<ptrdiff_t>(p) * launch_.part_words);
}

void KernelExecutable::enqueue(const LaunchSite& site) {
  alignas(16) int64_t argument[512];  // a kernel's arguments are at most 4 KB
  static_assert(sizeof(CudaHeader) == 6 * sizeof(int64_t));
  std::memcpy(argument, &site.header, sizeof site.header);
  std::copy(launch_.words.begin(), launch_.words.end(), argument + 6);
  if (launch_.table.empty())
    std::copy_n(site.pointers, buffers_, argument + 6 + launch_.first_part);
  bool after_kernel = site.after_kernel;
  for (size_t s = 0; s < functions_.size(); ++s) {
    const CudaLaunch::Stage& stage = launch_.stages[s];
    if (stage.grid == 0) continue;
    cuda::launch(functions_[s], stage.grid, threads_[s], stage.shared_bytes, site.stream, argument,
                 waits_ && after_kernel);
    after_kernel = true;
  }
}

static std::unique_ptr<CudaExecutable> as_cuda(std::unique_ptr<Executable> e) {
  return std::unique_ptr<CudaExecutable>(static_cast<CudaExecutable*>(e.release()));
}

ChainExecutable::ChainExecutable(std::unique_ptr<Executable> first,
                                 std::unique_ptr<Executable> second, int buffers)
    : first_(as_cuda(std::move(first))), second_(as_cuda(std::move(second))), buffers_(buffers) {
  scratch_ = add_up(*first_, *second_);
  touches = first_->touches;
  const Touches& more = second_->touches;
  touches.buffers.insert(touches.buffers.end(), more.buffers.begin(), more.buffers.end());
  touches.may_fail |= more.may_fail;
  touches.predicated |= more.predicated;
}

void ChainExecutable::write_table(int64_t* table, const int64_t* pointers) const {
  first_->write_table(table, pointers);
  second_->write_table(table + first_->table_words(), pointers + buffers_);
}

void ChainExecutable::ready() {
  first_->ready();
  second_->ready();
}

void ChainExecutable::enqueue(const LaunchSite& site) {
  first_->enqueue(site);
  LaunchSite next = site;
  next.header.table += first_->table_words();
  next.header.scratch = static_cast<char*>(site.header.scratch) + scratch_;
  next.pointers += buffers_;
  // Early only where the first might have been: a run whose launches are timed starts none early.
  next.after_kernel = site.after_kernel && first_->ends_with_kernel();
  second_->enqueue(next);
}

}  // namespace ingot::cuda
