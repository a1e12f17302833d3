// The results of a run: outputs that are leaves now, or nodes that name the error when they are
// used.
#pragma once
#include <span>
#include <vector>

#include "compile/executor.h"
#include "ingot/error.h"
#include "runtime/storage.h"

namespace ingot {

/// n reads the whole buffer of `from`, which is computed: it becomes a leaf over the same one.
void share_storage(Node* n, Node* from);

/// The outputs become leaves, and what only they needed is released. `done` has room for all of
/// them: leaves have been overwritten, and this must not fail.
void publish(const Trace& t, const Plan& p, std::span<const Ref<Storage>> out, Recorder& rec,
             std::vector<NodeRef>& done);

/// A run that met a bad index. Assigned values keep what they were, values that had no part in the
/// failure are there, and the others name the error when they are used.
[[noreturn]] void publish_failure(const Trace& t, const Plan& p, std::span<const Ref<Storage>> out,
                                  const Error& error);

/// A run that stopped after it had begun to overwrite leaves: what reads them cannot be computed
/// again, and names the error when it is used.
void publish_loss(const Trace& t, const Plan& p, const char* why) noexcept;

}  // namespace ingot
