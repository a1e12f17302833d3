// The threads of one block as fibers. A fiber runs until it waits (for its block or for its warp)
// or ends; the scheduler resumes it when all that it waits for have come.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

struct IgEmuState;

namespace ingot::test {

/// Runs body as `threads` threads of a block; `state` is what the kernel text sees (thread numbers,
/// callbacks). Throws std::runtime_error when they deadlock.
void run_fibers(unsigned threads, IgEmuState& state, const std::function<void()>& body);

}  // namespace ingot::test
