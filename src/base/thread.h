// Thread-local variables that every recorded op reads are found without a call into the
// loader. They take space in the storage that the loader reserves at program start: for
// few and small variables only.
#pragma once

#if defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#define INGOT_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))
#else
#define INGOT_THREAD_LOCAL thread_local
#endif
