// See code_memory.h.
#include "backend/cpu/jit/code_memory.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#endif

namespace ingot::cpu {

#if defined(__linux__)
namespace {

/// A limit on file sizes (ulimit -f) applies to this memory too, and its signal would end the
/// process: it is blocked, and the call returns EFBIG.
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
  char* run = nullptr;
  size_t size = 0, used = 0;
  int fd = -1;

  explicit Mapping(size_t bytes)
      : size(bytes), fd(memfd_create("ingot-code", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (fd < 0 || !set_size(fd, bytes)) return;
    void* r = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (r != MAP_FAILED) run = static_cast<char*>(r);
  }
  ~Mapping() {
    if (run) munmap(run, size);
    if (fd >= 0) close(fd);
  }
  bool add(const std::vector<uint8_t>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n =
          pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(used + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }
  // Nothing is added any more: the content can no longer change.
  void seal() {
    if (fd < 0) return;
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    close(std::exchange(fd, -1));
  }
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
    // After a fork the parent may still add to its own.
    if (m && owner == getpid()) m->seal();
    m = std::make_shared<Mapping>(need > kMapping ? (need + 4095) / 4096 * 4096 : kMapping);
    if (!m->run) return;
    open = m;
    owner = getpid();
  }
  if (!m->add(bytes)) return;
  entry_ = m->run + m->used;
  m->used += need;
  bytes_ = need;
  mapping_ = m;
}

#else

Code::Code(const std::vector<uint8_t>&) {}

#endif

}  // namespace ingot::cpu
