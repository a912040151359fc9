#include "train/decided_past.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

namespace {

/// Reads the member, and refuses what does not fit the model.
class PastReader {
 public:
  PastReader(const ModelSpec& spec, const std::string& source) : spec_(spec), source_(source) {}

  const Json& member(const Json& of, const char* name) const {
    const Json* const found = of.find(name);
    require(found != nullptr);
    return *found;
  }
  const JsonArray& list(const Json& of) const {
    require(of.is_array());
    return of.as_array();
  }
  /// A list of two.
  const JsonArray& pair(const Json& of) const {
    require(list(of).size() == 2);
    return of.as_array();
  }
  int32_t layer(const Json& of) const { return number(of, spec_.layers); }
  int32_t expert(const Json& of) const { return number(of, spec_.experts); }
  /// Of each expert; up to what a double counts by ones.
  std::vector<double> counts(const Json& of) const {
    require(std::ssize(list(of)) == spec_.experts);
    std::vector<double> counts;
    for (const Json& each : of.as_array()) {
      require(each.is_signed() && each.as_int() >= 0 && each.as_int() <= int64_t{1} << 53);
      counts.push_back(static_cast<double>(each.as_int()));
    }
    return counts;
  }
  void require(bool holds) const {
    if (!holds) throw storage_error(source_ + ": decisions: not a record of decisions");
  }

 private:
  int32_t number(const Json& of, int64_t end) const {
    require(of.is_signed() && of.as_int() >= 0 && of.as_int() < end);
    return static_cast<int32_t>(of.as_int());
  }

  const ModelSpec& spec_;
  const std::string& source_;
};

}  // namespace

Json to_json(std::span<const DecidedPast> past, const std::vector<std::string>& names) {
  JsonArray devices;
  for (const DecidedPast& of : past) {
    JsonArray loaded, given, tokens;
    for (const auto& [layer, expert] : of.loaded) {
      loaded.push_back(JsonArray{int64_t{layer}, int64_t{expert}});
    }
    for (const auto& [layer, experts] : of.given) {
      JsonArray numbers;
      for (const int32_t expert : experts) numbers.push_back(int64_t{expert});
      given.push_back(JsonArray{int64_t{layer}, std::move(numbers)});
    }
    for (const auto& [layer, counts] : of.tokens) {
      JsonArray numbers;
      for (const double count : counts) numbers.push_back(static_cast<int64_t>(count));
      tokens.push_back(JsonArray{int64_t{layer}, std::move(numbers)});
    }
    devices.push_back(JsonObject{{"device", names[static_cast<size_t>(of.device)]},
                                 {"loaded", std::move(loaded)},
                                 {"given", std::move(given)},
                                 {"tokens", std::move(tokens)}});
  }
  return devices;
}

std::vector<DecidedPast> decided_past(const Json& saved, const std::vector<std::string>& names,
                                      const ModelSpec& spec, const std::string& source) {
  const PastReader read(spec, source);
  std::vector<DecidedPast> all;
  for (const Json& of : read.list(saved)) {
    const Json& device = read.member(of, "device");
    read.require(device.is_string());
    const auto name = std::ranges::find(names, device.as_string());
    DecidedPast past;
    for (const Json& each : read.list(read.member(of, "loaded"))) {
      const JsonArray& two = read.pair(each);
      past.loaded.emplace_back(read.layer(two[0]), read.expert(two[1]));
    }
    for (const Json& each : read.list(read.member(of, "given"))) {
      const JsonArray& two = read.pair(each);
      auto& [layer, experts] = past.given.emplace_back();
      layer = read.layer(two[0]);
      for (const Json& expert : read.list(two[1])) experts.push_back(read.expert(expert));
    }
    if (const Json* const tokens = of.find("tokens")) {
      for (const Json& each : read.list(*tokens)) {
        const JsonArray& two = read.pair(each);
        past.tokens.emplace_back(read.layer(two[0]), read.counts(two[1]));
      }
    }
    if (name == names.end()) continue;
    past.device = static_cast<Place>(name - names.begin());
    all.push_back(std::move(past));
  }
  return all;
}

}  // namespace hearth
