#include "setup/measured_tables.h"

#include <algorithm>
#include <optional>

#include "base/stopwatch.h"
#include "base/system.h"
#include "runtime/bench_model.h"
#include "runtime/filled_memory.h"
#include "runtime/link_profile.h"
#include "runtime/place_profile.h"

namespace hearth {
namespace {

constexpr double kLinkShare = 0.08;  // of the time, if there are links
constexpr uint64_t kMostDeviceBytes = uint64_t{4} << 30;
constexpr uint64_t kCopyBytes = uint64_t{32} << 20;  // of copies beside the tasks
constexpr double kFillShare = .25;  // of the time, for filling the memory that is measured with
constexpr uint64_t kFewParameters = uint64_t{192} << 20;  // experts and rows of the vocabulary
constexpr uint64_t kFewValues = uint64_t{128} << 20;      // with scratch
constexpr double kLeastRound = 4;  // seconds of the most important round; less says little

/// A part of the time of a place.
struct Round {
  Compute dtype;
  int workers;
  double weight;
};

std::vector<Round> rounds_of(const TableRequest& request, int workers, bool fewer_cores) {
  std::vector<Round> rounds;
  for (const Compute dtype : request.dtypes) rounds.push_back({dtype, workers, 3});
  if (!fewer_cores) return rounds;
  for (int w = workers / 2; w > 0; w /= 2) rounds.push_back({request.dtypes.front(), w, 1});
  return rounds;
}

/// The part of a time that a round has of those from its own on.
double part_of(const std::vector<Round>& rounds, size_t from, size_t of, double seconds) {
  double weights = 0;
  for (size_t r = from; r < rounds.size(); ++r) weights += rounds[r].weight;
  return seconds * rounds[of].weight / weights;
}

/// Leaves out the last rounds behind the one at `from` if their time would go to preparing memory,
/// which takes `setup_s`, and rounds of fewer cores until that one has enough time. Returns them.
std::vector<Round> take_rounds_without_time(std::vector<Round>& rounds, size_t from, double seconds,
                                            double setup_s) {
  std::vector<Round> left_out;
  const auto has_time = [&] {
    const bool fewer_cores = rounds.back().workers < rounds[from].workers;
    return part_of(rounds, from, rounds.size() - 1, seconds) >= 2 * setup_s &&
           (!fewer_cores || part_of(rounds, from, from, seconds) >= kLeastRound);
  };
  while (rounds.size() > from + 1 && !has_time()) {
    left_out.push_back(rounds.back());
    rounds.pop_back();
  }
  return left_out;
}

/// The workers of a place, those of all its compute streams together.
StreamTeam team_of(const OpenedModel& machine, Place at) {
  StreamTeam all{0, {}};
  for (const StreamTeam& team : machine.place(at).teams) {
    all.workers += team.workers;
    all.cores.insert(all.cores.end(), team.cores.begin(), team.cores.end());
  }
  if (all.workers == 0) return {machine.workers, machine.cores};
  return all;
}

BenchPlace bench_place(const OpenedModel& machine, Place at, int workers) {
  const ComputePlace& place = machine.place(at);
  const std::vector<int> cores = team_of(machine, at).cores;
  BenchPlace bench{*place.device, *place.ops, place.memory, at, workers, {}};
  if (cores.size() >= static_cast<size_t>(workers)) {
    bench.cores.assign(cores.begin(), cores.begin() + workers);
  }
  return bench;
}

std::optional<double> weighted_mean(const std::vector<std::pair<double, int64_t>>& values) {
  double sum = 0, weights = 0;
  for (const auto& [value, weight] : values) {
    sum += value * static_cast<double>(weight);
    weights += static_cast<double>(weight);
  }
  return weights > 0 ? std::optional(sum / weights) : std::nullopt;
}

class TableMaker {
 public:
  TableMaker(const OpenedModel& machine, const TableRequest& request)
      : machine_(machine), request_(request) {
    for (size_t at = 1; at < machine.devices.places.size(); ++at) {
      // A NUMA node is memory of the host, and has no link.
      const ComputePlace& place = machine.devices.places[at];
      if (place.memory != SpaceKind::host) devices_.push_back(place.device.get());
    }
  }

  std::vector<MeasuredTable> make() {
    std::vector<CostLink> links;
    uint64_t host_bytes = request_.host_bytes;
    if (!devices_.empty()) {
      report("links");
      links = measure_link_costs(devices_, kLinkShare * request_.seconds,
                                 std::min(kCopyBytes, host_bytes));
      host_bytes -= std::min(kCopyBytes, host_bytes);
    }
    std::vector<MeasuredTable> tables;
    const std::optional<BackgroundCopies> copies =
        devices_.empty() ? std::nullopt
                         : std::optional<BackgroundCopies>(std::in_place, devices_, kCopyBytes);
    const size_t places = machine_.devices.places.size();
    for (size_t at = 0; at < places && !ended_; ++at) {
      const ComputePlace& place = machine_.devices.places[at];
      const uint64_t bytes = place.memory == SpaceKind::host
                                 ? host_bytes
                                 : std::min(place.budget.bytes / 2, kMostDeviceBytes);
      // What a place takes beyond its part, the others do not have.
      const double seconds = left() / static_cast<double>(places - at);
      tables.push_back(measure(static_cast<Place>(at), seconds, bytes, links));
    }
    return tables;
  }

 private:
  double left() const { return request_.seconds - watch_.seconds(); }

  bool report(const std::string& what) {
    if (!request_.progress) return true;
    return request_.progress(what, std::min(1.0, watch_.seconds() / request_.seconds));
  }

  MeasuredTable measure(Place at, double seconds, uint64_t bytes,
                        const std::vector<CostLink>& links) {
    const Stopwatch watch;
    double setup_s = 0;
    const ComputePlace& place = machine_.place(at);
    auto rounds = rounds_of(request_, team_of(machine_, at).workers,
                            at == kHostPlace && request_.fewer_cores);
    MeasuredTable made;
    made.place = place.budget.name;
    std::vector<CostEntry> entries;
    std::vector<std::pair<double, int64_t>> spreads;  // with their points
    for (size_t r = 0; r < rounds.size() && !ended_; ++r) {
      const Round round = rounds[r];
      const bool first = r == 0;
      const std::string name = name_of_round(at, round);
      const double left_s = seconds - watch.seconds();
      // How long the memory takes is known when it is there, and rounds without time need none.
      const auto part_after_setup = [&](double took_s) {
        for (const Round& out : take_rounds_without_time(rounds, r, left_s, took_s)) {
          made.left_out.push_back(name_of_round(at, out));
        }
        return part_of(rounds, r, r, left_s);
      };
      if (!first && left_s < 2 * setup_s) {
        made.left_out.push_back(name);
        continue;
      }
      const PlaceProfile profile =
          profile_round(at, round, part_of(rounds, r, r, left_s), part_after_setup, bytes, first);
      setup_s = std::max(setup_s, profile.setup_s);
      for (const std::string& what : profile.left_out) {
        made.left_out.push_back(first ? what : name + ": " + what);
      }
      entries.insert(entries.end(), profile.entries.begin(), profile.entries.end());
      made.points += profile.points;
      made.samples += profile.samples;
      if (profile.spread) spreads.emplace_back(*profile.spread, profile.points);
    }
    made.spread = weighted_mean(spreads);
    std::vector<CostLink> own;
    for (const CostLink& link : links) {
      if (link.link == "host->" + made.place || link.link == made.place + "->host") {
        own.push_back(link);
      }
    }
    made.table = CostTable(std::move(entries), std::move(own), made.place);
    return made;
  }

  /// "f32", "f32, cores 2": the cores of a GPU are not the host's.
  std::string name_of_round(Place at, const Round& round) const {
    const std::string type = round.dtype == Compute::f32 ? "f32" : "bf16";
    if (!machine_.place(at).device->host_reaches()) return type;
    return type + ", cores " + std::to_string(round.workers);
  }

  /// `whole`: with the least table, whatever time it takes.
  PlaceProfile profile_round(Place at, const Round& round, double seconds,
                             const std::function<double(double)>& seconds_after_setup,
                             uint64_t bytes, bool whole) {
    BenchPlace place = bench_place(machine_, at, round.workers);
    if (place.device.host_reaches()) {
      bytes = std::min(bytes, bytes_in(seconds, round.dtype));
      place.between_bytes = std::min(largest_cache_bytes(), bytes / 4);
      bytes -= place.between_bytes;
    }
    BenchSubject subject{{}, request_.settings, {true, round.dtype, DType::f32}, request_.longest};
    subject.settings.compute = round.dtype;
    // The rest is for values and scratch.
    uint64_t parameters = bytes / 2;
    const uint64_t few = least_bytes(round.dtype) + kFewParameters;
    if (few + kFewValues <= bytes) parameters = std::max(parameters, few);
    subject.model = bench_model(request_.spec, request_.table, subject.policy, at, parameters);
    ProfileOptions options;
    options.seconds = seconds;
    options.seconds_after_setup = seconds_after_setup;
    options.max_bytes = bytes;
    options.most_tokens = request_.most_tokens;
    options.whole = whole;
    if (place.device.host_reaches()) options.cores = round.workers;
    const std::string what = machine_.place(at).budget.name + ", " + name_of_round(at, round);
    options.progress = [&](double) {
      ended_ = !report(what);
      return !ended_;
    };
    return profile_place(place, subject, options);
  }

  /// Of parameters: of one expert and one row of the vocabulary.
  uint64_t least_bytes(Compute dtype) const {
    return least_bench_bytes(request_.spec, request_.table, {true, dtype, DType::f32});
  }
  uint64_t few_bytes(Compute dtype) const {
    return least_bytes(dtype) + kFewParameters + kFewValues + largest_cache_bytes();
  }
  /// The memory of a round of a time, of which filling it may take a part.
  uint64_t bytes_in(double seconds, Compute dtype) const {
    return std::max(few_bytes(dtype), filled_in(kFillShare * seconds));
  }

  const OpenedModel& machine_;
  const TableRequest& request_;
  std::vector<Device*> devices_;
  Stopwatch watch_;
  bool ended_ = false;
};

}  // namespace

std::vector<MeasuredTable> measure_tables(const OpenedModel& machine, const TableRequest& request) {
  return TableMaker(machine, request).make();
}

}  // namespace hearth
