// A main for fuzz targets without libFuzzer: runs every file of the folders and paths given, then
// mutations of them, or of nothing, drawn from a fixed seed; a target's own mutator takes part. The
// same inputs on every run.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                                                size_t most, unsigned seed);

namespace {

constexpr int kMutations = 2000;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> seeds(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    } else if (std::filesystem::exists(argv[i])) {
      paths.emplace_back(argv[i]);
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(read(path));
  return inputs;
}

// One to four edits: a byte changed, bytes cut, bytes repeated or bytes inserted.
std::string mutate(std::string text, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const size_t at = below(text.size() + 1);
    const size_t length = 1 + below(16);
    switch (below(4)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      default:
        for (size_t i = 0; i < length; ++i) text.insert(at, 1, static_cast<char>(random()));
    }
  }
  return text;
}

std::mt19937_64& own_random() {
  static std::mt19937_64 random(20240607);
  return random;
}

std::string mutated(const std::string& text, std::mt19937_64& random) {
  if (LLVMFuzzerCustomMutator == nullptr) return mutate(text, random);
  std::string room = text;
  room.resize(text.size() + 4096);
  room.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(room.data()), text.size(),
                                      room.size(), static_cast<unsigned>(random())));
  return room;
}

}  // namespace

// The engine's own mutation, for a target's mutator.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  const std::string changed =
      mutate({reinterpret_cast<const char*>(data), size}, own_random()).substr(0, most);
  changed.copy(reinterpret_cast<char*>(data), changed.size());
  return changed.size();
}

int main(int argc, char** argv) {
  std::vector<std::string> inputs = seeds(argc, argv);
  for (const auto& input : inputs) run(input);
  const size_t files = inputs.size();
  inputs.emplace_back();
  std::mt19937_64 random(20240607);
  for (int i = 0; i < kMutations; ++i) run(mutated(inputs[random() % inputs.size()], random));
  std::printf("%zu files and %d mutations replayed\n", files, kMutations);
  return 0;
}
