// Reads a page as strictly as its writer should have written it.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "support/has.h"

namespace hearth::test {

/// What a page holds, once its elements are balanced, its attributes quoted and its ids unique.
struct Page {
  std::string text;                   // between elements
  std::vector<std::string> elements;  // names of start tags
  std::set<std::string> ids;
  std::vector<std::string> attributes;  // values
  Json values;                          // what the script reads
};

/// "" or what is wrong with the page.
inline std::string read_page(const std::string& html, Page& page) {
  static const std::set<std::string> empty{"meta", "input", "br"};
  const auto is_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (find_invalid_utf8(html) != std::string::npos) return "invalid UTF-8";
  if (!html.starts_with("<!DOCTYPE html>\n")) return "no document type";
  std::vector<std::string> open;
  size_t at = 16;
  while (at < html.size()) {
    if (html[at] != '<') {
      const size_t end = std::min(html.find('<', at), html.size());
      const std::string piece = html.substr(at, end - at);
      if (piece.find('>') != std::string::npos) return "a bare > in: " + piece.substr(0, 100);
      page.text += piece;
      at = end;
      continue;
    }
    const bool closes = html[at + 1] == '/';
    size_t name_end = at += closes ? 2 : 1;
    while (is_name(html[name_end])) ++name_end;
    const std::string name = html.substr(at, name_end - at);
    if (name.empty()) return "a bare < before: " + html.substr(at, 60);
    at = name_end;
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
      if (html[at++] != '>') return "</" + name + " goes on";
      continue;
    }
    page.elements.push_back(name);
    while (html[at] == ' ') {
      size_t key_end = ++at;
      while (html[key_end] == '-' || is_name(html[key_end]) ||
             (html[key_end] >= 'A' && html[key_end] <= 'Z')) {
        ++key_end;
      }
      const std::string key = html.substr(at, key_end - at);
      if (key.empty()) return "no attribute in <" + name;
      at = key_end;
      if (html[at] != '=') continue;
      if (html[at + 1] != '"') return key + " of " + name + " is not quoted";
      const size_t end = html.find('"', at + 2);
      const std::string value = html.substr(at + 2, end - at - 2);
      if (value.find_first_of("<>") != std::string::npos) return "markup in an attribute";
      page.attributes.push_back(value);
      if (key == "id" && !page.ids.insert(value).second) return "two of id " + value;
      at = end + 1;
    }
    const bool closed = html[at] == '/';
    at += closed;
    if (html[at++] != '>') return "<" + name + " does not end";
    if (closed || empty.contains(name)) continue;
    if (name == "script" || name == "style") {
      const size_t end = html.find("</" + name + ">", at);
      const std::string content = html.substr(at, end - at);
      if (page.values.is_null() && content.starts_with("{\"charts\"")) {
        if (content.find('<') != std::string::npos) return "a bare < in the values";
        page.values = parse_json(content, "values");
      }
      at = end + name.size() + 3;
      continue;
    }
    open.push_back(name);
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

inline Page checked_page(const std::string& html) {
  Page page;
  CHECK(read_page(html, page) == "");
  // Nothing from elsewhere.
  for (const char* word : {"http:", "https:", " src=", " href=", "url(", "@import", "fetch("}) {
    INFO(word);
    CHECK(html.find(word) == std::string::npos);
  }
  return page;
}

}  // namespace hearth::test
