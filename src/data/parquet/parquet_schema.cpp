#include "data/parquet/parquet_schema.h"

#include <optional>
#include <set>

#include "base/error.h"

namespace hearth {
namespace {

constexpr int kMostNesting = 48;  // the rows are JSON, of at most 64 levels

// Of LogicalType, then of ConvertedType.
constexpr int64_t kString = 1, kMap = 2, kList = 3, kEnum = 4, kInteger = 10, kUnknown = 11,
                  kJson = 12;
constexpr int64_t kOldString = 0, kOldMap = 1, kOldMapPair = 2, kOldList = 3, kOldEnum = 4,
                  kOldUint8 = 11, kOldInt64 = 18, kOldJson = 19;
constexpr int64_t kOptional = 1, kRepeated = 2;

bool is_list(const ParquetElement& e) { return e.logical == kList || e.converted == kOldList; }
bool is_map(const ParquetElement& e) {
  return e.logical == kMap || e.converted == kOldMap || e.converted == kOldMapPair;
}

bool is_text(const ParquetElement& e) {
  return e.logical == kString || e.logical == kEnum || e.logical == kJson ||
         e.converted == kOldString || e.converted == kOldEnum || e.converted == kOldJson;
}

/// Whether the rows have values of this type.
bool is_read(const ParquetElement& e) {
  const bool plain = (e.logical < 0 || e.logical == kUnknown) && e.converted < 0;
  switch (static_cast<ParquetType>(e.type)) {
    case ParquetType::boolean:
    case ParquetType::float32:
    case ParquetType::float64: return true;
    case ParquetType::int32:
    case ParquetType::int64:
      return plain || e.logical == kInteger ||
             (e.logical < 0 && e.converted >= kOldUint8 && e.converted <= kOldInt64);
    case ParquetType::bytes: return plain || is_text(e);
    case ParquetType::int96:
    case ParquetType::fixed: return false;
  }
  return false;
}

/// Walks the list of elements.
class SchemaReader {
 public:
  SchemaReader(const std::vector<ParquetElement>& elements, const ParquetPlace& place)
      : elements_(elements), place_(place) {}

  ParquetSchema read() {
    if (elements_.empty() || elements_[0].type >= 0) place_.damaged("a schema with a root");
    at_ = 1;
    ParquetSchema& schema = schema_;
    schema.row.kind = ParquetNode::Kind::object;
    read_members(elements_[0].children, {"", 0, 0, 1}, schema.row);
    if (at_ != elements_.size()) place_.damaged("a schema with one root");
    schema.row.end = schema.leaves.size();
    if (schema.leaves.empty()) {
      place_.refuse("no column of texts, numbers or booleans, or lists and structs of these");
    }
    return std::move(schema_);
  }

 private:
  struct Above {
    std::string path;
    int repetition, definition, depth;
  };

  const ParquetElement& take() {
    if (at_ == elements_.size()) place_.damaged("a schema of more elements");
    const ParquetElement& element = elements_[at_++];
    if (element.type < -1 || element.type > 7 || element.repetition < 0 || element.repetition > 2 ||
        element.children < 0 || (element.type >= 0 && element.children > 0)) {
      place_.damaged("an element of a schema at " + quoted(element.name));
    }
    return element;
  }

  void read_members(int64_t count, const Above& above, ParquetNode& node) {
    std::set<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      auto member = read_node(above);
      if (!member) continue;
      if (!names.insert(member->name).second) {
        place_.refuse("two columns are named " + quoted(above.path + member->name));
      }
      node.children.push_back(*std::move(member));
    }
  }

  /// The next element with all below it; nullopt if nothing of it is read.
  std::optional<ParquetNode> read_node(Above above) {
    const ParquetElement& element = take();
    if (above.depth > kMostNesting) place_.refuse("columns nested more than 48 deep");
    if (element.repetition != kRepeated) return read_element(element, above);
    // Repeated without a group around it: a list that is never null.
    return read_list(element, std::nullopt, above);
  }

  std::optional<ParquetNode> read_element(const ParquetElement& element, Above above) {
    ParquetNode node;
    node.name = element.name;
    above.path += element.name;
    if (element.repetition == kOptional) {
      node.optional = true;
      node.definition = ++above.definition;
    }
    if (element.type < 0 && (is_list(element) || is_map(element)) && element.children == 1 &&
        at_ < elements_.size() && elements_[at_].repetition == kRepeated) {
      above.path += ".";
      ++above.depth;
      const ParquetElement& repeated = take();
      if (is_list(element)) return read_list(repeated, std::move(node), above, element.name);
      return read_map(repeated, std::move(node), above);
    }
    return read_value(element, std::move(node), above);
  }

  /// A leaf, or a group as an object. The path ends with its name.
  std::optional<ParquetNode> read_value(const ParquetElement& element, ParquetNode node,
                                        Above above) {
    node.first = schema_.leaves.size();
    if (element.type >= 0) {
      const size_t chunk = schema_.chunks++;
      if (!is_read(element)) return std::nullopt;
      schema_.leaves.push_back({.path = above.path,
                                .type = static_cast<ParquetType>(element.type),
                                .is_signed = element.is_signed,
                                .is_text = is_text(element),
                                .repetition = above.repetition,
                                .definition = above.definition,
                                .chunk = chunk});
    } else {
      node.kind = ParquetNode::Kind::object;
      above.path += ".";
      ++above.depth;
      if (element.children == 0) place_.damaged("members of " + quoted(above.path));
      read_members(element.children, above, node);
      if (node.children.empty()) return std::nullopt;
    }
    node.end = schema_.leaves.size();
    return node;
  }

  /// `list`: the group around the repeated element, which `above` includes; none: the repeated
  /// element is the list itself.
  std::optional<ParquetNode> read_list(const ParquetElement& repeated,
                                       std::optional<ParquetNode> list, Above above,
                                       const std::string& list_name = "") {
    const bool grouped = list.has_value();
    ParquetNode node = grouped ? *std::move(list) : ParquetNode{};
    if (!grouped) node.name = repeated.name;
    node.kind = ParquetNode::Kind::list;
    node.repetition = ++above.repetition;
    node.element_definition = ++above.definition;
    node.first = schema_.leaves.size();
    above.path += repeated.name;
    // A group of one member is no more than the form of a list of three levels, unless its name says
    // that older writers mean it.
    const bool form = grouped && repeated.type < 0 && repeated.children == 1 &&
                      at_ < elements_.size() && elements_[at_].repetition != kRepeated &&
                      repeated.name != "array" && repeated.name != list_name + "_tuple";
    std::optional<ParquetNode> element;
    if (form) {
      above.path += ".";
      ++above.depth;
      element = read_node(above);
    } else {
      element = read_value(repeated, {}, above);
    }
    return finish(std::move(node), std::move(element));
  }

  std::optional<ParquetNode> read_map(const ParquetElement& repeated, ParquetNode node,
                                      Above above) {
    node.kind = ParquetNode::Kind::list;
    node.repetition = ++above.repetition;
    node.element_definition = ++above.definition;
    node.first = schema_.leaves.size();
    above.path += repeated.name;
    std::optional<ParquetNode> pair = read_value(repeated, {}, above);
    // Of other keys than texts it is a list of pairs.
    if (pair && pair->kind == ParquetNode::Kind::object && pair->children.size() == 2) {
      const ParquetNode& key = pair->children[0];
      if (key.kind == ParquetNode::Kind::leaf && !key.optional &&
          schema_.leaves[key.first].is_text) {
        node.kind = ParquetNode::Kind::map;
      }
    }
    return finish(std::move(node), std::move(pair));
  }

  std::optional<ParquetNode> finish(ParquetNode node, std::optional<ParquetNode> element) const {
    if (!element) return std::nullopt;
    node.children.push_back(*std::move(element));
    node.end = schema_.leaves.size();
    return node;
  }

  const std::vector<ParquetElement>& elements_;
  const ParquetPlace& place_;
  size_t at_ = 0;
  ParquetSchema schema_;
};

}  // namespace

ParquetSchema read_parquet_schema(const std::vector<ParquetElement>& elements,
                                  const ParquetPlace& place) {
  return SchemaReader(elements, place).read();
}

}  // namespace hearth
