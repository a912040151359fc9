#include "data/samples/row_words.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {
namespace {

enum Kind : uint32_t { ignored = 0, as_id = 1, other = 2 };

Kind kind_of(int32_t id, int32_t label) {
  return label == kIgnoredLabel ? ignored : label == id ? as_id : other;
}

}  // namespace

int64_t count_trained(std::span<const int32_t> labels) {
  if (labels.empty()) return 0;
  const auto targets = labels.subspan(1);
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), kIgnoredLabel);
}

uint32_t append_row_words(std::span<const int32_t> ids, std::span<const int32_t> labels,
                          std::vector<uint32_t>& words) {
  HEARTH_CHECK(!ids.empty() && ids.size() == labels.size() && ids.size() < size_t{1} << 30,
               "a row of ids and as many labels");
  const size_t before = words.size();
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    const Kind kind = kind_of(ids[begin], labels[begin]);
    while (end < ids.size() && kind_of(ids[end], labels[end]) == kind) ++end;
    words.push_back(static_cast<uint32_t>(end - begin) << 2 | kind);
    if (kind == other) words.insert(words.end(), &labels[begin], &labels[begin] + (end - begin));
  }
  const size_t runs = words.size() - before;
  words.insert(words.end(), ids.begin(), ids.end());
  return static_cast<uint32_t>(runs);
}

void append_labels(std::span<const uint32_t> runs, std::span<const int32_t> ids,
                   std::vector<int32_t>& labels) {
  size_t done = 0;
  for (size_t i = 0; i < runs.size() && done < ids.size();) {
    const uint32_t kind = runs[i] & 3;
    const size_t whole = runs[i++] >> 2;
    const size_t n = std::min(whole, ids.size() - done);
    if (kind == as_id) {
      labels.insert(labels.end(), ids.begin() + done, ids.begin() + done + n);
    } else if (kind == ignored) {
      labels.insert(labels.end(), n, kIgnoredLabel);
    } else {
      labels.insert(labels.end(), runs.begin() + i, runs.begin() + i + n);
      i += whole;
    }
    done += n;
  }
  HEARTH_CHECK(done == ids.size(), "runs that cover their row");
}

std::optional<TrainedLabels> check_row_words(std::span<const uint32_t> words, uint32_t runs,
                                             uint32_t length, uint32_t limit, uint32_t vocabulary) {
  if (length == 0 || length >= uint32_t{1} << 30 || runs > words.size() ||
      words.size() - runs != length) {
    return std::nullopt;
  }
  TrainedLabels trained;
  uint32_t done = 0, largest = 0;
  for (size_t i = 0; i < runs;) {
    const uint32_t kind = words[i] & 3, n = words[i] >> 2;
    ++i;
    if (kind > other || n == 0 || n > length - done) return std::nullopt;
    if (kind == other) {
      if (n > runs - i) return std::nullopt;
      for (uint32_t k = 0; k < n; ++k) largest = std::max(largest, words[i + k]);
      i += n;
    }
    const uint32_t begin = std::max(done, uint32_t{1});  // the first label of a row never counts
    done += n;
    if (kind == ignored) continue;
    trained.whole += done - std::min(done, begin);
    trained.cut += std::min(done, limit) - std::min({begin, done, limit});
  }
  for (size_t i = runs; i < words.size(); ++i) largest = std::max(largest, words[i]);
  if (done != length || largest >= vocabulary) return std::nullopt;
  return trained;
}

}  // namespace hearth
