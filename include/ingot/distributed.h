// Several devices in one program.
#pragma once
#include <functional>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

/// The mean loss of a batch that is split over devices along dim 0:
///
///   Tensor loss = data_parallel({"cuda:0", "cuda:1"}, model.parameters(), {x, target}, [&](auto&
///   part) {
///     return cross_entropy(model.forward(part[0]), part[1]);
///   });
///
/// fn is called once per device with its part of the inputs. During the call the parameters read as
/// copies on that device, which is also the default device; so the model's code stays as it is. fn
/// returns a 0-d mean over its part; the parts are weighted by their sizes and added on the first
/// device. Gradients flow back to the parameters themselves. Parts are as equal as they can be; a
/// device for which nothing is left is not used. Throws Error(Value) without devices or
/// inputs, Error(Shape) when the inputs' dims 0 differ, are 0 or fn returns more than one element.
Tensor data_parallel(const std::vector<Device>& devices, const std::vector<Tensor>& params,
                     const std::vector<Tensor>& inputs,
                     const std::function<Tensor(const std::vector<Tensor>& part)>& fn,
                     SourceLoc loc = SourceLoc::current());

}  // namespace ingot
