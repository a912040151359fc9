// The page of cost tables: how the rates of a machine's places grow with the size of a task, and from
// how many tokens on one place beats another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

/// Times of one kind of task.
struct CostCurve {
  std::string name;             // "host, 8 cores"
  std::vector<double> units;    // rising, above 0
  std::vector<double> seconds;  // at each; above 0
};

/// Curves that are compared: of one kind, phase and type.
struct CostChart {
  std::string id;     // unique in the page: letters, digits and hyphens
  std::string title;  // "experts forward, f32"
  std::string unit;   // of the units: "tokens of an expert"
  std::vector<CostCurve> curves;
};

/// A sentence or a value in the head of the page.
struct CostFact {
  std::string name, value;
};

/// The units from which on the second curve is the faster one of two, up to the end of both, by
/// interpolation; 0 if it always is; infinity if it never is.
double break_even(const CostCurve& a, const CostCurve& b);

/// One self-contained HTML file.
std::string cost_page(const std::string& title, const std::vector<CostFact>& facts,
                      const std::vector<CostChart>& charts);

}  // namespace hearth
