#include "topology/hwloc_distances.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/numbers.h"

namespace hearth {
namespace {

constexpr uint64_t kMostInMatrix = 1024;  // of a matrix
constexpr uint64_t kMeansLatency = 4;     // bit of a matrix's kind

/// Latencies by the numbers of nodes.
struct Matrix {
  std::vector<uint64_t> nodes;
  std::vector<double> values;  // row by row
};

// Numbers separated by spaces; false at anything else.
bool append_numbers(std::string_view text, std::vector<uint64_t>& numbers) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (true) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (text.empty()) return true;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return false;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && !is_space(text.front())) return false;
  }
}

uint64_t matrix_size(const HwlocObjects& objects, const XmlElement& element) {
  const auto size = parse_seed(objects.document().attribute(element, "nbobjs").value_or(""));
  if (!size || *size == 0 || *size > kMostInMatrix) {
    objects.refuse(element,
                   "distances need their nbobjs, from 1 to " + std::to_string(kMostInMatrix));
  }
  return *size;
}

// Version 2: <distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os"> with indexes and values.
Matrix read_version_2(const HwlocObjects& objects, uint32_t index) {
  const std::vector<XmlElement>& elements = objects.document().elements();
  const XmlElement& element = elements[index];
  const auto size = matrix_size(objects, element);
  Matrix matrix;
  std::vector<uint64_t> values;
  for (uint32_t i = index + 1; i < element.end; i = elements[i].end) {
    const bool of_indexes = elements[i].name == "indexes";
    if (!of_indexes && elements[i].name != "u64values") continue;
    if (!append_numbers(elements[i].text, of_indexes ? matrix.nodes : values)) {
      objects.refuse(elements[i], "distances that are no whole numbers");
    }
  }
  if (matrix.nodes.size() != size || values.size() != size * size) {
    objects.refuse(element, "distances of other than " + std::to_string(size) + " objects");
  }
  matrix.values.assign(values.begin(), values.end());
  return matrix;
}

// Version 1: inside of the machine, of all objects at a depth, which are the nodes if they are as
// many.
Matrix read_version_1(const HwlocObjects& objects, uint32_t index) {
  const std::vector<XmlElement>& elements = objects.document().elements();
  const XmlElement& element = elements[index];
  const auto size = matrix_size(objects, element);
  const XmlDocument& document = objects.document();
  const auto base = parse_number(document.attribute(element, "latency_base").value_or("1"));
  if (!base || *base < 0) objects.refuse(element, "distances need a latency_base of at least 0");
  Matrix matrix;
  for (const HwlocObject& object : objects.all()) {
    if (object.kind == HwlocKind::node)
      matrix.nodes.push_back(static_cast<uint64_t>(object.number));
  }
  for (uint32_t i = index + 1; i < element.end; i = elements[i].end) {
    if (elements[i].name != "latency") continue;
    const auto value = parse_number(document.attribute(elements[i], "value").value_or(""));
    if (!value || *value < 0) {
      objects.refuse(elements[i], "a latency without its value of at least 0");
    }
    matrix.values.push_back(*value * *base);
  }
  if (matrix.values.size() != size * size) {
    objects.refuse(element, "distances of other than " + std::to_string(size) + " objects");
  }
  if (matrix.nodes.size() != size) matrix.nodes.clear();
  return matrix;
}

// Empty if the matrix lacks a node.
std::vector<std::vector<double>> in_order(const Matrix& matrix,
                                          const std::vector<NumaNode>& nodes) {
  std::vector<size_t> place;
  for (const NumaNode& node : nodes) {
    const auto at =
        std::find(matrix.nodes.begin(), matrix.nodes.end(), static_cast<uint64_t>(node.number));
    if (at == matrix.nodes.end()) return {};
    place.push_back(static_cast<size_t>(at - matrix.nodes.begin()));
  }
  std::vector<std::vector<double>> rows;
  for (const size_t from : place) {
    std::vector<double>& row = rows.emplace_back();
    for (const size_t to : place) row.push_back(matrix.values[from * matrix.nodes.size() + to]);
  }
  return rows;
}

}  // namespace

std::vector<std::vector<double>> read_node_distances(const HwlocObjects& objects,
                                                     const std::vector<NumaNode>& nodes) {
  const XmlDocument& document = objects.document();
  const std::vector<XmlElement>& elements = document.elements();
  std::vector<std::vector<double>> found;
  const bool version_1 = objects.version_1();
  const uint32_t above = version_1 ? objects.all().front().element : 0;
  for (uint32_t i = above + 1; i < elements[above].end; i = elements[i].end) {
    const XmlElement& element = elements[i];
    if (element.name != (version_1 ? "distances" : "distances2")) continue;
    if (version_1) {
      const Matrix matrix = read_version_1(objects, i);
      if (found.empty()) found = in_order(matrix, nodes);
      continue;
    }
    const Matrix matrix = read_version_2(objects, i);
    const auto attribute = [&](std::string_view name) {
      std::string text = document.attribute(element, name).value_or("");
      if (text.empty()) objects.refuse(element, "distances without their " + std::string(name));
      return text;
    };
    const auto kind = parse_seed(attribute("kind"));
    if (!kind) objects.refuse(element, "the kind of distances is no number");
    const bool of_latency = (*kind & kMeansLatency) != 0;
    const std::string type = attribute("type"), indexing = attribute("indexing");
    const bool of_nodes = type == "NUMANode" && indexing == "os";
    if (of_latency && of_nodes && found.empty()) found = in_order(matrix, nodes);
  }
  return found;
}

}  // namespace hearth
