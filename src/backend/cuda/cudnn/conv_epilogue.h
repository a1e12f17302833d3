// A convolution with residual and ReLU where cuDNN has no engine for the whole: the convolution
// alone (with its bias), and a generated kernel that does the rest in place.
#pragma once
#include <memory>
#include <vector>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

/// Does anything but a bias follow the convolution?
bool has_tail(const LibrarySpec& spec);
/// The same call without what follows the bias.
LibrarySpec without_tail(const LibrarySpec& spec);
/// y = relu(y + residual), as far as the call has these; buffers as tail_buffers says.
KernelSpec conv_tail(const LibrarySpec& spec);
/// Which operands of the call the tail's buffers are.
std::vector<int> tail_buffers(const LibrarySpec& spec);

class SplitConv final : public CudaExecutable {
 public:
  SplitConv(std::unique_ptr<Executable> conv, std::unique_ptr<Executable> tail,
            std::vector<int> buffers);
  bool fixed_addresses() const override {
    return conv_->fixed_addresses() || tail_->fixed_addresses();
  }
  size_t table_words() const override { return conv_->table_words() + tail_->table_words(); }
  void write_table(int64_t* table, const int64_t* pointers) const override;
  void ready() override;
  void enqueue(const LaunchSite& site) override;
  bool ends_with_kernel() const override { return tail_->ends_with_kernel(); }

 private:
  std::vector<int64_t> tail_pointers(const int64_t* pointers) const;
  std::unique_ptr<CudaExecutable> conv_, tail_;
  std::vector<int> buffers_;
  size_t scratch_;
};

}  // namespace ingot::cuda
