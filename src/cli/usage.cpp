#include "usage.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace ingot::cli {

CLI::Validator integer(int64_t least) {
  auto check = [least](std::string& text) -> std::string {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (!text.empty() && !*end && errno == 0 && value >= least) return {};
    return "must be an integer of at least " + std::to_string(least) + ", not \"" + text + "\"";
  };
  return CLI::Validator(check, "");
}

static CLI::Validator number(bool zero) {
  auto check = [zero](std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && !*end && std::isfinite(value) && (value > 0 || (zero && value == 0)))
      return {};
    return std::string("must be a number ") + (zero ? "of at least 0" : "above 0") + ", not \"" +
           text + "\"";
  };
  return CLI::Validator(check, "");
}
CLI::Validator positive() { return number(false); }
CLI::Validator not_negative() { return number(true); }

static std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& w : words) list += (list.empty() ? "" : ", ") + w;
  return list;
}

static Failure no_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  const std::string near = nearest(word, names);
  return {kUsage, "there is no command \"" + word + "\"",
          (near.empty() ? "" : "Did you mean " + near + "? ") + "There are " + joined(names) + "."};
}

static Failure not_expected(const CLI::App& command, const std::string& called,
                            const std::vector<std::string>& rest, const std::string& help) {
  std::string word = rest.empty() ? "" : rest.front();
  for (const std::string& r : rest)
    if (r.starts_with("-")) {
      word = r.substr(0, r.find('='));
      break;
    }
  if (!word.starts_with("-"))
    return {kUsage, called + " does not know what \"" + word + "\" is for",
            "A text of several words goes between quotes; " + help};
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  const std::string near = nearest(word, names);
  return {kUsage, called + " has no option " + word,
          (near.empty() ? "" : "Did you mean " + near + "? ") + help};
}

Failure mistake(CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  const CLI::App& command = given.empty() ? app : *given[0];
  const std::string called = given.empty() ? "the program" : command.get_name();
  const std::string help =
      "`ingot " + (given.empty() ? "" : called + " ") + "--help` lists its options.";
  if (given.empty() && argc > 1)
    return argv[1][0] == '-' ? not_expected(app, called, {argv[1]}, help)
                             : no_command(app, argv[1]);
  const std::string what = e.what();
  const size_t colon = what.find(": ");
  const std::string option = what.substr(0, colon);
  if (dynamic_cast<const CLI::ExtrasError*>(&e))
    return not_expected(command, called, app.remaining(true), help);
  if (dynamic_cast<const CLI::RequiredError*>(&e)) {
    const std::string name = what.substr(0, what.find(" is required"));
    if (const CLI::Option* o = command.get_option_no_throw(name))
      return {kUsage,
              called + (name == "input" ? " needs an " : " needs a ") + name + ": " +
                  o->get_description(),
              help};
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) && colon != std::string::npos)
    return {kUsage, option + " needs a value", help};
  if (dynamic_cast<const CLI::ExcludesError*>(&e))
    return {kUsage,
            what.substr(0, what.find(' ')) + " and " + what.substr(what.rfind(' ') + 1) +
                " do not go together",
            "Leave one of them out."};
  if (dynamic_cast<const CLI::ValidationError*>(&e) && colon != std::string::npos)
    return {kUsage, option + " " + what.substr(colon + 2), help};
  return {kUsage, what, help};
}

}  // namespace ingot::cli
