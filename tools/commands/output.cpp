#include "commands/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace hearth {
namespace {

void check(bool written) {
  if (!written) {
    if (errno == EPIPE) throw ReaderGone();
    throw storage_error(std::string("standard output: cannot write: ") + std::strerror(errno));
  }
}

}  // namespace

void print(std::string_view text) {
  check(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void print_json(const Json& json) { print(json.dump(2) + "\n"); }

void print_at_once(std::string_view text) {
  print(text);
  flush_stdout();
}

void flush_stdout() { check(std::fflush(stdout) == 0 && std::ferror(stdout) == 0); }

}  // namespace hearth
