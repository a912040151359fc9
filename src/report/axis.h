// An axis of a chart: its range, the position of a value, and labelled ticks.
#pragma once

#include <string>
#include <vector>

namespace hearth {

struct Tick {
  double at = 0;  // 0 to 1
  std::string label;
};

class Axis {
 public:
  /// Covers the values, extended to round numbers; `zero`: starts at 0.
  static Axis linear(double least, double most, bool zero);
  /// For values above 0.
  static Axis logarithmic(double least, double most);
  /// Exactly `first` to `last`; labels are whole steps.
  static Axis steps(double first, double last);

  double at(double value) const;  // 0 to 1; outside that for values outside the range
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }
  bool is_logarithmic() const { return logarithmic_; }

 private:
  void label(double value, const std::string& text);

  double low_ = 0, high_ = 1;
  bool logarithmic_ = false;
  std::vector<Tick> ticks_;
};

}  // namespace hearth
