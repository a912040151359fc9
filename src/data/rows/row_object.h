// A raw row as the JSON object whose fields are read.
#pragma once

#include <vector>

#include "base/json.h"
#include "data/rows/columns.h"
#include "data/rows/raw_rows.h"
#include "data/rows/row_fields.h"

namespace hearth {

/// A row with its fields in place.
struct RowObject {
  Json json;
  RowFormat format = RowFormat::automatic;
};

/// Parses a row, renames its columns and finds its format. Lists that tables keep as JSON texts
/// (messages, conversations, input_ids, labels) become lists. BadRow for text that is not JSON, for a
/// row that the source could not read, for preference rows, and as detect_format says.
RowObject read_row_object(const RawRow& row, const std::vector<Column>& columns, RowFormat format,
                          RowPart part);

}  // namespace hearth
