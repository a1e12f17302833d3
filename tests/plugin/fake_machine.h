// What the files of the fake CUDA machine share.
#pragma once
#include <cstddef>
#include <functional>

namespace fake {

constexpr int kOk = 0, kInvalid = 1, kNoMemory = 2;

/// FAKE_CUDA=null: an H200 that runs nothing.
bool nothing_runs();
/// Bytes of device memory.
size_t memory_bytes();
/// Has this thread a context?
bool has_context();

}  // namespace fake

/// Work on a stream: done at once, or at each launch of the graph that is being captured.
int fake_cuda_put(void* stream, std::function<int()> work);
