// report.html: the results of a training run in one self-contained file, without scripts.
#pragma once
#include <string>

#include "train.h"

namespace ingot::cli {

/// Writes folder/report.html and, for images, folder/samples/*.png.
void write_report(Task& task, const History& history, const std::string& folder);

/// A position on an axis and its label.
struct Tick {
  double value;
  std::string text;
};
/// About five round numbers that cover the range, all in the same format.
std::vector<Tick> ticks(double low, double high);

struct Series {
  std::string name, colour;  ///< a class of the page's style: "a", "b"
  std::vector<std::pair<double, double>> points;
};
/// A chart as SVG text with axes, ticks and a legend.
std::string chart(const std::string& title, const std::string& x_name,
                  const std::vector<Series>& series, bool percent = false);
std::string page(const std::string& title, const std::string& body);
std::string escaped(const std::string& text);

}  // namespace ingot::cli
