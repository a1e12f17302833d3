// What functions with effects beside their result ask: checkpoint() calls them twice.
#pragma once

namespace ingot {

/// Is this thread computing again what a checkpoint did not keep? Then running statistics have
/// moved already.
bool recomputing();

/// While one lives, it is.
class Recomputing {
 public:
  Recomputing();
  ~Recomputing();
  Recomputing(const Recomputing&) = delete;
  Recomputing& operator=(const Recomputing&) = delete;

 private:
  bool previous_;
};

}  // namespace ingot
