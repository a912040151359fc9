#include "setup/cost_table_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

constexpr char kCostFormat[] = "hearth-costs-1";

struct KindName {
  std::string_view name;
  TaskKind kind;
};
constexpr std::array<KindName, 14> kKindNames = {{{"embed", TaskKind::embed},
                                                  {"attention", TaskKind::attention},
                                                  {"mlp", TaskKind::mlp},
                                                  {"dispatch", TaskKind::dispatch},
                                                  {"experts", TaskKind::experts},
                                                  {"combine", TaskKind::combine},
                                                  {"head", TaskKind::head},
                                                  {"norm", TaskKind::norm},
                                                  {"update", TaskKind::update},
                                                  {"A", TaskKind::attention},
                                                  {"S", TaskKind::mlp},
                                                  {"D", TaskKind::dispatch},
                                                  {"E", TaskKind::experts},
                                                  {"C", TaskKind::combine}}};

/// An object of the table, whose keys are all known. Messages name the field.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::initializer_list<std::string_view> needed,
         std::initializer_list<std::string_view> optional = {})
      : json_(json), where_(std::move(where)) {
    if (!json.is_object()) refuse("expected an object");
    for (const auto& [key, value] : json.as_object()) {
      const auto is_key = [&key = key](std::string_view name) { return name == key; };
      if (std::none_of(needed.begin(), needed.end(), is_key) &&
          std::none_of(optional.begin(), optional.end(), is_key)) {
        refuse("unknown key " + quoted(key));
      }
    }
    for (const std::string_view key : needed) {
      if (json.find(key) == nullptr) refuse(std::string(key) + " is missing");
    }
  }

  const Json* find(std::string_view key) const { return json_.find(key); }
  const Json& at(std::string_view key) const { return *json_.find(key); }
  const std::string& where() const { return where_; }

  const std::string& text(std::string_view key) const {
    if (!at(key).is_string()) refuse(key, "expected a text");
    return at(key).as_string();
  }
  double number(std::string_view key) const { return number_in(at(key), key); }
  int64_t whole(std::string_view key) const { return whole_in(at(key), key); }
  const JsonArray& list(std::string_view key) const {
    if (!at(key).is_array()) refuse(key, "expected a list");
    return at(key).as_array();
  }
  std::vector<int64_t> wholes(std::string_view key) const {
    std::vector<int64_t> out;
    for (const Json& value : list(key)) out.push_back(whole_in(value, key));
    return out;
  }
  std::vector<double> numbers(std::string_view key) const {
    std::vector<double> out;
    for (const Json& value : list(key)) out.push_back(number_in(value, key));
    return out;
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& what) const {
    refuse(std::string(key) + ": " + what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw input_error(where_ + ": " + what);
  }

 private:
  double number_in(const Json& value, std::string_view key) const {
    if (!value.is_number()) refuse(key, "expected a number");
    return value.as_double();
  }
  int64_t whole_in(const Json& value, std::string_view key) const {
    if (!value.is_signed()) refuse(key, "expected a whole number below 2^63");
    return value.as_int();
  }

  const Json& json_;
  const std::string where_;
};

TaskKind read_kind(const Fields& entry) {
  const std::string& name = entry.text("kind");
  for (const KindName& known : kKindNames) {
    if (known.name == name) return known.kind;
  }
  entry.refuse("kind", "unknown kind " + quoted(name) +
                           "; expected embed, attention, mlp, dispatch, experts, combine, head, "
                           "norm or update");
}

Phase read_phase(const Fields& entry) {
  const std::string& name = entry.text("phase");
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
    if (name_of(phase) == name) return phase;
  }
  entry.refuse("phase", "expected forward, recompute or backward, found " + quoted(name));
}

Compute read_dtype(const Fields& entry) {
  const std::string& name = entry.text("dtype");
  if (name != "f32" && name != "bf16") {
    entry.refuse("dtype", "expected f32 or bf16, found " + quoted(name));
  }
  return name == "f32" ? Compute::f32 : Compute::bf16;
}

CostEntry read_entry(const Json& json, const std::string& where) {
  const Fields fields(json, where, {"kind", "phase", "dtype", "units", "seconds"},
                      {"cores", "shape", "pairs"});
  CostEntry entry;
  entry.kind = read_kind(fields);
  entry.phase = read_phase(fields);
  entry.dtype = read_dtype(fields);
  if (fields.find("cores") != nullptr) entry.cores = fields.whole("cores");
  if (const Json* shape = fields.find("shape")) {
    const Fields sizes(*shape, where + ": shape", {"hidden", "width"});
    entry.shape = CostShape{sizes.whole("hidden"), sizes.whole("width")};
  }
  entry.units = fields.wholes("units");
  if (fields.find("pairs") != nullptr) {
    entry.pairs = fields.wholes("pairs");
    if (entry.pairs.empty()) fields.refuse("pairs", "expected as many as units");
  }
  entry.seconds = fields.numbers("seconds");
  return entry;
}

CostLink read_link(const Json& json, const std::string& where) {
  const Fields fields(json, where, {"link", "bytes_per_s", "latency_s", "together"});
  return {fields.text("link"), fields.number("bytes_per_s"), fields.number("latency_s"),
          fields.number("together")};
}

template <class Read>
auto read_all(const Fields& table, std::string_view key, const Read& read) {
  std::vector<decltype(read(Json(), std::string()))> out;
  const JsonArray& list = table.list(key);
  for (size_t i = 0; i < list.size(); ++i) {
    std::string where = table.where();
    where.append(": ").append(key).append("[").append(std::to_string(i)).append("]");
    out.push_back(read(list[i], where));
  }
  return out;
}

}  // namespace

CostTableFile cost_table_of(const Json& json, const std::string& source) {
  // Another format may have other keys, so it is named before they are.
  const Json* format = json.find("format");
  if (format != nullptr && format->is_string() && format->as_string() != kCostFormat) {
    throw input_error(source + ": format: expected " + kCostFormat + ", found " +
                      quoted(format->as_string()));
  }
  const Fields table(json, source, {"format", "device", "machine", "made", "entries", "links"});
  table.text("format");
  table.text("device");
  // Where and when the table was made is for people.
  if (!table.at("machine").is_string() && !table.at("machine").is_object()) {
    table.refuse("machine", "expected a text or an object");
  }
  if (!table.at("made").is_string() && !table.at("made").is_number()) {
    table.refuse("made", "expected a text or a number");
  }
  return {CostTable(read_all(table, "entries", read_entry), read_all(table, "links", read_link),
                    source),
          {table.text("device"), table.at("machine"), table.at("made")}};
}

namespace {

template <class T>
Json list_json(const std::vector<T>& values) {
  JsonArray list;
  for (const T value : values) list.emplace_back(value);
  return list;
}

Json entry_json(const CostEntry& e) {
  Json json;
  json["kind"] = name_of(e.kind);
  json["phase"] = name_of(e.phase);
  json["dtype"] = e.dtype == Compute::f32 ? "f32" : "bf16";
  if (e.cores) json["cores"] = *e.cores;
  if (e.shape) json["shape"] = JsonObject{{"hidden", e.shape->hidden}, {"width", e.shape->width}};
  json["units"] = list_json(e.units);
  if (!e.pairs.empty()) json["pairs"] = list_json(e.pairs);
  json["seconds"] = list_json(e.seconds);
  return json;
}

}  // namespace

CostTable parse_cost_table(std::string_view text, const std::string& source) {
  return cost_table_of(parse_json(text, source), source).table;
}

CostTableFile parse_cost_table_file(std::string_view text, const std::string& source) {
  return cost_table_of(parse_json(text, source), source);
}

CostTableFile read_cost_table_file(const std::string& path) {
  return cost_table_of(parse_json(read_text_file(path, kMaxCostTableBytes), path), path);
}

CostTable read_cost_table(const std::string& path) { return read_cost_table_file(path).table; }

Json cost_table_json(const CostTable& table, const CostTableOrigin& origin) {
  JsonArray entries, links;
  for (const CostEntry& e : table.entries()) entries.push_back(entry_json(e));
  for (const CostLink& l : table.links()) {
    links.push_back(JsonObject{{"link", l.link},
                               {"bytes_per_s", l.bytes_per_s},
                               {"latency_s", l.latency_s},
                               {"together", l.together}});
  }
  Json json;
  json["format"] = kCostFormat;
  json["device"] = origin.device;
  json["machine"] = origin.machine;
  json["made"] = origin.made;
  json["entries"] = std::move(entries);
  json["links"] = std::move(links);
  return json;
}

void write_cost_table(const std::string& path, const CostTable& table,
                      const CostTableOrigin& origin) {
  write_file_atomically(path, cost_table_json(table, origin).dump(1) + "\n");
}

}  // namespace hearth
