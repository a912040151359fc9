#include "peft/names.h"

#include "base/error.h"
#include "base/json.h"

namespace hearth {
namespace {

std::unordered_map<std::string, int64_t> read_ranks(const std::string& text,
                                                    const std::string& where) {
  const Json ranks = parse_json(text, where);
  if (!ranks.is_object()) throw input_error(where + ": expected an object");
  std::unordered_map<std::string, int64_t> by_name;
  for (const auto& [name, rank] : ranks.as_object()) {
    if (!rank.is_signed() || rank.as_int() < 0) {
      throw input_error(where + ": " + quoted(name) + ": expected a rank");
    }
    by_name.emplace(name, rank.as_int());
  }
  return by_name;
}

}  // namespace

AdapterNotes::AdapterNotes(const SafetensorsHeader& header, const std::string& source) {
  for (const auto& [key, value] : header.metadata) {
    const std::string where = source + ": metadata " + key;
    if (key == kBaseNote || key == kContentNote) {
      std::optional<Digest>& digest = key == kBaseNote ? base : content;
      digest = Digest::from_hex(value);
      if (!digest) throw input_error(where + ": expected a digest, found " + quoted(value));
    } else if (key == kRanksNote) {
      ranks = read_ranks(value, where);
    } else if (key == kGateUpNote) {
      if (value != kBlockDiagonal) {
        throw input_error(where + " is " + quoted(value) + ", expected " + kBlockDiagonal);
      }
      block_diagonal = true;
    }
  }
}

}  // namespace hearth
