// Charts and the page around them.
#include <algorithm>
#include <cmath>

#include "cli.h"
#include "report.h"

namespace ingot::cli {

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (c == '<')
      s += "&lt;";
    else if (c == '>')
      s += "&gt;";
    else if (c == '&')
      s += "&amp;";
    else if (c == '"')
      s += "&quot;";
    else if (static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t')
      s += ' ';
    else
      s += c;
  }
  return s;
}

std::vector<Tick> ticks(double low, double high) {
  const double raw = std::max(high - low, 1e-12) / 5,
               power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= raw * (1 - 1e-9)) {
      step = m * power;
      break;
    }
  std::vector<Tick> t;
  for (double v = std::ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step)
    t.push_back({std::abs(v) < step * 1e-9 ? 0 : v, ""});
  // One unit for the axis: by the largest value, with enough decimals to distinguish neighbours.
  double most = 0;
  for (const Tick& one : t) most = std::max(most, std::abs(one.value));
  double unit = 1;
  std::string suffix;
  if (most >= 1e4) {
    static const char* const names[] = {" k", " M", " G", " T", " P"};
    int u = -1;
    for (; most / unit >= 1e3 && u < 4; ++u) unit *= 1e3;
    suffix = names[u];
  } else if (most > 0 && most < 1e-3) {
    const int exponent = static_cast<int>(std::floor(std::log10(most * (1 + 1e-9))));
    unit = std::pow(10, exponent);
    suffix = format("e%d", exponent);
  }
  const int decimals =
      std::max(0, -static_cast<int>(std::floor(std::log10(step / unit * (1 + 1e-9)))));
  for (Tick& one : t)
    one.text = one.value == 0 ? "0" : format("%.*f", decimals, one.value / unit) + suffix;
  return t;
}

// A thousand points are more than a screen shows; the first and the last are always kept.
static std::vector<std::pair<double, double>> thinned(
    const std::vector<std::pair<double, double>>& points) {
  constexpr size_t kMost = 1000;
  if (points.size() <= kMost) return points;
  std::vector<std::pair<double, double>> few;
  for (size_t i = 0; i < kMost; ++i) few.push_back(points[i * (points.size() - 1) / (kMost - 1)]);
  return few;
}

std::string chart(const std::string& title, const std::string& x_name,
                  const std::vector<Series>& series, bool percent) {
  constexpr double w = 640, h = 300, left = 90, right = 24, top = 14, bottom = 50;
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;
  for (const Series& s : series)
    for (const auto& [x, y] : s.points)
      x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
  if (x0 > x1) return {};
  if (x1 - x0 < 1e-9) x1 = x0 + 1;
  const double margin = y1 - y0 > 1e-12 ? 0.05 * (y1 - y0) : std::max(0.05 * std::abs(y1), 1e-6);
  // Values that hardly change, such as memory, are shown from 0 on.
  const bool touches_zero = y0 >= 0 && (y0 - margin < 0.35 * y1 || y1 - y0 < 0.02 * y1);
  y0 = touches_zero ? 0 : y0 - margin, y1 += margin;
  if (percent) y1 = std::min(y1, 100.0);
  auto px = [&](double x) { return left + (x - x0) / (x1 - x0) * (w - left - right); };
  auto py = [&](double y) { return h - bottom - (y - y0) / (y1 - y0) * (h - top - bottom); };
  std::string s = "<figure><figcaption>" + escaped(title);
  if (series.size() > 1)
    for (const Series& one : series)
      if (!one.name.empty())
        s += " <span class=\"key " + one.colour + "\">" + escaped(one.name) + "</span>";
  s += "</figcaption><svg viewBox=\"0 0 640 300\" role=\"img\" aria-label=\"" + escaped(title) +
       "\">";
  for (const Tick& t : ticks(y0, y1))
    s += format(
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"y\" "
        "x=\"%.1f\" "
        "y=\"%.1f\">%s%s</text>",
        left, w - right, py(t.value), py(t.value), left - 6, py(t.value) + 4, t.text.c_str(),
        percent ? " %" : "");
  for (const Tick& t : ticks(x0, x1))
    s += format("<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>", px(t.value), h - bottom + 20,
                t.text.c_str());
  s += format("<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>", (left + w - right) / 2, h - 5,
              escaped(x_name).c_str());
  for (const Series& one : series) {
    std::string points;
    for (const auto& [x, y] : thinned(one.points)) points += format("%.1f,%.1f ", px(x), py(y));
    s += "<polyline class=\"" + one.colour + "\" points=\"" + points + "\"/>";
    if (one.points.size() <= 30)
      for (const auto& [x, y] : one.points)
        s += format(
            "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%.4g</title></circle>",
            one.colour.c_str(), px(x), py(y), y);
  }
  return s + "</svg></figure>\n";
}

std::string page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><title>" +
         escaped(title) +
         "</title>\n<style>\n"
         ":root{--paper:#fff;--ink:#1c2430;--soft:#667;--line:#e3e6ea;--card:#f6f7f9;--a:#1f6feb;--"
         "b:#e36209;"
         "--good:#1a7f37;--bad:#cf222e}\n"
         "@media(prefers-color-scheme:dark){:root{--paper:#0f141a;--ink:#e4e8ee;--soft:#97a1ad;--"
         "line:#"
         "29313b;--card:#171d25;--a:#58a6ff;--b:#f0883e;--good:#3fb950;--bad:#ff7b72}}\n"
         "*{box-sizing:border-box}body{margin:0 auto;max-width:1000px;padding:20px 16px "
         "48px;font:16px/1.5 "
         "system-ui,sans-serif;background:var(--paper);color:var(--ink)}\n"
         "h1{font-size:1.6em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 "
         ".5em}.sub{color:var(--soft);margin:0 0 1em}\n"
         ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(45%,200px),1fr));"
         "gap:10px}."
         "facts "
         "div{background:var(--card);border-radius:8px;padding:10px 12px}\n"
         ".facts b{display:block;font-size:1.25em}.facts span{color:var(--soft);font-size:.85em}\n"
         ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));"
         "gap:16px}"
         "figure{margin:0}figcaption{font-weight:600;font-size:.95em}\n"
         "svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:15px "
         "system-ui,sans-serif}.y{text-anchor:end}.x{text-anchor:middle}.grid{stroke:var(--line)}\n"
         "polyline{fill:none;stroke-width:2;stroke-linejoin:round}polyline.a{stroke:var(--a)}"
         "polyline.b{"
         "stroke:var(--b)}circle.a{fill:var(--a)}circle.b{fill:var(--b)}\n"
         ".key{font-weight:400;font-size:.9em;margin-left:.6em}.key::before{content:'';display:"
         "inline-block;"
         "width:12px;height:3px;margin-right:4px;vertical-align:middle}.key.a::before{background:"
         "var(--a)}."
         "key.b::before{background:var(--b)}\n"
         ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85em}td,th{padding:4px "
         "7px;text-align:right;font-weight:400}th{color:var(--soft);white-space:nowrap}td.hit{font-"
         "weight:"
         "600}\n"
         ".samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(92px,1fr));gap:10px}."
         "samples "
         "div{background:var(--card);border-radius:8px;padding:8px;text-align:center;font-size:."
         "8em}\n"
         ".samples "
         "img{width:72px;height:72px;object-fit:contain;image-rendering:pixelated;border-radius:"
         "4px}.good{"
         "color:var(--good)}.bad{color:var(--bad)}\n"
         "pre{background:var(--card);border-radius:8px;padding:12px;overflow-x:auto;white-space:"
         "pre-wrap;"
         "font-size:.85em}\n@media(max-width:600px){svg "
         "text{font-size:20px}}\n</style></head>\n<body>\n" +
         body + "</body></html>\n";
}

}  // namespace ingot::cli
