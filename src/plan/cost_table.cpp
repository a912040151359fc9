#include "plan/cost_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace hearth {

namespace {

/// What makes entries the same. Absent cores and shapes sort first, as 0.
auto key_of(const CostEntry& e) {
  const CostShape shape = e.shape.value_or(CostShape{});
  return std::tuple(e.kind, e.phase, e.dtype, e.cores.value_or(0), shape.hidden, shape.width);
}

/// The value at x of the curve through (xs[i], ys[i]).
double on_curve(const std::vector<int64_t>& xs, const std::vector<double>& ys, double x) {
  const auto at = [&](size_t i) { return static_cast<double>(xs[i]); };
  if (x <= at(0)) return ys.front();
  if (x >= at(xs.size() - 1)) return ys.back() * (x / at(xs.size() - 1));
  size_t i = 1;
  while (at(i) < x) ++i;
  return ys[i - 1] + (x - at(i - 1)) / (at(i) - at(i - 1)) * (ys[i] - ys[i - 1]);
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw input_error(where + ": " + what);
}

void check_counts(const std::vector<int64_t>& counts, const std::string& where) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 1) refuse(where, "expected whole numbers, at least 1");
    if (i > 0 && counts[i] <= counts[i - 1]) refuse(where, "expected numbers that rise");
  }
}

void check_seconds(const std::vector<double>& seconds, const std::string& where) {
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (!std::isfinite(seconds[i]) || seconds[i] < 0) {
      refuse(where, "expected finite numbers, at least 0");
    }
    if (i > 0 && seconds[i] < seconds[i - 1]) refuse(where, "expected numbers that never fall");
  }
}

void check_entry(const CostEntry& e, const std::string& where) {
  if (!has_costs(e.kind)) {
    refuse(where, "kind: a table has no " + std::string(name_of(e.kind)));
  }
  if (e.dtype == Compute::f64) refuse(where, "dtype: expected f32 or bf16");
  if (e.cores && *e.cores < 1) refuse(where, "cores: expected a whole number, at least 1");
  if (e.shape && (e.shape->hidden < 1 || e.shape->width < 1)) {
    refuse(where, "shape: expected hidden and width, whole numbers, at least 1");
  }
  if (e.units.empty()) refuse(where, "units: expected at least one point");
  check_counts(e.units, where + ": units");
  if (!e.pairs.empty()) {
    if (e.kind != TaskKind::attention) refuse(where, "pairs: only attention has pairs");
    if (e.pairs.size() != e.units.size()) refuse(where, "pairs: expected as many as units");
    check_counts(e.pairs, where + ": pairs");
  }
  if (e.seconds.size() != e.units.size()) refuse(where, "seconds: expected as many as units");
  check_seconds(e.seconds, where + ": seconds");
}

void check_link(const CostLink& l, const std::string& where) {
  const size_t arrow = l.link.find("->");
  if (arrow == std::string::npos || arrow == 0 || arrow + 2 == l.link.size()) {
    refuse(where, "link: expected FROM->TO, found " + quoted(l.link));
  }
  const auto is_rate = [](double rate) { return std::isfinite(rate) && rate > 0; };
  if (!is_rate(l.bytes_per_s)) refuse(where, "bytes_per_s: expected a number above 0");
  if (!is_rate(l.together)) refuse(where, "together: expected bytes per second, above 0");
  if (!std::isfinite(l.latency_s) || l.latency_s < 0) {
    refuse(where, "latency_s: expected a number, at least 0");
  }
}

std::string numbered(const std::string& source, const char* list, size_t i) {
  return source + ": " + list + "[" + std::to_string(i) + "]";
}

/// How often one number goes into the other, as a logarithm; 0 if they are equal.
double apart(int64_t stated, int64_t asked) {
  return std::abs(
      std::log2(static_cast<double>(stated) / static_cast<double>(std::max<int64_t>(asked, 1))));
}

double distance(const CostEntry& e, int64_t cores, const CostShape& shape) {
  double sum = 0;
  if (e.cores) sum += apart(*e.cores, cores);
  if (e.shape) {
    sum += apart(e.shape->hidden, shape.hidden) + apart(e.shape->width, shape.width);
  }
  return sum;
}

/// For equally near entries: the one that states more comes first.
int left_open(const CostEntry& e) { return (e.cores ? 0 : 1) + (e.shape ? 0 : 1); }

/// The link of this name, or else the only one that fits.
template <class Fits>
const CostLink* the_link(const std::vector<CostLink>& links, const std::string& name,
                         const Fits& fits) {
  const CostLink* only = nullptr;
  int64_t count = 0;
  for (const CostLink& link : links) {
    if (link.link == name) return &link;
    if (!fits(link.link)) continue;
    only = &link;
    ++count;
  }
  return count == 1 ? only : nullptr;
}

void add_double(Hasher& hasher, double value) {
  hasher.update_u64(std::bit_cast<uint64_t>(value + 0.0));  // -0 as 0
}

void add_counts(Hasher& hasher, const std::vector<int64_t>& counts) {
  hasher.update_u64(counts.size());
  for (const int64_t n : counts) hasher.update_u64(static_cast<uint64_t>(n));
}

}  // namespace

double CostEntry::at(double task_units, double task_pairs) const {
  const double by_units = on_curve(units, seconds, task_units);
  if (pairs.empty() || task_pairs <= 0) return by_units;
  return std::max(by_units, on_curve(pairs, seconds, task_pairs));
}

CostTable::CostTable(std::vector<CostEntry> entries, std::vector<CostLink> links,
                     const std::string& source)
    : entries_(std::move(entries)), links_(std::move(links)) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    check_entry(entries_[i], numbered(source, "entries", i));
  }
  for (size_t i = 0; i < links_.size(); ++i) check_link(links_[i], numbered(source, "links", i));
  const auto by_key = [](const CostEntry& a, const CostEntry& b) { return key_of(a) < key_of(b); };
  std::sort(entries_.begin(), entries_.end(), by_key);
  for (size_t i = 1; i < entries_.size(); ++i) {
    const CostEntry& e = entries_[i];
    if (by_key(entries_[i - 1], e)) continue;
    refuse(source, "entries: " + std::string(name_of(e.kind)) + " " +
                       std::string(name_of(e.phase)) +
                       " twice with the same dtype, cores and shape");
  }
  const auto by_name = [](const CostLink& a, const CostLink& b) { return a.link < b.link; };
  std::sort(links_.begin(), links_.end(), by_name);
  for (size_t i = 1; i < links_.size(); ++i) {
    if (links_[i].link == links_[i - 1].link) {
      refuse(source, "links: " + quoted(links_[i].link) + " twice");
    }
  }
}

const CostEntry* CostTable::find(TaskKind kind, Phase phase, Compute dtype, int64_t cores,
                                 const CostShape& shape) const {
  const auto group = [](const CostEntry& e) { return std::tuple(e.kind, e.phase, e.dtype); };
  const auto wanted = std::tuple(kind, phase, dtype);
  auto it = std::lower_bound(entries_.begin(), entries_.end(), wanted,
                             [&](const CostEntry& e, const auto& key) { return group(e) < key; });
  const CostEntry* best = nullptr;
  std::pair<double, int> nearest;
  for (; it != entries_.end() && group(*it) == wanted; ++it) {
    const std::pair near(distance(*it, cores, shape), left_open(*it));
    if (best != nullptr && nearest <= near) continue;
    best = &*it;
    nearest = near;
  }
  if (best != nullptr || phase != Phase::recompute) return best;
  return find(kind, Phase::forward, dtype, cores, shape);
}

std::optional<double> CostTable::seconds(TaskKind kind, Phase phase, Compute dtype, int64_t cores,
                                         const CostShape& shape, double units, double pairs) const {
  const CostEntry* entry = find(kind, phase, dtype, cores, shape);
  if (entry == nullptr) return std::nullopt;
  return entry->at(units, pairs);
}

const CostLink* CostTable::link_to(const std::string& place) const {
  return the_link(links_, "host->" + place,
                  [](std::string_view name) { return name.starts_with("host->"); });
}

const CostLink* CostTable::link_from(const std::string& place) const {
  return the_link(links_, place + "->host",
                  [](std::string_view name) { return name.ends_with("->host"); });
}

Digest CostTable::digest() const {
  Hasher hasher;
  hasher.update_u64(entries_.size());
  for (const CostEntry& e : entries_) {
    hasher.update_field(name_of(e.kind));
    hasher.update_field(name_of(e.phase));
    hasher.update_field(e.dtype == Compute::f32 ? "f32" : "bf16");
    const CostShape shape = e.shape.value_or(CostShape{});
    for (const int64_t n : {e.cores.value_or(0), shape.hidden, shape.width}) {
      hasher.update_u64(static_cast<uint64_t>(n));
    }
    add_counts(hasher, e.units);
    add_counts(hasher, e.pairs);
    for (const double s : e.seconds) add_double(hasher, s);
  }
  hasher.update_u64(links_.size());
  for (const CostLink& l : links_) {
    hasher.update_field(l.link);
    for (const double x : {l.bytes_per_s, l.latency_s, l.together}) add_double(hasher, x);
  }
  return hasher.digest();
}

}  // namespace hearth
