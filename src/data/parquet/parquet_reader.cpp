#include "data/parquet/parquet_reader.h"

#include <bit>
#include <deque>

#include "base/error_format.h"
#include "base/json.h"
#include "base/utf8.h"
#include "data/rows/line_reader.h"

namespace hearth {

bool is_parquet_file(const std::string& path) {
  const InputFile file(path);
  std::string magic(4, '\0');
  if (file.size() < magic.size()) return false;
  file.read(magic.data(), magic.size(), 0);
  return magic == "PAR1";
}

struct ParquetReader::State {
  State(const std::string& path, const ParquetLimits& limits)
      : file(path),
        footer(file, path),
        schema(read_parquet_schema(footer.elements(), {.file = path})),
        pages{file, footer.begin(), limits} {}

  bool begin_group();
  void end_group();
  Json read(const ParquetNode& node);
  Json read_list(const ParquetNode& node);
  Json read_leaf(ParquetColumn& column);
  Json json_of(const ParquetValue& value, const ParquetColumn& column);
  /// Whether all columns of a node say the same; input error if they do not.
  template <class F>
  bool agreed(const ParquetNode& node, const F& says);
  Json take_nothing(const ParquetNode& node, Json value);
  void count(uint64_t bytes);

  InputFile file;
  ParquetFooter footer;
  ParquetSchema schema;
  ParquetPages pages;
  std::deque<ParquetColumn> columns;  // of the row group, one per leaf
  int64_t group = 0, rows_left = 0;   // of the row group
  int64_t rows = 0;                   // given
  uint64_t row_bytes = 0;             // of the row, about as long as its text
  std::string problem;                // of the row
};

bool ParquetReader::State::begin_group() {
  columns.clear();
  const auto found = footer.next_group(schema.chunks);
  if (!found) {
    if (rows != footer.rows()) {
      ParquetPlace{.file = file.path()}.damaged(
          fmt::format("{} rows, and found {}", footer.rows(), rows));
    }
    return false;
  }
  rows_left = found->rows;
  const ParquetPlace place{.file = file.path(), .group = ++group, .groups = footer.groups()};
  if (rows_left == 0) return true;
  for (const ParquetLeaf& leaf : schema.leaves) {
    columns.emplace_back(pages, leaf, found->chunks[leaf.chunk], place);
  }
  return true;
}

void ParquetReader::State::end_group() {
  for (ParquetColumn& column : columns) {
    if (!column.at_end()) column.place().damaged("no values behind the last row");
  }
}

void ParquetReader::State::count(uint64_t bytes) {
  row_bytes += bytes;
  if (row_bytes >= pages.limits.row) {
    throw input_error("{}:{}: a row of more than {} MiB", file.path(), rows + 1,
                      pages.limits.row >> 20);
  }
}

template <class F>
bool ParquetReader::State::agreed(const ParquetNode& node, const F& says) {
  const bool first = says(columns[node.first]);
  for (size_t i = node.first + 1; i < node.end; ++i) {
    if (says(columns[i]) != first) {
      columns[i].place().damaged(
          fmt::format("as many entries of {} as in its other columns in row "
                      "{}",
                      quoted(node.name), rows + 1));
    }
  }
  return first;
}

Json ParquetReader::State::take_nothing(const ParquetNode& node, Json value) {
  ParquetValue none;
  for (size_t i = node.first; i < node.end; ++i) columns[i].take(none);
  count(6);
  return value;
}

Json ParquetReader::State::json_of(const ParquetValue& value, const ParquetColumn& column) {
  const ParquetLeaf& leaf = column.leaf();
  switch (leaf.type) {
    case ParquetType::boolean: return value.bits != 0;
    case ParquetType::int32: {
      const auto bits = static_cast<uint32_t>(value.bits);
      if (!leaf.is_signed) return int64_t{bits};
      return int64_t{static_cast<int32_t>(bits)};
    }
    case ParquetType::int64:
      if (!leaf.is_signed) return value.bits;
      return static_cast<int64_t>(value.bits);
    case ParquetType::float32:
      return double{std::bit_cast<float>(static_cast<uint32_t>(value.bits))};
    case ParquetType::float64: return std::bit_cast<double>(value.bits);
    default: break;
  }
  if (find_invalid_utf8(value.bytes) == std::string_view::npos) return value.bytes;
  if (leaf.is_text && problem.empty()) problem = leaf.path + ": invalid UTF-8";
  return nullptr;
}

Json ParquetReader::State::read_leaf(ParquetColumn& column) {
  ParquetValue value;
  const bool has_value = column.take(value);
  count(value.bytes.size() + 6);
  return has_value ? json_of(value, column) : Json();
}

Json ParquetReader::State::read_list(const ParquetNode& node) {
  const auto has_element = [&](ParquetColumn& column) {
    return column.definition() >= node.element_definition;
  };
  const auto has_more = [&](ParquetColumn& column) {
    return !column.at_end() && column.repetition() == node.repetition;
  };
  const bool is_map = node.kind == ParquetNode::Kind::map;
  if (!agreed(node, has_element)) {
    return take_nothing(node, is_map ? Json(JsonObject{}) : Json(JsonArray{}));
  }
  JsonArray list;
  JsonObject object;
  do {
    Json element = read(node.children[0]);
    if (is_map) {
      JsonObject& pair = element.as_object();
      if (pair[0].second.is_string()) {  // otherwise it has a problem
        object.emplace_back(pair[0].second.as_string(), std::move(pair[1].second));
      }
    } else {
      list.push_back(std::move(element));
    }
  } while (agreed(node, has_more));
  return is_map ? Json(std::move(object)) : Json(std::move(list));
}

Json ParquetReader::State::read(const ParquetNode& node) {
  if (node.optional && node.kind != ParquetNode::Kind::leaf) {
    const auto is_there = [&](ParquetColumn& column) {
      return column.definition() >= node.definition;
    };
    if (!agreed(node, is_there)) return take_nothing(node, nullptr);
  }
  switch (node.kind) {
    case ParquetNode::Kind::leaf: return read_leaf(columns[node.first]);
    case ParquetNode::Kind::list:
    case ParquetNode::Kind::map: return read_list(node);
    case ParquetNode::Kind::object: break;
  }
  JsonObject object;
  for (const ParquetNode& child : node.children) {
    count(child.name.size() + 6);
    object.emplace_back(child.name, read(child));
  }
  return object;
}

ParquetReader::ParquetReader(const std::string& path, const ParquetLimits& limits)
    : state_(std::make_unique<State>(path, limits)) {}

ParquetReader::~ParquetReader() = default;

bool ParquetReader::next(RawRow& row) {
  State& s = *state_;
  while (s.rows_left == 0) {
    s.end_group();
    if (!s.begin_group()) return false;
  }
  s.row_bytes = 0;
  s.problem.clear();
  for (ParquetColumn& column : s.columns) {
    if (column.repetition() != 0) column.place().damaged("the first value of a row");
  }
  const Json json = s.read(s.schema.row);
  --s.rows_left;
  row.file = s.file.path();
  row.document = false;
  row.line = ++s.rows;
  row.problem = s.problem;
  row.text = row.problem.empty() ? json.dump() : "";
  return true;
}

const std::string& ParquetReader::name() const { return state_->file.path(); }

uint64_t ParquetReader::bytes_read() const { return state_->pages.bytes_read; }

Digest ParquetReader::digest() {
  State& s = *state_;
  Hasher hasher;
  std::string piece;
  for (uint64_t at = 0; at < s.file.size(); at += piece.size()) {
    piece.resize(std::min<uint64_t>(kTextPiece, s.file.size() - at));
    s.file.read(piece.data(), piece.size(), at);
    hasher.update(piece.data(), piece.size());
  }
  s.pages.bytes_read = s.file.size();
  return hasher.digest();
}

}  // namespace hearth
