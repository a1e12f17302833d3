// The backend's own threads: one pool for the process, work distributed in pieces, the
// caller takes part. Workers spin for some microseconds before they sleep, so that
// consecutive kernels start cheaply.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ingot {

/// How many threads the CPU backend computes with, the caller included. At start:
/// INGOT_NUM_THREADS, else all cores.
void set_num_threads(int n);
int get_num_threads();

}  // namespace ingot

namespace ingot::cpu {

/// fn(context, begin, end) for pieces of [0, count), at most `grain` items each, on all threads;
/// returns when all are done. Runs on the caller alone when there is one piece or another caller
/// has the pool. An exception from fn (the first one, when several threads throw) is rethrown here
/// once no thread is inside fn any more; pieces that had not begun by then are skipped.
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_range(int64_t count, int64_t grain, RangeFn fn, void* context);

template <class Fn>
void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
  parallel_range(
      count, grain,
      [](void* c, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<Fn>*>(c))(b, e); },
      &fn);
}

/// Scratch of the calling thread, on full pages, kept from kernel to kernel: one block for all of
/// them, since they do not nest. When it grows, its content is lost. Throws std::bad_alloc.
char* thread_memory(size_t bytes);
/// Zeros to read, of the calling thread too.
const void* thread_zeros(size_t bytes);
/// A prepared kernel declares how much of it each thread will need: the pool's threads get it now,
/// so that a run does not fail half-way for lack of it. Throws std::bad_alloc.
void require_thread_memory(size_t bytes);
/// The calling thread gets as much as any kernel has required so far.
void take_required_memory();

/// Existing threads of the pool, the caller not counted (tests).
int pool_workers();
/// Makes starting every worker from number n on fail, as when the system has no more threads; 0:
/// none.
void refuse_workers_from(int n);

}  // namespace ingot::cpu
