// See code_memory.h.
#include "backend/cpu/code_memory.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#endif

namespace ingot::cpu {

#if defined(__linux__)
namespace {

/// A limit on the size of files (ulimit -f) counts for this memory too, and the signal that comes with it
/// ends the process: it is held back, and the call says EFBIG.
bool set_size(int fd, size_t bytes) {
  sigset_t size, before, waiting;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  sigpending(&waiting);
  pthread_sigmask(SIG_BLOCK, &size, &before);
  const bool done = ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  const timespec now{};
  if (!done && !sigismember(&waiting, SIGXFSZ)) sigtimedwait(&size, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done;
}

struct Mapping {
  char *write = nullptr, *run = nullptr;
  size_t size = 0, used = 0;

  explicit Mapping(size_t bytes) : size(bytes) {
    const int fd = memfd_create("ingot-code", MFD_CLOEXEC);
    if (fd < 0) return;
    if (set_size(fd, bytes)) {
      void* w = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      void* r = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
      if (w != MAP_FAILED) write = static_cast<char*>(w);
      if (r != MAP_FAILED) run = static_cast<char*>(r);
    }
    close(fd);
  }
  ~Mapping() {
    if (write) munmap(write, size);
    if (run) munmap(run, size);
  }
  bool good() const { return write && run; }
};

constexpr size_t kMapping = 256 << 10;

}  // namespace

Code::Code(const std::vector<uint8_t>& bytes) {
  static auto& mutex = *new ForkMutex<ForkOrder::Small>;
  static std::weak_ptr<Mapping> open;  // the one with room left
  static pid_t owner =
      0;  // after a fork the pages are still shared: parent and child must not both add to them
  const std::lock_guard lock(mutex);
  std::shared_ptr<Mapping> m = open.lock();
  const size_t need = (bytes.size() + 63) / 64 * 64;
  if (!m || owner != getpid() || m->size - m->used < need) {
    m = std::make_shared<Mapping>(need > kMapping ? (need + 4095) / 4096 * 4096 : kMapping);
    if (!m->good()) return;
    open = m;
    owner = getpid();
  }
  std::memcpy(m->write + m->used, bytes.data(), bytes.size());
  entry_ = m->run + m->used;
  m->used += need;
  bytes_ = need;
  mapping_ = m;
}

#else

Code::Code(const std::vector<uint8_t>&) {}

#endif

}  // namespace ingot::cpu
