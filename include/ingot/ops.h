// All functions on tensors, a header for each family. Most are methods of Tensor too. Names and
// defaults are PyTorch's.
//
// What is checked everywhere, when the call is made: shapes that do not fit throw Error(Shape),
// types Error(DType), operands on different devices Error(Device) (0-d tensors and numbers pass), a
// dim outside the tensor Error(Dim), an undefined tensor Error(State). `dim` counts from the end
// when negative. Shapes broadcast by NumPy's rules; types promote by PyTorch's.
#pragma once
#include "ingot/activation.h"
#include "ingot/attention.h"
#include "ingot/conv.h"
#include "ingot/creation.h"
#include "ingot/dropout.h"
#include "ingot/elementwise.h"
#include "ingot/indexing.h"
#include "ingot/inplace.h"
#include "ingot/linalg.h"
#include "ingot/loss.h"
#include "ingot/movement.h"
#include "ingot/norm.h"
#include "ingot/pool.h"
#include "ingot/random.h"
#include "ingot/reductions.h"
#include "ingot/resample.h"
#include "ingot/rnn.h"
#include "ingot/sorting.h"
