// SIGTERM and SIGINT, recorded while a Checkpoint lives.
#pragma once

namespace ingot::io {

/// Starts recording, where the program has no handler itself; counted.
void watch_signals();
void unwatch_signals();
/// The signal that came, or 0.
int pending_signal();

}  // namespace ingot::io
