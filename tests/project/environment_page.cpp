// Prints docs/environment.md from the table of environment variables. tests/project/environment.py
// compares.
#include <cstdio>

#include <ingot/environment.h>

using ingot::EnvironmentVariable;

static std::string standard_text(const EnvironmentVariable& v) {
  if (v.standard.empty()) return "not set";
  return v.kind == "path" && v.standard.find(' ') != std::string::npos ? v.standard
                                                                       : "`" + v.standard + "`";
}

static void print_rows(bool own) {
  std::puts(
      "| variable | kind | default | what it does | who reads it |\n| --- | --- | --- | --- | --- "
      "|");
  for (const EnvironmentVariable& v : ingot::environment_variables())
    if (v.name.starts_with("INGOT_") == own)
      std::printf("| `%s` | %s | %s | %s | %s |\n", v.name.c_str(), v.kind.c_str(),
                  standard_text(v).c_str(), v.purpose.c_str(), v.reader.c_str());
}

int main() {
  std::puts(R"(# Environment variables

Written from the table in `src/base/env.h` by `tests/project/environment.py --write`; do not edit.

- A flag is off when it is `0` and on when it is anything else; empty is the default.
- A value that is not a number, or out of range, is reported once on standard error, and the default
  is used.
- Bytes are a number, or one with a unit: `500MiB`, `8GiB`, `1TiB`.
- A variable whose name begins with `INGOT_` and is not listed here is reported once, with the
  nearest name that is. The tests' own (`INGOT_TEST_`, `INGOT_BENCH`, `INGOT_EMULATOR_`,
  `INGOT_RANDOM_`) are not reported.
- Programs read all of this with `environment_variables()` and `environment(name)`
  (`ingot/environment.h`).
)");
  print_rows(true);
  std::puts("\nVariables of other programs:\n");
  print_rows(false);
}
