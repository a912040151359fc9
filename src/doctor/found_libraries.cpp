#include "doctor/found_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "base/utf8.h"

namespace hearth {
namespace {

/// A loaded library. Closed at the end of the program: some do not bear to be closed.
struct Loaded {
  void* handle = nullptr;
  std::string file;

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle, name));
  }
};

std::optional<Loaded> load_first(std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (void* handle = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL)) return Loaded{handle, file};
  }
  return std::nullopt;
}

// The first line of a text, without control characters.
std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; });
  text.resize(text.find_last_not_of(' ') + 1);
  return replace_invalid_utf8(text);
}

constexpr int kSuccess = 0;  // of MPI and of NCCL

}  // namespace

std::string nccl_version(int number) {
  const int unit = number < 10000 ? 1000 : 10000;
  return std::to_string(number / unit) + "." + std::to_string(number % unit / 100) + "." +
         std::to_string(number % 100);
}

std::optional<FoundLibrary> find_mpi() {
  // Open MPI 2 to 5, MPICH and its kin, and the name of a development package.
  const auto loaded =
      load_first({"libmpi.so.40", "libmpi.so.20", "libmpi.so.12", "libmpich.so.12", "libmpi.so"});
  if (!loaded) return std::nullopt;
  FoundLibrary found{loaded->file, {}};
  if (auto* version = loaded->find<int(char*, int*)>("MPI_Get_library_version")) {
    std::vector<char> text(16384, '\0');  // more than any MPI_MAX_LIBRARY_VERSION_STRING
    int length = 0;
    if (version(text.data(), &length) == kSuccess) found.version = first_line(text.data());
  }
  return found;
}

std::optional<FoundLibrary> find_nccl() {
  const auto loaded = load_first({"libnccl.so.2", "libnccl.so"});
  if (!loaded) return std::nullopt;
  FoundLibrary found{loaded->file, {}};
  int number = 0;
  if (auto* version = loaded->find<int(int*)>("ncclGetVersion");
      version != nullptr && version(&number) == kSuccess) {
    found.version = nccl_version(number);
  }
  return found;
}

}  // namespace hearth
