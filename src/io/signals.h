// SIGTERM and SIGINT, taken note of while a Checkpoint lives.
#pragma once

namespace ingot::io {

/// Begins to take note, where the program has not said otherwise; counted.
void watch_signals();
void unwatch_signals();
/// The signal that came, or 0.
int pending_signal();

}  // namespace ingot::io
