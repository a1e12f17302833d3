// What every value of a graph goes through when it is made.
#pragma once
#include "compile/ir.h"

namespace ingot {

/// Constants, indices and random values among v's operands are stored where v reads memory.
void store_operands(Graph& g, Val& v);
/// What reduces or writes nothing needs no kernel: a reduction over no elements is its neutral
/// element, a product over no columns and adding nothing to zeros is 0, and assigning an empty
/// slice or scattering nothing changes nothing. v becomes a view (carried out if it is an output).
void replace_empty(Graph& g, Val& v);
/// A constant, index or random value as a buffer: one more value, a movement that is carried out.
int store_source(Graph& g, int source);

}  // namespace ingot
