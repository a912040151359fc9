// The part of a data row that comes before its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/chat/messages.h"
#include "data/rows/columns.h"
#include "data/rows/raw_rows.h"
#include "data/rows/row_converter.h"
#include "data/rows/rows.h"

namespace hearth {

/// One of the three.
struct PromptRow {
  std::optional<Chat> chat;
  std::string text;
  std::vector<int32_t> ids;
};

/// Reads the rows of training (docs/text.md), whose answer may be missing: `completion` and `output`
/// are ignored. A chat may still end with a turn of the assistant. A `text` or a plain text file is a
/// prompt as a whole, and so are `input_ids`. BadRow for anything else.
PromptRow prompt_of_row(const RawRow& row, const std::vector<Column>& columns, RowFormat format);

}  // namespace hearth
