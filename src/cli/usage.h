// How a mistyped command line is reported: one sentence and the fix, as for all errors.
#pragma once
#include <CLI/CLI.hpp>

#include "cli.h"

namespace ingot::cli {

/// Options' values: an integer of at least `least`; a number above 0; a number of at least 0.
CLI::Validator integer(int64_t least = 1);
CLI::Validator positive();
CLI::Validator not_negative();

/// The command-line error `e` as a Failure, for report().
Failure mistake(CLI::App& app, const CLI::ParseError& e, int argc, char** argv);

}  // namespace ingot::cli
