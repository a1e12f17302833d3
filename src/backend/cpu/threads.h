// The backend's own threads: one pool for the process, work handed out in pieces, the caller takes part.
// Workers spin for some microseconds before they sleep, so that kernels in a row cost little to start.
#pragma once
#include <cstdint>
#include <type_traits>

namespace ingot {

/// How many threads the CPU backend computes with, the caller included. At start: INGOT_NUM_THREADS, else all
/// cores.
void set_num_threads(int n);
int get_num_threads();

}  // namespace ingot

namespace ingot::cpu {

/// fn(context, begin, end) for pieces of [0, count), at most `grain` items each, on all threads; returns when
/// all are done. Runs on the caller alone when there is one piece or another caller has the pool. fn must not
/// throw.
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_range(int64_t count, int64_t grain, RangeFn fn, void* context);

template <class Fn>
void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
  parallel_range(
      count, grain,
      [](void* c, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<Fn>*>(c))(b, e); }, &fn);
}

}  // namespace ingot::cpu
