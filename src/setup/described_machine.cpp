#include "setup/described_machine.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/json.h"
#include "checkpoint/model_files.h"
#include "setup/cost_table_file.h"
#include "topology/hwloc_xml.h"
#include "topology/topology_json.h"

namespace hearth {
namespace {

constexpr size_t kMostLinks = 65536;
constexpr double kMostLinkRate = 1e15;  // bytes per second

/// The rate of a link alone; else the one that it says of itself. Null: unknown.
double rate_of_link(const Json& link, const std::string& where) {
  for (const char* key : {"alone", "bytes_per_s"}) {
    const Json* rate = link.find(key);
    if (rate == nullptr || rate->is_null()) continue;
    if (!rate->is_number() || rate->as_double() <= 0 || rate->as_double() > kMostLinkRate) {
      throw input_error("{}: {}: expected null or bytes per second above 0", where, key);
    }
    return rate->as_double();
  }
  return 0;
}

std::map<std::string, double> links_of(const Json& json, const std::string& source) {
  const Json* list = json.find("links");
  if (list == nullptr || !list->is_array() || list->as_array().size() > kMostLinks) {
    throw input_error("{}: links: expected a list of at most {} links", source, kMostLinks);
  }
  std::map<std::string, double> links;
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    const Json& link = list->as_array()[i];
    const std::string where = source + ": links[" + std::to_string(i) + "]";
    const Json* name = link.find("link");
    if (name == nullptr || !name->is_string()) {
      throw input_error("{}: link: expected a text", where);
    }
    if (!links.emplace(name->as_string(), rate_of_link(link, where)).second) {
      throw input_error("{}: link: {} a second time", where, quoted(name->as_string()));
    }
  }
  return links;
}

/// Whether an instruction set, in the words of doctor, has products of bf16.
bool has_bf16_products(const std::string& isa) {
  return isa.find("amx") != std::string::npos || isa.find("bf16") != std::string::npos;
}

}  // namespace

std::shared_ptr<const CostTable> DescribedMachine::table_of(const std::string& place,
                                                            const std::string& stands_for) const {
  std::vector<std::string> names{place};
  if (!stands_for.empty()) names.push_back(stands_for);
  if (place.starts_with("host:")) names.emplace_back("host");
  for (const std::string& name : names) {
    if (const auto found = tables.find(name); found != tables.end()) return found->second;
  }
  return nullptr;
}

double DescribedMachine::link_rate(const std::string& from, const std::string& to) const {
  const auto found = links.find(from + "->" + to);
  return found == links.end() ? 0 : found->second;
}

void MachineDescription::take(Topology topology) {
  has_machine_ = true;
  machine_.topology = std::move(topology);
  machine_.topology.has_real_nodes = false;
}

void MachineDescription::add(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  if (json.find("format") != nullptr) {
    CostTableFile file = cost_table_of(json, source);
    add_table(file.origin.device, std::move(file.table), source);
  } else if (const Json* tables = json.find("tables")) {
    if (!tables->is_object()) throw input_error(source + ": tables: expected an object");
    for (const auto& [place, table] : tables->as_object()) {
      const std::string where = source + ": tables: " + quoted(place);
      add_table(place, cost_table_of(table, where).table, where);
    }
  } else if (const Json* topology = json.find("topology")) {
    if (has_machine_) {
      throw input_error(source + ": describes a second machine; give one machine's files");
    }
    has_machine_ = true;
    machine_.topology = topology_of(*topology, source + ": topology");
    machine_.topology.source = source;
    machine_.links = links_of(json, source);
    const Json *memory = json.find("memory"), *isa = json.find("isa");
    if (memory == nullptr || !memory->is_signed() || memory->as_int() < 0) {
      throw input_error(source + ": memory: expected a whole number of bytes");
    }
    machine_.topology.total_memory = static_cast<uint64_t>(memory->as_int());
    if (isa != nullptr && !isa->is_null()) {
      if (!isa->is_string()) throw input_error(source + ": isa: expected null or a text");
      bf16_ = has_bf16_products(isa->as_string());
    }
  } else {
    throw input_error(source +
                      ": neither the JSON of hearth doctor or hearth profile, nor a cost table");
  }
}

void MachineDescription::add_table(const std::string& place, CostTable table,
                                   const std::string& where) {
  if (place.empty()) throw input_error(where + ": device: expected the name of a place");
  bf16_tables_ = bf16_tables_ ||
                 std::any_of(table.entries().begin(), table.entries().end(),
                             [](const CostEntry& entry) { return entry.dtype == Compute::bf16; });
  auto owned = std::make_shared<const CostTable>(std::move(table));
  if (!machine_.tables.emplace(place, std::move(owned)).second) {
    throw input_error(where + ": a second table of " + quoted(place));
  }
}

DescribedMachine MachineDescription::machine() const {
  if (!has_machine_) {
    throw usage_error(
        "--machine: tables alone do not describe a machine; also give what 'hearth doctor --json' "
        "prints on it, or its --topology");
  }
  DescribedMachine result = machine_;
  result.bf16 = bf16_.value_or(bf16_tables_);
  return result;
}

DescribedMachine read_described_machine(const std::vector<std::string>& files,
                                        const std::string& topology) {
  MachineDescription description;
  if (!topology.empty()) description.take(read_topology(topology));
  for (const std::string& file : files) {
    description.add(read_text_file(file, kMaxMachineBytes), file);
  }
  return description.machine();
}

}  // namespace hearth
