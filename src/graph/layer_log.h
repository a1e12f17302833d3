// Which layer recorded a node: while somebody wants to know (the guard against NaN), each call of a
// module leaves the range of node numbers recorded inside it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

struct LayerCall {
  uint64_t first, last;  // node numbers: first <= seq < last
  std::string path;
};

struct LayerLog {
  int wanted = 0;                // by how many
  std::vector<LayerCall> calls;  // inner calls before the outer ones
};
/// This thread's.
LayerLog& layer_log();

/// The number the next recorded node gets.
uint64_t next_node_number();

/// The innermost layer that recorded the node of this number, or "".
std::string layer_of(const std::vector<LayerCall>& calls, uint64_t seq);

}  // namespace ingot
