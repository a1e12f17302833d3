// Placing temporaries: steps are walked in order; what begins takes the tightest free gap, what
// ends frees its memory. One pass with an ordered list of gaps, so a hundred thousand
// temporaries take milliseconds.
#include <algorithm>
#include <map>
#include <set>

#include "compile/plan.h"

namespace ingot {
namespace {

constexpr size_t kAlign = 256;

class Gaps {
 public:
  size_t take(size_t bytes) {
    auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      // Grow, using a gap at the very end if there is one.
      size_t at = end_;
      if (!by_place_.empty()) {
        auto last = std::prev(by_place_.end());
        if (last->first + last->second == end_) {
          at = last->first;
          by_size_.erase({last->second, last->first});
          by_place_.erase(last);
        }
      }
      end_ = at + bytes;
      return at;
    }
    auto [size, at] = *best;
    by_size_.erase(best);
    by_place_.erase(at);
    if (size > bytes) add(at + bytes, size - bytes);
    return at;
  }
  void give(size_t at, size_t bytes) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && next->first == at + bytes) {
      bytes += next->second;
      by_size_.erase({next->second, next->first});
      next = by_place_.erase(next);
    }
    if (next != by_place_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        by_size_.erase({before->second, before->first});
        by_place_.erase(before);
      }
    }
    add(at, bytes);
  }
  size_t end() const { return end_; }

 private:
  void add(size_t at, size_t bytes) {
    by_place_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  std::map<size_t, size_t> by_place_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t end_ = 0;
};

}  // namespace

std::vector<size_t> place_temporaries(std::vector<Temporary>& temps, int arenas) {
  int steps = 0;
  for (const Temporary& t : temps) steps = std::max(steps, t.last + 1);
  std::vector<std::vector<int>> begins(steps), ends(steps);
  for (size_t i = 0; i < temps.size(); ++i) {
    begins[temps[i].first].push_back(static_cast<int>(i));
    ends[temps[i].last].push_back(static_cast<int>(i));
  }
  std::vector<Gaps> gaps(arenas);
  auto rounded = [](size_t b) {
    return std::max<size_t>((b + kAlign - 1) / kAlign * kAlign, kAlign);
  };
  for (int s = 0; s < steps; ++s) {
    // Large ones first: they have the fewest gaps to choose from.
    std::stable_sort(begins[s].begin(), begins[s].end(),
                     [&](int a, int b) { return temps[a].bytes > temps[b].bytes; });
    for (int i : begins[s]) temps[i].offset = gaps[temps[i].arena].take(rounded(temps[i].bytes));
    for (int i : ends[s]) gaps[temps[i].arena].give(temps[i].offset, rounded(temps[i].bytes));
  }
  std::vector<size_t> size(arenas);
  for (int a = 0; a < arenas; ++a) size[a] = gaps[a].end();
  return size;
}

}  // namespace ingot
