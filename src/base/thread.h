// What every recorded op asks of its thread is found without a call of the loader. That needs a
// place in the storage that the loader has kept free since the program began: for few and small
// variables alone.
#pragma once

#if defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#define INGOT_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))
#else
#define INGOT_THREAD_LOCAL thread_local
#endif
