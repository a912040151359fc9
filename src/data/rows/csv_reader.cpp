#include "data/rows/csv_reader.h"

#include <algorithm>
#include <set>

#include "base/error_format.h"
#include "base/json.h"
#include "base/utf8.h"
#include "data/rows/line_reader.h"

namespace hearth {

namespace {

/// More columns are no table of texts.
constexpr size_t kMostColumns = 10'000;

}  // namespace

CsvReader::CsvReader(ByteStream& bytes, std::string head, char delimiter)
    : bytes_(bytes), text_(std::move(head)), delimiter_(delimiter) {
  peek();
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (delimiter_ == 0) {
    std::string_view first = text_;
    first.remove_prefix(std::min(first.find_first_not_of("\r\n", at_), first.size()));
    first = first.substr(0, first.find('\n'));
    for (const char c : {',', ';', '\t'}) {
      if (delimiter_ == 0 && first.find(c) != first.npos) delimiter_ = c;
    }
    if (delimiter_ == 0) delimiter_ = ',';  // one column
  }
  std::vector<Field> fields;
  std::string problem;
  if (!read_record(fields, problem)) return;
  std::set<std::string> known;
  for (Field& field : fields) {
    const bool named = field && !field->empty();
    if (!problem.empty() || !named || !known.insert(*field).second) {
      throw input_error("{}:{}: {}", bytes_.name(), record_line_,
                        !problem.empty() ? problem
                        : named          ? "two columns are named " + quoted(*field)
                                : "a column without a name; the first line names the columns");
    }
    names_.push_back(std::move(*field));
  }
}

int CsvReader::peek() {
  if (at_ == text_.size()) {
    text_.clear();
    at_ = 0;
    if (!bytes_.append_to(text_, kTextPiece)) return -1;
  }
  return static_cast<unsigned char>(text_[at_]);
}

std::string CsvReader::read_quoted() {
  std::string value;
  take();
  for (int c = peek();; c = peek()) {
    if (c < 0) {
      throw input_error("{}:{}: a quoted field that is never closed", bytes_.name(), record_line_);
    }
    take();
    if (c == '"') {
      if (peek() != '"') return value;
      take();
    }
    value.push_back(static_cast<char>(c));
    if (size_ >= kMaxLine) {
      throw input_error("{}:{}: a row of more than 48 MiB; is a quote missing?", bytes_.name(),
                        record_line_);
    }
  }
}

CsvReader::Field CsvReader::read_field(std::string& problem) {
  const auto ends = [&](int c) { return c < 0 || c == '\n' || c == delimiter_; };
  Field field;
  if (peek() == '"') {
    field = read_quoted();
    if (peek() == '\r') take();
    if (!ends(peek())) problem = "text after a quoted field; double the quotes inside of it";
  }
  std::string plain;
  for (int c = peek(); !ends(c); c = peek()) {
    plain.push_back(static_cast<char>(c));
    take();
    if (size_ >= kMaxLine) {
      throw input_error("{}:{}: a row of more than 48 MiB", bytes_.name(), record_line_);
    }
  }
  if (peek() != delimiter_ && plain.ends_with('\r')) plain.pop_back();
  if (!field && !plain.empty()) field = std::move(plain);
  return field;
}

bool CsvReader::read_record(std::vector<Field>& fields, std::string& problem) {
  while (true) {
    fields.clear();
    problem.clear();
    record_line_ = line_;
    size_ = 0;
    if (peek() < 0) return false;
    while (true) {
      fields.push_back(read_field(problem));
      if (peek() != delimiter_) break;
      take();
      if (fields.size() == kMostColumns) {
        throw input_error("{}:{}: more than 10000 columns", bytes_.name(), record_line_);
      }
    }
    if (peek() == '\n') take();
    if (fields.size() > 1 || fields[0]) return true;
  }
}

bool CsvReader::next(RawRow& row) {
  std::vector<Field> fields;
  row.problem.clear();
  if (names_.empty() || !read_record(fields, row.problem)) return false;
  row.line = record_line_;
  row.text.clear();
  if (row.problem.empty() && fields.size() != names_.size()) {
    row.problem = fmt::format("expected {} fields, as the first line names, found {}",
                              names_.size(), fields.size());
  }
  JsonObject object;
  for (size_t i = 0; row.problem.empty() && i < fields.size(); ++i) {
    if (fields[i] && find_invalid_utf8(*fields[i]) != std::string::npos) {
      row.problem = names_[i] + ": invalid UTF-8";
    }
    object.emplace_back(names_[i], fields[i] ? Json(std::move(*fields[i])) : Json());
  }
  if (row.problem.empty()) row.text = Json(std::move(object)).dump();
  return true;
}

}  // namespace hearth
