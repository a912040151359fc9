#include "report/step_line.h"

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/json_parse.h"

namespace hearth {
namespace {

struct Field {
  std::string_view key;
  double StepLine::*member;
};
constexpr std::array<Field, 15> kNumbers{{{"loss", &StepLine::loss},
                                          {"aux_loss", &StepLine::aux_loss},
                                          {"grad_norm", &StepLine::grad_norm},
                                          {"lr", &StepLine::lr},
                                          {"tokens", &StepLine::tokens},
                                          {"trained_tokens", &StepLine::trained_tokens},
                                          {"time_s", &StepLine::time_s},
                                          {"tokens_per_s", &StepLine::tokens_per_s},
                                          {"epoch", &StepLine::epoch},
                                          {"bound_pct", &StepLine::bound_pct},
                                          {"peak_rss_bytes", &StepLine::peak_rss_bytes},
                                          {"peak_device_bytes", &StepLine::peak_device_bytes},
                                          {"z_loss", &StepLine::z_loss},
                                          {"late_load_s", &StepLine::late_load_s},
                                          {"expert_hit_rate", &StepLine::expert_hit_rate}}};

double StepLine::*member_of(std::string_view key) {
  for (const Field& field : kNumbers) {
    if (field.key == key) return field.member;
  }
  return nullptr;
}

StepLine::Named* named_of(std::string_view key, StepLine& line) {
  if (key == "busy") return &line.busy;
  if (key == "stall_s") return &line.stall_s;
  if (key == "cpu_s") return &line.cpu_s;
  if (key == "prediction") return &line.prediction;
  if (key == "utilisation") return &line.utilisation;
  return nullptr;
}

std::vector<double>* list_of(std::string_view key, StepLine& line) {
  if (key == "expert_load") return &line.expert_load;
  if (key == "residency") return &line.residency;
  return nullptr;
}

/// Of one device a number, of several an object.
constexpr std::string_view kDeviceBytes = "peak_device_bytes";

void clear(StepLine& line) {
  line.step = 0;
  for (const Field& field : kNumbers) line.*field.member = StepLine::kNone;
  line.is_finite = true;
  line.busy.clear();
  line.stall_s.clear();
  line.cpu_s.clear();
  line.prediction.clear();
  line.utilisation.clear();
  line.limit.clear();
  line.expert_load.clear();
  line.residency.clear();
}

void set(StepLine& line, std::string_view key, double value, bool is_null) {
  double StepLine::*const member = member_of(key);
  if (member) line.*member = value;
  if (is_null && (key == "loss" || key == "grad_norm")) line.is_finite = false;
}

/// Walks JSON of one level: numbers, null, lists of numbers, objects of numbers, strings without
/// escapes under names that are not read.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool object(StepLine& line) {
    if (!take('{')) return false;
    do {
      std::string_view key;
      if (!string(key) || !take(':') || !value(key, line)) return false;
    } while (take(','));
    return take('}') && (skip(), at_ == end_) && line.step >= 1 && line.step <= kMostSteps;
  }

 private:
  void skip() {
    while (at_ < end_ && *at_ == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool string(std::string_view& text) {
    if (!take('"')) return false;
    const char* const begin = at_;
    // ASCII alone: whether the rest is UTF-8 is for the long way to check.
    while (at_ < end_ && *at_ != '"' && *at_ != '\\' && *at_ >= ' ' && *at_ < 0x7f) ++at_;
    text = {begin, static_cast<size_t>(at_ - begin)};
    return at_ < end_ && *at_++ == '"';
  }
  bool digits() {
    const char* const begin = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > begin;
  }
  /// A number by JSON's grammar, or null.
  bool number(double& value, bool& is_null) {
    skip();
    const char* const begin = at_;
    is_null = std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with("null");
    value = StepLine::kNone;
    if (is_null) {
      at_ += 4;
      return true;
    }
    if (at_ < end_ && *at_ == '-') ++at_;
    const bool zero = at_ < end_ && *at_ == '0';
    const char* const whole = at_;
    if (!digits() || (zero && at_ - whole > 1)) return false;
    if (at_ < end_ && *at_ == '.' && (++at_, !digits())) return false;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      if (++at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    const auto [end, error] = std::from_chars(begin, at_, value);
    return error == std::errc() && end == at_;
  }
  bool step(StepLine& line) {
    skip();
    if (at_ < end_ && *at_ == '0') return false;
    const auto [end, error] = std::from_chars(at_, end_, line.step);
    at_ = end;
    return error == std::errc() && (at_ == end_ || *at_ == ',' || *at_ == '}');
  }
  bool value(std::string_view key, StepLine& line) {
    double value = 0;
    bool is_null = false;
    if (key == "step") return line.step == 0 && step(line);
    std::vector<double>* const list = list_of(key, line);
    if (take('[')) {
      if (take(']')) return true;
      do {
        if (!number(value, is_null)) return false;
        if (list) list->push_back(value);
      } while (take(','));
      return take(']') && !member_of(key) && !named_of(key, line);
    }
    if (take('{')) {
      if (key == kDeviceBytes) line.peak_device_bytes = 0;
      if (take('}')) return true;
      StepLine::Named* const named = named_of(key, line);
      do {
        std::string_view name;
        if (!string(name) || !take(':') || !number(value, is_null)) return false;
        if (named) named->emplace_back(name, value);
        if (key == kDeviceBytes) line.peak_device_bytes += value;
      } while (take(','));
      return take('}') && (!member_of(key) || key == kDeviceBytes) && !list;
    }
    const bool is_number = !named_of(key, line) && !list;
    if (at_ < end_ && *at_ == '"') {
      std::string_view text;
      if (!string(text) || member_of(key) || !is_number) return false;
      if (key == "limit") line.limit = text;
      return true;
    }
    if (!number(value, is_null)) return false;
    set(line, key, value, is_null);
    return is_null || is_number;
  }

  const char* at_;
  const char* end_;
};

[[noreturn]] void refuse(const std::string& path, int64_t number, const std::string& what) {
  throw input_error(path + ":" + std::to_string(number) + ": " + what +
                    "; this is not a line of a hearth run");
}

double number_of(const Json& value, const std::string& key, const std::string& path,
                 int64_t number) {
  if (value.is_null()) return StepLine::kNone;
  if (!value.is_number()) refuse(path, number, key + ": expected a number");
  return value.as_double();
}

/// Any line, by its tree.
void read_tree(const Json& json, const std::string& path, int64_t number, StepLine& line) {
  clear(line);
  if (!json.is_object()) refuse(path, number, "expected an object of a step");
  for (const auto& [key, value] : json.as_object()) {
    if (key == "step") {
      line.step = value.is_signed() ? value.as_int() : 0;
    } else if (StepLine::Named* const named = named_of(key, line); named && !value.is_null()) {
      if (!value.is_object()) refuse(path, number, key + ": expected an object");
      for (const auto& [name, seconds] : value.as_object()) {
        named->emplace_back(name, number_of(seconds, key, path, number));
      }
    } else if (key == kDeviceBytes && value.is_object()) {
      line.peak_device_bytes = 0;
      for (const auto& [name, bytes] : value.as_object()) {
        line.peak_device_bytes += number_of(bytes, key, path, number);
      }
    } else if (key == "limit") {
      if (value.is_string()) line.limit = value.as_string();
    } else if (std::vector<double>* const list = list_of(key, line); list && !value.is_null()) {
      if (!value.is_array()) refuse(path, number, key + ": expected an array");
      for (const Json& each : value.as_array()) {
        list->push_back(number_of(each, key, path, number));
      }
    } else if (member_of(key)) {
      set(line, key, number_of(value, key, path, number), value.is_null());
    }
  }
  if (line.step < 1 || line.step > kMostSteps) {
    refuse(path, number, "step: expected a whole number, 1 to " + std::to_string(kMostSteps));
  }
}

}  // namespace

bool read_simple_line(std::string_view text, StepLine& line) {
  clear(line);
  return Scanner(text).object(line);
}

void read_step_line(std::string_view text, const std::string& path, int64_t number,
                    StepLine& line) {
  if (read_simple_line(text, line)) return;
  read_tree(parse_json_at(text, path, number), path, number, line);
}

int64_t step_of_line(std::string_view text, const std::string& path, int64_t number) {
  constexpr std::string_view kBegin = "{\"step\": ";
  if (text.starts_with(kBegin)) {
    int64_t step = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + kBegin.size(), end, step);
    if (error == std::errc() && at < end && *at == ',' && step >= 1 && step <= kMostSteps) {
      return step;
    }
  }
  StepLine line;
  read_step_line(text, path, number, line);
  return line.step;
}

}  // namespace hearth
