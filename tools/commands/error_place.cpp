#include "commands/error_place.h"

#include <string>
#include <string_view>

namespace hearth {
namespace {

/// "--lora-targets" of "--lora-targets 'x': no tensor has such a name"; "" if it begins otherwise.
std::string_view flag_at_start(std::string_view message) {
  if (!message.starts_with("--")) return "";
  return message.substr(0, message.find_first_of(" :,="));
}

}  // namespace

Error error_at_place(const CommandLine& line, const Error& error) {
  const std::string_view message = error.what();
  const std::string_view flag = flag_at_start(message);
  for (const auto& [name, place] : line.places) {
    const bool as_flag = place.where.starts_with("--");
    if (!as_flag && !place.in_file) continue;  // a default of another trainer has no place
    if (flag == "--" + name) {
      return {error.code(), place.where + std::string(message.substr(flag.size()))};
    }
    if (as_flag) continue;  // a flag is in sight
    for (const std::string& text : place.texts) {
      if (!text.empty() && message.starts_with(text + ": ")) {
        return {error.code(), place.where + ": " + std::string(message)};
      }
    }
  }
  return error;
}

}  // namespace hearth
