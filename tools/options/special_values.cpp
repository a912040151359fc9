#include "options/special_values.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/number_list.h"
#include "base/numbers.h"
#include "data/chat/template_args.h"
#include "data/rows/columns.h"
#include "device/device_list.h"
#include "options/value_parts.h"

namespace hearth {

OptionValue logical_shards_value() {
  return {OptionKind::integer, "N", "at least 1",
          single([](Options& options, const std::string& text) -> Problem {
            const auto value = parse_count(text);
            if (!value || *value < 1) return unexpected("a whole number, at least 1", text);
            options.logical_shards = *value;
            return std::nullopt;
          }),
          [](const Options& options) { return std::to_string(options.shards()); }};
}

namespace {

/// "0,1,1". Nothing: something else, or a number that is not in [least, most].
std::optional<std::vector<int32_t>> parse_numbers(const std::string& text, int64_t least,
                                                  int64_t most) {
  std::vector<int32_t> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto number = parse_count(text.substr(begin, end - begin));
    if (!number || *number < least || *number > most) return std::nullopt;
    numbers.push_back(static_cast<int32_t>(*number));
    begin = end + 1;
  }
  return numbers;
}

constexpr int64_t kMostUnits = 1024;  // of a level

}  // namespace

OptionValue expert_shift_value() {
  static constexpr int64_t kMostExperts = 1 << 20;
  const auto set = [](Options& options, const std::string& text) -> Problem {
    std::optional<std::vector<int32_t>> shift;
    if (text == "off") shift.emplace();
    if (text != "auto" && text != "off") {
      shift = parse_numbers(text, 0, kMostExperts);
      if (!shift) return unexpected("auto, off, or numbers such as 0,1,1", text);
    }
    options.expert_shift = std::move(shift);
    return std::nullopt;
  };
  const auto get = [](const Options& options) -> std::string {
    if (!options.expert_shift) return "auto";
    return yaml_text(options.expert_shift->empty() ? "off" : numbers_text(*options.expert_shift));
  };
  return {OptionKind::text, "auto|off|O1,O2,...", "", single(set), get};
}

OptionValue levels_value() {
  const auto set = [](Options& options, const std::string& text) -> Problem {
    const auto levels = parse_numbers(text, 1, kMostUnits);
    if (!levels) return unexpected("numbers such as 2,4, from 1 to 1024", text);
    options.levels = *levels;
    return std::nullopt;
  };
  const auto get = [](const Options& options) -> std::string {
    return options.levels.empty() ? "null" : yaml_text(numbers_text(options.levels));
  };
  return {OptionKind::text, "G1,G2,...", "1 to 1024", single(set), get};
}

OptionValue domains_value() {
  const auto set = [](Options& options, const std::string& text) -> Problem {
    std::optional<std::vector<int32_t>> domains;
    if (text != "auto") {
      domains = parse_numbers(text, 1, kMostUnits);
      if (!domains) return unexpected("auto, or numbers such as 2,1, from 1 to 1024", text);
    }
    options.domains = std::move(domains);
    return std::nullopt;
  };
  const auto get = [](const Options& options) -> std::string {
    return options.domains ? yaml_text(numbers_text(*options.domains)) : "auto";
  };
  return {OptionKind::text, "auto|S1,S2,...", "1 to 1024", single(set), get};
}

OptionValue kept_layers_value() {
  constexpr int32_t kMostLayers = 100'000;
  const auto set = [](Options& options, const std::string& text) -> Problem {
    std::optional<int64_t> kept;
    if (text != "auto") {
      const auto number = parse_numbers(text, 0, kMostLayers);
      if (!number || number->size() != 1) return unexpected("auto, or a whole number from 0", text);
      kept = number->front();
    }
    options.kept_layers = kept;
    return std::nullopt;
  };
  const auto get = [](const Options& options) -> std::string {
    return options.kept_layers ? std::to_string(*options.kept_layers) : "auto";
  };
  return {OptionKind::text, "auto|N", "0 to 100000", single(set), get};
}

OptionValue wire_value() {
  static constexpr double kMostRatio = 10000;
  static constexpr std::string_view kResidual = "residual:";
  const auto set = [](Options& options, const std::string& text) -> Problem {
    using Kind = ExpertWire::Kind;
    double ratio = 1;
    Kind kind = text == "auto" ? Kind::automatic : Kind::dense;
    if (text.starts_with(kResidual)) {
      kind = Kind::residual;
      ratio = parse_number(text.substr(kResidual.size())).value_or(0);
    }
    const bool known = kind == Kind::residual ? ratio > 1 && ratio <= kMostRatio
                                              : kind == Kind::automatic || text == "dense";
    if (!known) {
      return unexpected("dense, auto or residual:R, with R above 1 and at most 10000", text);
    }
    options.wire.kind = kind;
    options.wire.ratio = ratio;
    return std::nullopt;
  };
  const auto get = [](const Options& options) -> std::string {
    switch (options.wire.kind) {
      case ExpertWire::Kind::dense: return "dense";
      case ExpertWire::Kind::automatic: return "auto";
      case ExpertWire::Kind::residual: break;
    }
    return yaml_text(std::string(kResidual) + format_number(options.wire.ratio));
  };
  return {OptionKind::text, "dense|auto|residual:R", "R above 1, at most 10000", single(set), get};
}

OptionValue rank_links_value() {
  constexpr double kMostLatency = 10;  // seconds
  return {OptionKind::text, "BYTES/S[:LATENCY]", "at least 1, latency at most 10s",
          single([](Options& options, const std::string& text) -> Problem {
            const size_t colon = text.find(':');
            const auto rate = parse_size(text.substr(0, colon));
            const auto latency = colon == std::string::npos ? std::optional(0.0)
                                                            : parse_latency(text.substr(colon + 1));
            if (!rate || *rate < 1 || !latency || *latency > kMostLatency) {
              return unexpected("BYTES/S[:LATENCY] such as 125M:50us", text);
            }
            options.rank_links = {static_cast<double>(*rate), *latency};
            return std::nullopt;
          }),
          [](const Options& options) -> std::string {
            const LinkRate& link = options.rank_links;
            if (link.bytes_per_s <= 0) return "null";
            return yaml_text(std::to_string(static_cast<uint64_t>(link.bytes_per_s)) + ":" +
                             format_number(link.latency_s));
          }};
}

OptionValue given_value(OptionValue value, bool Options::*given) {
  value.set = [set = value.set, given](Options& options,
                                       const std::vector<std::string>& texts) -> Problem {
    options.*given = true;
    return set(options, texts);
  };
  return value;
}

OptionValue warmup_value(int64_t most) {
  OptionValue steps = integer_value(&Options::warmup, 0, most);
  // Newer versions of other trainers take a part of the run under the same name.
  steps.set = [set = steps.set](Options& options,
                                const std::vector<std::string>& texts) -> Problem {
    const Problem problem = set(options, texts);
    if (!problem || texts.size() != 1) return problem;
    const auto part = parse_number(texts[0]);
    if (!part || *part <= 0 || *part >= 1) return problem;
    return *problem + "; for a share of the run, use --warmup-ratio " + texts[0];
  };
  return steps;
}

OptionValue chat_template_value() {
  OptionValue value = text_value(&Options::chat_template, "FILE|NAME");
  value.set = [set = value.set](Options& options,
                                const std::vector<std::string>& texts) -> Problem {
    const bool jinja = texts.size() == 1 && (texts[0].find("{%") != std::string::npos ||
                                             texts[0].find("{{") != std::string::npos);
    if (jinja) return "expected a file or a name, found the text of a template; write it to a file";
    return set(options, texts);
  };
  return value;
}

namespace {

/// A list that `check` accepts; it throws the problem.
template <class Check>
OptionValue checked_list(OptionValue list, std::vector<std::string> Options::*member, Check check) {
  list.set = [set = list.set, member, check](Options& options,
                                             const std::vector<std::string>& texts) -> Problem {
    Options given;
    if (auto problem = set(given, texts)) return problem;
    try {
      check(given.*member);
    } catch (const Error& error) {
      return error.what();
    }
    options.*member = given.*member;
    return std::nullopt;
  };
  return list;
}

}  // namespace

OptionValue template_args_value() {
  constexpr auto kMember = &Options::template_args;
  return checked_list(list_value(kMember, "NAME=VALUE"), kMember,
                      [](const std::vector<std::string>& texts) { template_args(texts); });
}

OptionValue columns_value() {
  constexpr auto kMember = &Options::columns;
  return checked_list(list_value(kMember, "FIELD=COLUMN", true), kMember,
                      [](const std::vector<std::string>& texts) { parse_columns(texts); });
}

OptionValue date_value(std::string Options::*member) {
  return {
      OptionKind::text, "YYYY-MM-DD", "",
      single([member](Options& options, const std::string& text) -> Problem {
        const auto part = [&](size_t at, size_t digits) {
          const std::string number = text.substr(std::min(at, text.size()), digits);
          const bool whole = number.size() == digits &&
                             number.find_first_not_of("0123456789") == std::string::npos;
          return whole ? std::stoi(number) : -1;
        };
        using namespace std::chrono;
        const year_month_day day{year(part(0, 4)), month(static_cast<unsigned>(part(5, 2))),
                                 std::chrono::day(static_cast<unsigned>(part(8, 2)))};
        if (text.size() != 10 || text[4] != '-' || text[7] != '-' || part(0, 4) < 0 || !day.ok()) {
          return unexpected("a day as YYYY-MM-DD", text);
        }
        options.*member = text;
        return std::nullopt;
      }),
      [member](const Options& options) { return yaml_text(options.*member); }};
}

OptionValue resume_value() {
  return {OptionKind::text, "auto|never|DIR", "",
          single([](Options& options, const std::string& text) -> Problem {
            if (text.empty()) return unexpected("auto, never or a directory", text);
            options.resume = text == "auto"    ? ResumeMode::automatic
                             : text == "never" ? ResumeMode::never
                                               : ResumeMode::from_directory;
            options.resume_from = options.resume == ResumeMode::from_directory ? text : "";
            return std::nullopt;
          }),
          [](const Options& options) -> std::string {
            if (options.resume == ResumeMode::automatic) return "auto";
            if (options.resume == ResumeMode::never) return "never";
            return yaml_text(options.resume_from);
          }};
}

OptionValue experts_value(double Options::*percent) {
  return {OptionKind::text, "all|top:P%", "",
          single([percent](Options& options, const std::string& text) -> Problem {
            options.*percent = 0;
            if (text == "all") return std::nullopt;
            const bool has_form = text.starts_with("top:") && text.ends_with('%');
            const auto value =
                has_form ? parse_number(text.substr(4, text.size() - 5)) : std::nullopt;
            if (!value || !(*value > 0 && *value <= 100)) {
              return unexpected("all or top:P%, P above 0 and at most 100", text);
            }
            options.*percent = *value;
            return std::nullopt;
          }),
          [percent](const Options& options) -> std::string {
            if (options.*percent == 0) return "all";
            return "top:" + format_number(options.*percent) + "%";
          }};
}

namespace {

/// YAML may read characters of a path another way. The other characters of a list are plain.
std::string yaml_devices(const std::string& list) {
  const bool plain = std::all_of(list.begin(), list.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(",:=/.-_+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? list : yaml_text(list);
}

/// Without the spaces that people and YAML lists put behind commas.
std::string without_spaces(const std::string& list) {
  std::string text;
  for (const char c : list) {
    if (c == ' ' && !text.empty() && text.back() == ',') continue;
    text += c;
  }
  return text;
}

}  // namespace

OptionValue policy_value() {
  const std::vector<std::string> names{"auto",   "static",    "gpipe-offload",
                                       "mobius", "roundpipe", "aptmoe"};
  return choice_value(
      names, {}, [names](Options& options, size_t i) { options.policy = i == 0 ? "" : names[i]; },
      [names](const Options& options) -> size_t {
        const auto found = std::find(names.begin(), names.end(), options.policy);
        return options.policy.empty() ? 0 : static_cast<size_t>(found - names.begin());
      });
}

OptionValue equation_value() {
  return choice_value(
      {"corrected", "printed"}, {},
      [](Options& options, size_t i) { options.printed_equation = i == 1; },
      [](const Options& options) -> size_t { return options.printed_equation ? 1 : 0; });
}

namespace {

struct PhaseName {
  std::string_view name;
  bool LoadPhases::*phase;
};
constexpr PhaseName kPhases[] = {{"inter-stage", &LoadPhases::inter_stage},
                                 {"inter-layer", &LoadPhases::inter_layer},
                                 {"inter-expert", &LoadPhases::inter_expert}};
constexpr const char* kPhaseList = "inter-stage,inter-layer,inter-expert, or some of these";

/// Null: there is no such phase.
const PhaseName* phase_named(const std::string& name) {
  for (const PhaseName& of : kPhases) {
    if (of.name == name) return &of;
  }
  return nullptr;
}

Problem set_phases(Options& options, const std::vector<std::string>& texts) {
  LoadPhases phases{false, false, false};
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const PhaseName* const of = phase_named(text.substr(begin, end - begin));
      if (of == nullptr || phases.*(of->phase)) return unexpected(kPhaseList, text);
      phases.*(of->phase) = true;
      begin = end + 1;
    }
  }
  options.foresight.phases = phases;
  return std::nullopt;
}

}  // namespace

namespace {

struct PredictorName {
  std::string_view name;
  ForetoldBy by;
};
constexpr PredictorName kPredictors[] = {{"history", ForetoldBy::history},
                                         {"router", ForetoldBy::router},
                                         {"pre-attention", ForetoldBy::pre_attention},
                                         {"oracle", ForetoldBy::oracle}};

/// A name, and behind "router" so many layers: router:2.
Problem set_predictor(Options& options, const std::string& text) {
  constexpr int64_t kMostAhead = 4;
  const size_t colon = text.find(':');
  const auto found = std::ranges::find(kPredictors, text.substr(0, colon), &PredictorName::name);
  std::optional<int64_t> ahead = 1;
  if (colon != std::string::npos) ahead = parse_count(text.substr(colon + 1));
  if (found == std::end(kPredictors) || !ahead || *ahead < 1 || *ahead > kMostAhead ||
      (colon != std::string::npos && found->by != ForetoldBy::router)) {
    return unexpected("history, router, router:N (N from 1 to 4), pre-attention or oracle", text);
  }
  options.foresight.predictor = found->by;
  options.foresight.ahead = static_cast<int32_t>(*ahead);
  return std::nullopt;
}

}  // namespace

OptionValue predictor_value() {
  return {OptionKind::text, "history|router|router:N|pre-attention|oracle", "",
          single(set_predictor), [](const Options& options) -> std::string {
            const Foresight& of = options.foresight;
            const std::string name(
                std::ranges::find(kPredictors, of.predictor, &PredictorName::by)->name);
            return of.ahead == 1 ? name : name + ":" + std::to_string(of.ahead);
          }};
}

OptionValue phases_value() {
  return {OptionKind::list, "LIST", kPhaseList, set_phases, [](const Options& options) {
            std::vector<std::string> names;
            for (const PhaseName& of : kPhases) {
              if (options.foresight.phases.*(of.phase)) names.emplace_back(of.name);
            }
            return yaml_list(names);
          }};
}

OptionValue journal_decisions_value() {
  return choice_value(
      {"digest", "full"}, {}, [](Options& options, size_t i) { options.all_decisions = i == 1; },
      [](const Options& options) -> size_t { return options.all_decisions ? 1 : 0; });
}

OptionValue parallel_value() {
  const std::vector<std::string> names{"single", "pipeline", "dp", "ep", "zebra", "hybrid-ep"};
  return choice_value(
      names, {"chunked", "data-centric", "model-centric"},
      [names](Options& options, size_t i) { options.parallel = names[i]; },
      [names](const Options& options) -> size_t {
        if (!options.parallel.empty()) {
          const auto found = std::find(names.begin(), names.end(), options.parallel);
          return static_cast<size_t>(found - names.begin());
        }
        if (options.policy == "static") return 1;
        const std::vector<DeviceItem> items = parse_device_list(options.devices);
        const auto devices = std::count_if(items.begin(), items.end(), [](const DeviceItem& item) {
          return item.kind == DeviceKind::cuda || item.kind == DeviceKind::virtual_device;
        });
        return devices > 1 ? 1 : 0;
      });
}

OptionValue devices_value() {
  return {OptionKind::text, "LIST",
          "auto, host[:N][:cores=N/costs=FILE], cuda:N, virtual[:key=value/...], commas between",
          single([](Options& options, const std::string& given) -> Problem {
            const std::string text = without_spaces(given);
            try {
              parse_device_list(text);
            } catch (const Error& error) {
              return error.what();
            }
            options.devices = text;
            return std::nullopt;
          }),
          [](const Options& options) { return yaml_devices(options.devices); }};
}

OptionValue rank_devices_value() {
  return {OptionKind::text, "RANKS=LIST;...",
          "0=LIST or 0-3=LIST, with LIST as of --devices, semicolons between",
          single([](Options& options, const std::string& text) -> Problem {
            try {
              options.rank_devices = parse_rank_devices(text);
            } catch (const Error& error) {
              return error.what();
            }
            return std::nullopt;
          }),
          [](const Options& options) -> std::string {
            return options.rank_devices.empty() ? "null" : yaml_text(text_of(options.rank_devices));
          }};
}

}  // namespace hearth
