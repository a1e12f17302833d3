// sweep.html: the result of each trial, and the effect of each setting.
#include <algorithm>
#include <cmath>

#include "cli.h"
#include "report.h"
#include "sweep.h"

namespace ingot::cli {
using nlohmann::json;

namespace {

// One point per trial: a setting's value against the result.
std::string dots(const Choice& c, const std::vector<const Trial*>& order, bool by_accuracy) {
  constexpr double w = 640, h = 300, left = 90, right = 14, top = 14, bottom = 46;
  double y0 = 1e300, y1 = -1e300;
  auto y_of = [&](const Trial& t) { return by_accuracy ? 100 * t.accuracy : t.loss; };
  for (const Trial* t : order)
    if (t->state != "failed") y0 = std::min(y0, y_of(*t)), y1 = std::max(y1, y_of(*t));
  if (y0 > y1) return {};
  const double margin = std::max(0.06 * (y1 - y0), 1e-3 * std::abs(y1) + 1e-9);
  y0 -= margin, y1 += margin;
  auto px = [&](const json& v) {
    double u = 0;
    if (c.is_list()) {
      const auto at = std::find(c.list.begin(), c.list.end(), v) - c.list.begin();
      u = (static_cast<double>(at) + 0.5) / static_cast<double>(c.list.size());
    } else {
      const double x = v.get<double>();
      u = c.log ? (std::log(x) - std::log(c.low)) / (std::log(c.high) - std::log(c.low))
                : (x - c.low) / (c.high - c.low);
    }
    return left + 10 + u * (w - left - right - 20);
  };
  auto py = [&](double y) { return h - bottom - (y - y0) / (y1 - y0) * (h - top - bottom); };
  const std::string title = (by_accuracy ? "Test accuracy by " : "Test loss by ") + c.key;
  std::string s = "<figure><figcaption>" + escaped(title) +
                  "</figcaption><svg viewBox=\"0 0 640 300\" role=\"img\" aria-label=\"" +
                  escaped(title) + "\">";
  for (const Tick& t : ticks(y0, y1))
    s += format(
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"y\" "
        "x=\"%.1f\" "
        "y=\"%.1f\">%s%s</text>",
        left, w - right, py(t.value), py(t.value), left - 6, py(t.value) + 4, t.text.c_str(),
        by_accuracy ? " %" : "");
  auto x_label = [&](const json& v) {
    s += format("<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>", px(v), h - bottom + 16,
                escaped(value_text(v)).c_str());
  };
  if (c.is_list()) {
    for (const json& v : c.list) x_label(v);
  } else {
    for (int i = 0; i <= 3; ++i) {
      const double u = i / 3.0,
                   v = c.log ? std::exp(std::log(c.low) + u * (std::log(c.high) - std::log(c.low)))
                             : c.low + u * (c.high - c.low);
      x_label(json(std::stod(format("%.2g", v))));
    }
  }
  s += format("<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s%s</text>", (left + w - right) / 2, h - 4,
              escaped(c.key).c_str(), c.log ? " (logarithmic)" : "");
  for (auto t = order.rbegin(); t != order.rend(); ++t) {
    if ((*t)->state == "failed") continue;
    const bool best = *t == order.front(), stopped = (*t)->state == "stopped";
    s += format(
        "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"%s><title>trial %lld: %s = %s, "
        "%.4g%s</title></circle>",
        best ? "b" : "a", px((*t)->values.at(c.key)), py(y_of(**t)), best ? 7 : 5,
        stopped ? " opacity=\"0.35\"" : "", static_cast<long long>((*t)->number),
        escaped(c.key).c_str(), escaped(value_text((*t)->values.at(c.key))).c_str(), y_of(**t),
        stopped ? ", stopped early" : "");
  }
  return s + "</svg></figure>\n";
}

std::string curves(const std::vector<const Trial*>& order) {
  std::vector<Series> series;
  for (auto t = order.rbegin(); t != order.rend(); ++t) {
    Series one{"", *t == order.front() ? "b" : "a", {}};
    for (size_t k = 0; k < (*t)->tenths.size(); ++k)
      if ((*t)->tenths[k] < 1e29)
        one.points.emplace_back(10.0 * static_cast<double>(k + 1), (*t)->tenths[k]);
    if (!one.points.empty()) series.push_back(one);
  }
  if (series.size() < 2) return {};
  series.front().name = "all", series.back().name = "best";
  return chart("Training loss of each trial", "share of the steps (%)", series);
}

}  // namespace

std::string sweep_page(const std::string& name, const std::vector<Choice>& choices,
                       const std::vector<Trial>& trials, bool by_accuracy,
                       const std::string& best_command) {
  const auto order = ranked(trials, by_accuracy);
  std::string body = "<h1>" + escaped(name) + ": a sweep</h1><p class=\"sub\">" +
                     std::to_string(order.size()) +
                     " trials, trained with Ingot. Pale points were stopped early.</p>\n";
  if (!best_command.empty())
    body += "<p>The best one, to train it again:</p><pre>" + escaped(best_command) + "</pre>\n";
  body += "<div class=\"charts\">\n";
  for (const Choice& c : choices) body += dots(c, order, by_accuracy);
  body += curves(order) +
          "</div>\n<h2>Ranked</h2><div class=\"scroll\"><table><tr><th>rank</th><th>trial</th>";
  for (const Choice& c : choices) body += "<th>" + escaped(c.key) + "</th>";
  body += std::string("<th>test loss</th><th>") +
          (by_accuracy ? "accuracy" : "next-token accuracy") +
          "</th><th>time</th><th>state</th></tr>\n";
  for (size_t i = 0; i < order.size(); ++i) {
    const Trial& t = *order[i];
    // A failed trial may have no report.
    const std::string page_of =
        trial_folder(t) + (t.state == "failed" ? "/metrics.jsonl" : "/report.html");
    body += format("<tr><td>%zu</td><td><a href=\"%s\">%lld</a></td>", i + 1, page_of.c_str(),
                   static_cast<long long>(t.number));
    for (const Choice& c : choices)
      body += "<td>" + escaped(value_text(t.values.at(c.key))) + "</td>";
    if (t.state == "failed")
      body += "<td></td><td></td><td></td><td>" + escaped(t.why) + "</td></tr>\n";
    else
      body += format(
          "<td>%.4f</td><td>%.2f %%</td><td>%s</td><td>%s</td></tr>\n", t.loss, 100 * t.accuracy,
          time_text(t.seconds).c_str(),
          t.state == "stopped" ? format("stopped at %.0f %%", 100 * t.part).c_str() : "done");
  }
  return page(name + ": a sweep - Ingot", body + "</table></div>\n");
}

}  // namespace ingot::cli
