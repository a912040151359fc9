#include "options/suggest.h"

#include <algorithm>

namespace hearth {
namespace {

// Longer names are no misspelling of anything, and the table below is quadratic.
constexpr size_t kMaxLength = 64;

// Optimal string alignment distance.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kMaxLength) return "";
  std::string best;
  size_t least = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = edits(name, candidate);
    if (best.empty() || distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return least * 5 <= std::max(name.size(), best.size()) * 3 ? best : "";
}

}  // namespace hearth
