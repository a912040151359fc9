#include "doctor/diagnosis_json.h"

#include <algorithm>

#include "doctor/cores_that.h"
#include "topology/topology_json.h"

namespace hearth {
namespace {

template <class Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Whole numbers as such.
Json rate(double bytes_per_s) {
  const auto whole = static_cast<int64_t>(bytes_per_s + 0.5);
  return whole > 0 ? Json(whole) : Json(nullptr);
}

template <class Value>
Json list(const std::vector<Value>& values) {
  JsonArray items;
  for (const Value& value : values) items.emplace_back(value);
  return items;
}

Json devices(const std::vector<PciDevice>& devices) {
  JsonArray items;
  for (const PciDevice& d : devices) {
    JsonObject item{{"pci", d.address},
                    {"class", d.class_code},
                    {"vendor", text_or_null(d.vendor)},
                    {"root", text_or_null(d.root)},
                    {"package", or_null(d.package)},
                    {"nodes", list(d.nodes)},
                    {"link_bytes_per_s", rate(d.link_bytes_per_s)},
                    {"names", list(d.names)}};
    if (d.memory > 0) item.emplace_back("memory_bytes", d.memory);
    items.emplace_back(std::move(item));
  }
  return items;
}

Json topology_json(const Topology& t) {
  JsonArray packages, nodes, roots;
  for (const TopologyPackage& p : t.packages) {
    const auto cores = cores_that(t, [&](const TopologyCore& c) { return c.package == p.index; });
    packages.emplace_back(
        JsonObject{{"index", p.index}, {"model", text_or_null(p.model)}, {"cores", cores}});
  }
  for (const NumaNode& n : t.nodes) {
    const auto cores = cores_that(t, [&](const TopologyCore& c) { return c.node == n.number; });
    nodes.emplace_back(JsonObject{{"number", n.number},
                                  {"memory_bytes", n.memory},
                                  {"package", or_null(n.package)},
                                  {"cores", cores}});
  }
  for (const TopologyRoot& r : t.roots) {
    roots.emplace_back(
        JsonObject{{"name", r.name}, {"package", or_null(r.package)}, {"nodes", list(r.nodes)}});
  }
  JsonArray distances;  // in the order of the nodes
  for (const std::vector<double>& row : t.distances) distances.push_back(list(row));
  Json json = JsonObject{{"source", t.source},
                         {"packages", std::move(packages)},
                         {"nodes", std::move(nodes)},
                         {"cores", static_cast<int64_t>(t.cores.size())},
                         {"cpus", t.cpus()},
                         {"core_list", core_list_json(t)},
                         {"root_complexes", std::move(roots)},
                         {"devices", devices(t.accelerators)},
                         {"nics", devices(t.nics)}};
  if (!distances.empty()) json["distances"] = std::move(distances);
  return json;
}

Json limits_json(const MachineLimits& limits) {
  JsonArray pages;
  for (const HugePages& p : limits.huge_pages) {
    pages.emplace_back(JsonObject{{"bytes", p.bytes}, {"total", p.total}, {"free", p.free}});
  }
  return JsonObject{{"locked_memory_bytes", or_null(limits.locked_memory)},
                    {"address_space_bytes", or_null(limits.address_space)},
                    {"open_files", or_null(limits.open_files)},
                    {"huge_pages", std::move(pages)},
                    {"transparent_huge_pages", text_or_null(limits.transparent_huge_pages)}};
}

Json library_json(const std::optional<FoundLibrary>& library) {
  if (!library) return nullptr;
  return JsonObject{{"library", library->file}, {"version", text_or_null(library->version)}};
}

}  // namespace

Json diagnosis_json(const Diagnosis& diagnosis) {
  const auto& machine = diagnosis.machine;
  JsonArray links, warnings;
  if (machine) {
    for (const LinkMeasurement& l : machine->links) {
      links.emplace_back(JsonObject{{"link", l.link},
                                    {"bytes_per_s", rate(l.nominal)},
                                    {"alone", rate(l.alone)},
                                    {"together", rate(l.together)}});
    }
  }
  for (const Warning& w : diagnosis.warnings) {
    warnings.emplace_back(JsonObject{{"about", w.about}, {"text", w.text}});
  }
  return JsonObject{{"topology", topology_json(diagnosis.topology)},
                    {"isa", machine ? Json(machine->isa) : Json(nullptr)},
                    {"memory", diagnosis.topology.total_memory},
                    {"links", std::move(links)},
                    {"limits", machine ? limits_json(machine->limits) : Json(nullptr)},
                    {"mpi", machine ? library_json(machine->mpi) : Json(nullptr)},
                    {"nccl", machine ? library_json(machine->nccl) : Json(nullptr)},
                    {"warnings", std::move(warnings)}};
}

}  // namespace hearth
