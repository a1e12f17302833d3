// The rules of all sets, for tests and for people.
#include "compile/rewrite.h"

namespace ingot {

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names;
  for (const auto rows : {transposed_product_rules(), epilogue_rules(), fold_conv_rules(),
                          space_to_depth_rules(), join_attention_rules()})
    for (const Rule& rule : rows) names.emplace_back(rule.name);
  names.emplace_back(kBiasGradient);
  return names;
}

}  // namespace ingot
