// The CPU's kernels for library calls. codegen/offer.h says how the table is read.
#include "backend/cpu/library.h"

namespace ingot::cpu {
namespace {

constexpr OpSet kConvs{Op::Conv, Op::ConvGradInput, Op::ConvGradWeight};
constexpr OpSet kForwardAndWeight{Op::Conv, Op::ConvGradWeight};
constexpr OpSet kRecurrent(is_recurrent);
constexpr Epilogues kBias{Epilogue::Bias};
constexpr Epilogues kBiasRelu{Epilogue::Bias, Epilogue::Relu};

const char* winograd_unless_asked(const LibrarySpec& spec) {
  return wants_winograd(spec.op) ? winograd_refuses(spec) : "INGOT_WINOGRAD does not ask for it";
}

// clang-format off
const LibraryKernel kTable[] = {
    {{"few rows",        {Op::Matmul}, kBiasRelu, few_rows_refuses},              prepare_few_rows},
    {{"packed",          {Op::Matmul}, kBiasRelu, matmul_refuses},                prepare_matmul},
    {{"integers",        {Op::Matmul}, kBiasRelu, int_matmul_refuses},            prepare_int_matmul},
    {{"depthwise",       kConvs, kBiasRelu, depthwise_refuses},                   prepare_depthwise},
    {{"few channels",    kForwardAndWeight, kBias, conv_few_channels_refuses},    prepare_conv_few_channels},
    {{"Winograd",        kConvs, kBias, winograd_unless_asked},                   prepare_winograd},
    {{"oneDNN",          kConvs, kBias, dnnl_conv_refuses},                       prepare_dnnl_conv},
    {{"im2col",          kConvs, kBiasRelu},                                      prepare_conv},
    {{"fold",            {Op::Fold}, {}},                                         prepare_fold},
    {{"newest position", {Op::Attention}, {}, newest_refuses},                    prepare_newest},
    {{"blocks of rows",  {Op::Attention, Op::AttentionGrad}, {}, attention_refuses}, prepare_attention},
    {{"packed steps",    kRecurrent, {}, recurrent_refuses, false, recurrent_in_place}, prepare_recurrent},
    {{"scatter",         {Op::ScatterAdd, Op::Scatter}, {}},                      prepare_scatter},
    {{"scan",            {Op::Scan}, {}},                                         prepare_scan},
    {{"sort",            {Op::Sort}, {}},                                         prepare_sort},
    {{"LAPACK",          {Op::Linalg}, {}},                                       prepare_linalg},
    {{"copy",            {Op::ToDevice}, {}},                                     prepare_copy},
};
// clang-format on

}  // namespace

std::span<const LibraryKernel> library_kernels() { return kTable; }

}  // namespace ingot::cpu
