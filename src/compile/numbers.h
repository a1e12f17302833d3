// Numbers of a program that change: arguments of its plan instead of constants in it.
#pragma once
#include "compile/executor.h"

namespace ingot {

/// Floating constants whose value differed between recordings of this structure become arguments
/// of the trace: its key no longer names them, and args has their values. Remembers the constants
/// of the trace for the next recording. False: the trace is unchanged.
bool make_arguments(Trace& t);

}  // namespace ingot
