#include "record/json_log.h"

#include "base/error.h"

namespace hearth {

void JsonLog::append(const Json& line) {
  const std::string text = line.dump();
  try {
    file_.line(text);
  } catch (const Error&) {
    file_.line(text);
  }
}

}  // namespace hearth
