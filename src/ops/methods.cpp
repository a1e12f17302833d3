// Methods of Tensor that are a function of the same name, and those that write its result into the
// tensor: the rows of methods.def.
#include "ops/common.h"

#define INGOT_DEF(...)  // defaults are tensor.h's
#define INGOT_METHOD(result, name, parameters, arguments)          \
  result Tensor::name(INGOT_LIST parameters SourceLoc loc) const { \
    return ingot::name(*this, INGOT_LIST arguments loc);           \
  }
#define INGOT_IN_PLACE(name, parameters, arguments)                                    \
  Tensor& Tensor::name##_(INGOT_LIST parameters SourceLoc loc) {                       \
    write_result(*this, ingot::name(*this, INGOT_LIST arguments loc), #name "_", loc); \
    return *this;                                                                      \
  }

namespace ingot {
#include "ingot/methods.def"
}  // namespace ingot
