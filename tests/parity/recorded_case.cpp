#include "parity/recorded_case.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/file_ops.h"
#include "checkpoint/safetensors.h"
#include "support/test_paths.h"

namespace hearth::test {

namespace {

template <class T>
Elements widen(const std::string& bytes) {
  Elements elements;
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + i, sizeof(T));
    if constexpr (std::is_same_v<T, float>) {
      elements.push_back(x);
    } else {
      elements.push_back(to_float(x));
    }
  }
  return elements;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

std::vector<RecordedCase> cases_in(const char* variable, const std::string& folder) {
  const char* other = std::getenv(variable);
  const std::string root = other ? other : folder;
  const char* devices = std::getenv("HEARTH_TEST_DEVICES");
  std::vector<RecordedCase> cases;
  for (const std::string& name : list_directory(root)) {
    RecordedCase c;
    c.name = name;
    c.directory = root + "/" + name;
    if (file_info(c.directory).kind != FileKind::directory) continue;
    const auto json = [&](const std::string& file) {
      return parse_json(read_file(c.directory + "/" + file), file);
    };
    const Json settings = json("case.json");
    c.options = *settings.find("train");
    if (const Json* lora = settings.find("lora")) c.lora = *lora;
    c.expected = json("expected.json");
    c.tensors = read_tensors(c.directory + "/expected.safetensors");
    c.devices = devices ? devices : "";
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

std::map<std::string, Elements> read_tensors(const std::string& path) {
  std::map<std::string, Elements> tensors;
  const SafetensorsFile file(path);
  for (const SafetensorsEntry& entry : file.header().entries) {
    std::string bytes(entry.end - entry.begin, '\0');
    file.read(entry, bytes.data(), bytes.size(), 0);
    Elements& elements = tensors[entry.name];
    if (entry.dtype == "F32") elements = widen<float>(bytes);
    if (entry.dtype == "BF16") elements = widen<bf16>(bytes);
    if (entry.dtype == "F16") elements = widen<f16>(bytes);
  }
  return tensors;
}

std::map<std::string, Elements> read_directory_tensors(const std::string& directory) {
  std::map<std::string, Elements> tensors;
  for (const std::string& name : list_directory(directory)) {
    if (name.ends_with(".safetensors")) tensors.merge(read_tensors(directory + "/" + name));
  }
  return tensors;
}

std::vector<std::string> RecordedCase::flags(const std::vector<std::string>& names) const {
  std::vector<std::string> words;
  for (const std::string& option : names) {
    const Json* value = options.find(option);
    if (!value || value->is_null()) continue;
    std::string flag = "--" + option;
    for (char& c : flag) {
      if (c == '_') c = '-';
    }
    words.push_back(flag);
    words.push_back(text_of(*value));
  }
  return words;
}

std::vector<RecordedCase> recorded_cases() {
  return cases_in("HEARTH_PARITY_CASES", test_data("/parity"));
}

std::vector<RecordedCase> recorded_lora_cases() {
  return cases_in("HEARTH_LORA_CASES", test_data("/lora"));
}

double relative_error(const Elements& a, const Elements& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

double relative_error(double a, double b) { return a == b ? 0 : std::abs(a - b) / std::abs(b); }

}  // namespace hearth::test
