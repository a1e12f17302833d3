// A convolution with residual and ReLU where cuDNN has no engine for all of it: the convolution
// (with its bias), then a generated kernel that adds the residual and applies ReLU in place.
#pragma once
#include <memory>
#include <vector>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

/// Has the convolution an epilogue besides a bias?
bool has_residual_or_relu(const LibrarySpec& spec);
/// The same call without these epilogues.
LibrarySpec without_residual_and_relu(const LibrarySpec& spec);
/// y = relu(y + residual), as far as the call has these; its buffers as residual_relu_buffers says.
KernelSpec residual_relu_kernel(const LibrarySpec& spec);
/// Which operands of the call the buffers of that kernel are.
std::vector<int> residual_relu_buffers(const LibrarySpec& spec);

class SplitConv final : public CudaExecutable {
 public:
  SplitConv(std::unique_ptr<Executable> conv, std::unique_ptr<Executable> epilogue,
            std::vector<int> buffers);
  bool fixed_addresses() const override {
    return conv_->fixed_addresses() || epilogue_->fixed_addresses();
  }
  size_t table_words() const override { return conv_->table_words() + epilogue_->table_words(); }
  void write_table(int64_t* table, const int64_t* pointers) const override;
  void ready() override;
  void enqueue(const LaunchSite& site) override;
  bool ends_with_kernel() const override { return epilogue_->ends_with_kernel(); }

 private:
  std::vector<int64_t> epilogue_pointers(const int64_t* pointers) const;
  std::unique_ptr<CudaExecutable> conv_, epilogue_;
  std::vector<int> buffers_;
  size_t scratch_;
};

}  // namespace ingot::cuda
