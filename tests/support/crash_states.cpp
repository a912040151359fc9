#include "support/crash_states.h"

#include <algorithm>
#include <random>
#include <set>

#include "base/hash.h"

namespace hearth::test {
namespace {

using Kind = DiskChange::Kind;
using Nodes = std::vector<MemoryDisk::Node>;

constexpr uint64_t kSector = 512;

// What became of a change that was not synced.
struct Fate {
  enum class Kind { absent, whole, zeros, front, front_and_zeros, back };
  Kind kind = Kind::absent;
  uint64_t cut = 0;  // bytes of a torn write before the cut
};

// Bytes of a write up to a sector's boundary in the file, near `share` of its length.
uint64_t cut_of(const DiskChange& write, double share) {
  const auto near = static_cast<uint64_t>(static_cast<double>(write.data.size()) * share);
  const uint64_t boundary = (write.at + near) / kSector * kSector;
  return boundary > write.at ? boundary - write.at : 0;
}

std::vector<Fate> fates_of(const DiskChange& change, double share) {
  std::vector<Fate> fates = {{Fate::Kind::absent, 0}, {Fate::Kind::whole, 0}};
  if (change.kind != Kind::write) return fates;
  fates.push_back({Fate::Kind::zeros, 0});
  if (const uint64_t cut = cut_of(change, share)) {
    fates.push_back({Fate::Kind::front, cut});
    fates.push_back({Fate::Kind::front_and_zeros, cut});
    fates.push_back({Fate::Kind::back, cut});
  }
  return fates;
}

void apply_torn(Nodes& nodes, const DiskChange& change, const Fate& fate) {
  if (fate.kind == Fate::Kind::whole) return MemoryDisk::apply(nodes, change);
  if (fate.kind == Fate::Kind::absent) return;
  // The file has its size, then data where the disk got it.
  MemoryDisk::Node& node = nodes[static_cast<size_t>(change.node)];
  std::string& content = MemoryDisk::content_of(node);
  const uint64_t end = change.at + (fate.kind == Fate::Kind::front ? fate.cut : change.data.size());
  content.resize(std::max<uint64_t>(content.size(), end));
  const uint64_t from = fate.kind == Fate::Kind::back ? fate.cut : 0;
  const uint64_t to = fate.kind == Fate::Kind::zeros  ? 0
                      : fate.kind == Fate::Kind::back ? change.data.size()
                                                      : fate.cut;
  if (from < to) content.replace(change.at + from, to - from, change.data, from, to - from);
}

void hash_node(const Nodes& nodes, int index, Hasher& hasher) {
  const MemoryDisk::Node& node = nodes[static_cast<size_t>(index)];
  hasher.update_u64(node.directory);
  hasher.update_field(node.content ? *node.content : std::string());
  hasher.update_u64(node.entries.size());
  for (const auto& [name, child] : node.entries) {
    hasher.update_field(name);
    hash_node(nodes, child, hasher);
  }
}

std::string text_of(const DiskChange& change) {
  const auto node = std::to_string(change.node);
  switch (change.kind) {
    case Kind::write:
      return "write " + std::to_string(change.data.size()) + " bytes at " +
             std::to_string(change.at) + " of file " + node;
    case Kind::resize: return "cut file " + node + " to " + std::to_string(change.at);
    case Kind::link: return "make " + change.name + " (" + std::to_string(change.child) + ")";
    case Kind::move: return "rename " + change.name + " to " + change.to_name;
    case Kind::erase: return "remove " + change.name;
    case Kind::sync: return "sync " + node;
  }
  return "";
}

class Search {
 public:
  using Judge = std::function<std::string(MemoryDisk&, int)>;

  Search(const MemoryDisk& disk, const CrashBounds& bounds, const Judge& judge)
      : disk_(disk), bounds_(bounds), judge_(judge), random_(bounds.seed) {}

  CrashReport run() {
    const size_t all = disk_.changes().size();
    for (size_t n = bounds_.first; n <= all && report_.fault.empty(); n += bounds_.stride) after(n);
    return report_;
  }

 private:
  void after(size_t changes) {
    count_ = changes;
    pending_.clear();
    std::set<int> synced;
    for (size_t i = changes; i-- > 0;) {
      const DiskChange& change = disk_.changes()[i];
      if (change.kind == Kind::sync) {
        synced.insert(change.node);
      } else if (!synced.contains(change.node)) {
        pending_.push_back(i);
      }
    }
    std::reverse(pending_.begin(), pending_.end());
    fates_.clear();
    double combinations = 1;
    for (const size_t i : pending_) {
      fates_.push_back(fates_of(disk_.changes()[i], 0.5));
      combinations *= static_cast<double>(fates_.back().size());
    }
    std::vector<Fate> chosen(pending_.size());
    if (combinations <= static_cast<double>(bounds_.exhaustive)) {
      choose_all(chosen, 0);
    } else {
      choose_some(chosen);
    }
  }

  void choose_all(std::vector<Fate>& chosen, size_t at) {
    if (at == chosen.size()) return look(chosen);
    for (const Fate& fate : fates_[at]) {
      chosen[at] = fate;
      choose_all(chosen, at + 1);
    }
  }

  void choose_some(std::vector<Fate>& chosen) {
    for (const Fate::Kind others : {Fate::Kind::absent, Fate::Kind::whole}) {
      std::fill(chosen.begin(), chosen.end(), Fate{others, 0});
      look(chosen);
      const size_t first = chosen.size() - std::min(chosen.size(), bounds_.alone);
      for (size_t i = first; i < chosen.size(); ++i) {
        for (const Fate& fate : fates_[i]) {
          chosen[i] = fate;
          if (fate.kind != others) look(chosen);
        }
        chosen[i] = {others, 0};
      }
    }
    for (int64_t draw = 0; draw < bounds_.draws; ++draw) {
      for (size_t i = 0; i < chosen.size(); ++i) {
        const double share = std::uniform_real_distribution<>(0, 1)(random_);
        const auto fates = fates_of(disk_.changes()[pending_[i]], share);
        chosen[i] = fates[random_() % fates.size()];
      }
      look(chosen);
    }
  }

  void look(const std::vector<Fate>& chosen) {
    if (!report_.fault.empty()) return;
    ++report_.states;
    Nodes nodes = disk_.durable_nodes();
    size_t next = 0;
    for (size_t i = 0; i < count_; ++i) {
      const bool pending = next < pending_.size() && pending_[next] == i;
      apply_torn(nodes, disk_.changes()[i], pending ? chosen[next] : Fate{Fate::Kind::whole, 0});
      next += pending;
    }
    const int promised = disk_.promised_at(count_);
    Hasher hasher;
    hasher.update_u64(static_cast<uint64_t>(promised));
    hash_node(nodes, 0, hasher);
    if (!seen_.insert(hasher.digest().hex()).second) return;
    ++report_.distinct;
    MemoryDisk crashed(disk_.root(), std::move(nodes));
    const std::string fault = judge_(crashed, promised);
    if (!fault.empty()) report_.fault = fault + describe(chosen);
  }

  std::string describe(const std::vector<Fate>& chosen) const {
    static const char* const kFates[] = {"absent", "whole",           "zeros",
                                         "front",  "front and zeros", "back"};
    std::string text = "\nafter " + std::to_string(count_) + " changes";
    if (count_ > 0) text += ", the last: " + text_of(disk_.changes()[count_ - 1]);
    text += "; not synced:";
    for (size_t i = 0; i < chosen.size(); ++i) {
      text += "\n  " + text_of(disk_.changes()[pending_[i]]) + ": " +
              kFates[static_cast<int>(chosen[i].kind)];
    }
    return text;
  }

  const MemoryDisk& disk_;
  const CrashBounds& bounds_;
  const Judge& judge_;
  std::mt19937_64 random_;
  size_t count_ = 0;
  std::vector<size_t> pending_;
  std::vector<std::vector<Fate>> fates_;
  std::set<std::string> seen_;
  CrashReport report_;
};

}  // namespace

CrashReport crash_states(const MemoryDisk& disk, const CrashBounds& bounds,
                         const std::function<std::string(MemoryDisk&, int)>& judge) {
  return Search(disk, bounds, judge).run();
}

}  // namespace hearth::test
