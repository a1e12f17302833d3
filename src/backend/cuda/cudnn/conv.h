// Convolutions through cuDNN: forward (with bias, residual and ReLU), input's and weight's
// gradient, as graphs of its backend API.
#pragma once
#include <memory>
#include <string>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

class Gpu;

/// Why cuDNN does not take these types and strides, or nullptr. Asks no device.
const char* conv_refuses(const LibrarySpec& spec);
/// nullptr when there is no cuDNN or it finds no engine: our own kernel runs then.
std::unique_ptr<Executable> prepare_conv(Gpu& gpu, const LibrarySpec& spec);
/// Plans for the device that a description (JSON text) names, without one: empty, or what went
/// wrong.
std::string plan_conv_for(const std::string& device_json, const LibrarySpec& spec);

}  // namespace ingot::cuda
