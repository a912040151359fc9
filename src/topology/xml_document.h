// A small strict reader of XML: elements, attributes and text, and nothing that grows. It has no
// entities but the five of XML and numbered characters, no declarations, no external files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct XmlAttribute {
  std::string_view name;
  std::string_view value;  // as in the text, with its entities
};

struct XmlElement {
  std::string_view name;
  std::string_view text;  // between the start tag and the first child or the end, as in the file
  uint32_t first_attribute = 0, attributes = 0;
  uint32_t end = 0;   // index of the element after this one and all below it
  uint32_t line = 0;  // of the start tag
};

struct XmlLimits {
  uint32_t depth = 256;
  uint32_t attributes = 64;  // of one element
  uint32_t elements = uint32_t{1} << 20;
};

/// A document, in the order of its start tags. Refers to the text that it was made from.
class XmlDocument {
 public:
  /// Input error "SOURCE: line N: ..." for text that is not well-formed, declares entities, or
  /// exceeds a limit. Needs memory and time in proportion to the text.
  XmlDocument(std::string_view text, const std::string& source, const XmlLimits& limits = {});

  const std::vector<XmlElement>& elements() const { return elements_; }  // the first is the root
  std::span<const XmlAttribute> attributes(const XmlElement& element) const {
    return std::span(attributes_).subspan(element.first_attribute, element.attributes);
  }
  /// The value of an attribute, with entities replaced and bytes that are not UTF-8 as U+FFFD.
  std::optional<std::string> attribute(const XmlElement& element, std::string_view name) const;

 private:
  friend class XmlParser;
  std::vector<XmlElement> elements_;
  std::vector<XmlAttribute> attributes_;
};

}  // namespace hearth
