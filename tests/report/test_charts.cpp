// Where values lie in a chart, and what its axes say.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "page_checker.h"
#include "report/axis.h"
#include "report/heat_map.h"
#include "report/html.h"
#include "report/line_chart.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks()) result.push_back(tick.label);
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("axes have round labels that hold their values") {
  CHECK(labels(Axis::linear(1.3, 5.9, false)) == Texts{"1", "2", "3", "4", "5", "6"});
  CHECK(labels(Axis::linear(1.3, 4.9, true)) == Texts{"0", "1", "2", "3", "4", "5"});
  CHECK(labels(Axis::linear(0, 2e-5, true)) == Texts{"0", "5e-06", "1e-05", "1.5e-05", "2e-05"});
  CHECK(labels(Axis::linear(0, 9000, true)) == Texts{"0", "2k", "4k", "6k", "8k", "10k"});
  CHECK(labels(Axis::logarithmic(0.5, 60)) == Texts{"0.5", "1", "2", "5", "10", "20", "50"});
  CHECK(labels(Axis::steps(1, 60)) == Texts{"10", "20", "30", "40", "50", "60"});
  CHECK(labels(Axis::steps(7, 7)) == Texts{"7"});
  for (const auto& [least, most] : std::vector<std::pair<double, double>>{
           {0, 0}, {5, 5}, {-3, -3}, {1e-300, 1e300}, {0, 1e-12}, {-2, 7}, {1, 1.0000001}}) {
    const Axis axis = Axis::linear(least, most, false);
    INFO(least << " " << most);
    CHECK(axis.at(least) >= -1e-9);
    CHECK(axis.at(most) <= 1 + 1e-9);
    CHECK(axis.ticks().size() >= 2);
    CHECK(axis.ticks().size() < 20);
  }
  CHECK(std::abs(Axis::logarithmic(1, 100).at(10) - 0.5) < 1e-12);
}

TEST_CASE("a line goes through its values") {
  Series series(StepAxis(0, 4, 500));
  for (const auto& [step, value] : {std::pair{0, 1.0}, {1, 3.0}, {3, 2.0}, {4, 5.0}}) {
    series.add(step, value);
  }
  LineChart chart{
      .id = "x", .title = "T", .unit = "units", .about = "About.", .lines = {{"a line", &series}}};
  const std::string html = chart_html(chart);
  // Steps 0 to 4 over 1000, values 1 to 5 over 300 upside down; a gap at step 2.
  CHECK(has(html, "class=\"line c0\" d=\"M0 300L250 150M750 225L1000 0\""));
  for (const char* part :
       {">units<", ">step<", "style=\"bottom:50.00%\">3<", ">4</span>", "left:50.00%\">2<",
        "<td>5</td>", "1 at the beginning, 5 at the end, between 1 and 5"}) {
    INFO(part);
    CHECK(has(html, part));
  }
  CHECK_FALSE(has(html, "class=\"band"));
  chart.lines[0].dots = true;  // evaluations: the line goes on over steps without one
  CHECK(has(chart_html(chart), "d=\"M0 300L250 150L750 225L1000 0\""));
}

TEST_CASE("a band reaches from the least to the greatest value of its steps") {
  Series series(StepAxis(1, 4, 2));
  for (const auto& [step, value] : {std::pair{1, 1.0}, {2, 3.0}, {3, 2.0}, {4, 5.0}}) {
    series.add(step, value);
  }
  const std::string html = chart_html(
      {.id = "x", .title = "T", .unit = "u", .about = "", .lines = {{"a line", &series}}});
  CHECK(has(html, "class=\"band c0\" d=\"M166.7 150L833.3 0L833.3 225L166.7 300z\""));
  CHECK(has(html, "class=\"line c0\" d=\"M166.7 225L833.3 112.5\""));
  CHECK(has(html, "range (least to greatest)"));
  CHECK(has(html, "<th scope=\"row\">1 to 2</th><td>2</td><td>1</td><td>3</td>"));
}

TEST_CASE("a heat map has a colour for a value, joined along a row") {
  std::vector<Series> layers(2, Series(StepAxis(1, 3, 120)));
  for (const auto& [step, value] : {std::pair{1, 1.1}, {2, 1.2}, {3, 2.0}}) {
    layers[0].add(step, value);
    layers[1].add(step, 8);
  }
  const std::string html = heat_map_html("h", "Load", kExpertLoadScale, layers);
  CHECK(has(html, "class=\"h0\" d=\"M0 0h2v10h-2z\""));
  CHECK(has(html, "class=\"h3\" d=\"M2 0h1v10h-1z\""));
  CHECK(has(html, "class=\"h7\" d=\"M0 10h3v10h-3z\""));
  CHECK(heat_map_data(layers) == R"({"step":[1,2,3,4],"rows":[[1.1,1.2,2],[8,8,8]]})");
  CHECK(heat_map_html("h", "Load", kExpertLoadScale, {}) == "");
}

TEST_CASE("a heat map of residency has levels in percent") {
  std::vector<Series> layers(1, Series(StepAxis(1, 3, 120)));
  for (const auto& [step, value] : {std::pair{1, 0.0}, {2, 50.0}, {3, 100.0}}) {
    layers[0].add(step, value);
  }
  const std::string html = heat_map_html("r", "Weights on devices", kResidencyScale, layers);
  CHECK(has(html, "class=\"h0\" d=\"M0 0h1v10h-1z\""));
  CHECK(has(html, "class=\"h4\" d=\"M1 0h1v10h-1z\""));
  CHECK(has(html, "class=\"h7\" d=\"M2 0h1v10h-1z\""));
  CHECK(has(html, "87.5\u2013100 %"));
  CHECK(has(html,
            "1 layer; 50 percent of the weights were on devices on average, 100 percent at "
            "most."));
  CHECK(has(html, "<caption>percent of the weights that were on devices</caption>"));
  CHECK(has(html, "<td>0</td><td>100</td><td>50</td><td>100</td>"));
}

TEST_CASE("numbers for people") {
  CHECK(count_text(-1234567) == "-1,234,567");
  CHECK(count_text(999) == "999");
  CHECK(rounded_count(99'999) == "99,999");
  CHECK(rounded_count(1'604'000'000) == "1.6 billion");
  CHECK(number_text(std::nan("")) == "\u2013");
  CHECK(number_text(8786.6) == "8,787");
  CHECK(bytes_text(1023) == "1.023 kB");
  CHECK(bytes_text(1536.0 * 1024 * 1024) == "1.611 GB");
  CHECK(duration_text(0.0004321) == "0.432 ms");
  CHECK(duration_text(90'061) == "25 h 1 min");
  CHECK(duration_text(-1) == "\u2013");
  CHECK(plural_text(1, "step") == "1 step");
  CHECK(plural_text(0, "step") == "0 steps");
  CHECK(date_text("2026-01-02T03:04:05.678Z") == "2026-01-02 03:04:05 UTC");
  CHECK(date_text("<b>") == "<b>");
}
