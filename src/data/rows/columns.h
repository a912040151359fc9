// --columns: which member of a row is read as which field.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace hearth {

/// A field that Hearth reads, and the member of a row that holds it.
struct Column {
  std::string field;
  std::string member;
};

/// Parses FIELD=COLUMN texts. Usage error for a text of another form, for a field that no row has,
/// and for a field or a column that is given twice.
std::vector<Column> parse_columns(const std::vector<std::string>& texts);

/// Renames the members of a row; a renamed one replaces a member of the field's name. BadRow naming
/// the column if the row does not have it. Does nothing to a row that is not an object.
void rename_columns(const std::vector<Column>& columns, const std::string& where, Json& row);

}  // namespace hearth
