// How a mistyped command line is told: one sentence and the way out, as everything else.
#pragma once
#include <CLI/CLI.hpp>

#include "cli.h"

namespace ingot::cli {

/// Options' values: a whole number of at least `least`; a number above 0; a number of at least 0.
CLI::Validator whole(int64_t least = 1);
CLI::Validator positive();
CLI::Validator not_negative();

/// What `e` says about the command line, for report().
Failure mistake(CLI::App& app, const CLI::ParseError& e, int argc, char** argv);

}  // namespace ingot::cli
