#include "graph/storage.h"

namespace ingot {

void retain(Storage* s) { s->refs.fetch_add(1, std::memory_order_relaxed); }

void release(Storage* s) {
  if (s->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (s->on_release)
    s->on_release();
  else if (s->data && s->free)
    s->free(*s);
  delete s;
}

}  // namespace ingot
