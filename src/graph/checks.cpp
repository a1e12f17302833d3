#include "graph/checks.h"

#include <string>

#include "graph/thread_state.h"

namespace ingot {
namespace {

struct Words {
  const char* op;
  const char* problem;  // of conditions
  const char* fix;
};

constexpr Words words[] = {
    {"index", nullptr, nullptr},
    {"gather", nullptr, nullptr},
    {"index_select", nullptr, nullptr},
    {"index_add", nullptr, nullptr},
    {"index_copy", nullptr, nullptr},
    {"embedding", nullptr, nullptr},
    {"one_hot", nullptr, nullptr},
    {"scatter", nullptr, nullptr},
    {"scatter_add", nullptr, nullptr},
    {"scatter_reduce", nullptr, nullptr},
    {"accuracy", nullptr, nullptr},
    {"cross_entropy", nullptr, nullptr},
    {"nll_loss", nullptr, nullptr},
    {"index", nullptr, nullptr},
    {"index_put", nullptr, nullptr},
    {"index_fill", nullptr, nullptr},
    {"take", nullptr, nullptr},
    {"take_along_dim", nullptr, nullptr},
    {"put", nullptr, nullptr},
    {"floor_divide", "ZeroDivisionError: an integer is divided by 0",
     "check the divisor, or divide floating numbers"},
    {"div", "ZeroDivisionError: an integer is divided by 0",
     "check the divisor, or divide floating numbers"},
    {"remainder", "ZeroDivisionError: an integer is divided by 0",
     "check the divisor, or divide floating numbers"},
    {"fmod", "ZeroDivisionError: an integer is divided by 0",
     "check the divisor, or divide floating numbers"},
    {"binary_cross_entropy", "all elements of input should be between 0 and 1, but one is not",
     "apply sigmoid() first, or use binary_cross_entropy_with_logits()"},
    {"bernoulli", "all elements should be between 0 and 1, but one is not",
     "probabilities are between 0 and 1"},
    {"normal", "std has a negative element", "standard deviations are 0 or more"},
    {"multinomial",
     "the weights contain a number that is negative, infinite or NaN, or a row whose sum is 0",
     "give weights of 0 or more, at least one of them above 0"},
};
static_assert(sizeof words / sizeof *words == static_cast<size_t>(Check::Count_));

}  // namespace

CheckScope::CheckScope(Check check) : previous_(this_thread.check) {
  if (previous_ == Check::None) this_thread.check = check;
}
CheckScope::~CheckScope() { this_thread.check = previous_; }

Check current_check() { return this_thread.check; }

const char* name_of(Check check) { return words[static_cast<size_t>(check)].op; }

Error failed_check(Check check, const char* op, int64_t value, int64_t size, const SourceLoc& loc) {
  const Words& w = words[static_cast<size_t>(check)];
  if (w.problem) return Error(ErrorKind::Value, w.op, w.problem, loc, w.fix);
  const std::string n = std::to_string(size);
  if (check == Check::CrossEntropy || check == Check::NllLoss)
    return Error(ErrorKind::Index, w.op,
                 "label " + std::to_string(value) + " is out of range for " + n + " classes", loc,
                 "labels must be in [0, " + n + "); those equal to ignore_index are skipped");
  const bool from_end = check >= Check::Index && check <= Check::Put;
  if (from_end && value < 0) value -= size;  // as the program wrote it
  return Error(ErrorKind::Index, check == Check::None ? op : w.op,
               "index " + std::to_string(value) + " is out of range for a dimension of size " + n,
               loc,
               "indices must be in [" + (from_end ? "-" + n : std::string("0")) + ", " + n + ")");
}

}  // namespace ingot
