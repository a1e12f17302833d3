// See offer.h.
#include "codegen/offer.h"

namespace ingot {

std::string refusal_text(const OfferRow& row, const LibrarySpec& spec, const char* why) {
  if (why) return why;
  static const char* const kNames[kEpilogues] = {"bias",
                                                 "residual",
                                                 "ReLU",
                                                 "GELU",
                                                 "GELU beside its operand",
                                                 "GELU's gradient",
                                                 "ReLU's gradient",
                                                 "a bias's gradient"};
  const Epilogues missing = spec.epilogues.without(row.epilogues);
  std::string names;
  for (int e = 0; e < kEpilogues; ++e)
    if (missing.has(static_cast<Epilogue>(e)))
      names += (names.empty() ? "" : ", ") + std::string(kNames[e]);
  if (!names.empty()) return "it has no epilogue for " + names;
  return "it cannot be made for " + std::string(info(spec.op).name) + to_string(spec.epilogues);
}

}  // namespace ingot
