// Grouping: which values are computed together in one kernel, and which get a buffer.
#pragma once
#include <vector>

#include "compile/index.h"
#include "compile/ir.h"

namespace ingot {

struct Group {
  std::vector<int>
      members;        // ascending; empty when the group was merged away or inlined everywhere
  int64_t numel = 0;  // points of the whole space
  int64_t outer = 0;  // points of the outer axes (numel when there is no reduction)
  bool reduce = false;
  Dims shape;  // of the space; inner axes in mask
  uint32_t mask = 0;
  std::vector<std::pair<int64_t, bool>> norm;  // the space with neighbours of one kind merged
  int first = 0, last = 0;                     // smallest and largest member
  int ops = 0;
  int reach = 0;                     // see Grouper::reach
  bool early = false, late = false;  // has members of that phase
};

struct Grouping {
  std::vector<Group> groups;
  std::vector<int> group;    // of each value; -1: none
  std::vector<Level> level;  // of each value, inside its group
};

/// The value that operand k of v is a view of, if it is a view.
struct Edge {
  int producer;
  bool direct;  // only reshapes between: the row-major order is the same
  bool fence;   // a fence between: the producer gets a buffer
};
Edge edge_of(const Graph& g, int v, int k);

/// Marks views that no index map can express as copied, and chooses the layout of library results.
void settle_views(Graph& g);
/// Can view u be given to a library as strides? Fills shape, stride, offset of the buffer of
/// `producer`.
bool strided_view(const Graph& g, int u, int& producer, Dims& stride, int64_t& offset,
                  int* failed_at = nullptr);

/// Before or after the last index check: see check_before_assign.cpp.
enum class Phase : uint8_t { Any, Early, Late };
std::vector<Phase> find_phases(const Graph& g);
/// What a check waits for reads assigned values, not the assignments.
void separate_assigns(Graph& g);

/// What an op costs, in simple instructions.
int weight(Op op);
/// Sets Val::material, and drops from the groups what their readers compute on the spot.
void choose_buffers(Graph& g, Grouping& r, bool fuse);
/// Forms groups and sets Val::material. With fuse off, every op is a separate kernel.
Grouping make_groups(Graph& g, bool fuse);

}  // namespace ingot
