#include "hostile/hostile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/sanitized.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

// Beyond a run that refuses at once: 100 ms and room for a busy machine; 64 MiB, a piece of a
// file and what unpacks it. Then what is in proportion to the file, of which no more than 64 MiB are read before.
constexpr double kSeconds = 0.25;
constexpr uint64_t kBytes = uint64_t{68} << 20;
constexpr uint64_t kRead = uint64_t{64} << 20;
constexpr double kSecondsAByteRead = 10e-9, kSecondsAByteHeld = 100e-9;  // as a JSON tree
constexpr uint64_t kBytesAByte = 8;

constexpr const char* kLfs =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

/// The program's own model, made once.
const std::string& base_model() {
  static const TemporaryDirectory directory;
  static const std::string model = [] {
    write_file(directory / "config.json", config_text(good_config()));
    const std::string command = "'" HEARTH_BINARY "' init --quiet --seed 7 --config '" +
                                directory.path() + "/config.json' --out '" + directory.path() +
                                "/model' 2>/dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    return directory / "model";
  }();
  return model;
}

// One line; of a configuration a line a problem, each as the first.
bool is_one_line(const std::string& text) {
  const size_t end = text.find('\n');
  if (end != text.size() - 1 && end != std::string::npos && text.starts_with("hearth: ")) {
    return is_one_line(text.substr(0, end + 1)) && is_one_line(text.substr(end + 1));
  }
  return text.starts_with("hearth: ") && text.find('\n') == text.size() - 1 &&
         std::none_of(text.begin(), text.end() - 1,
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// A run of one character says that a quotation was not cut.
size_t longest_run(const std::string& text) {
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    run = i > 0 && text[i] == text[i - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  return longest;
}

/// What a run costs that refuses before it opens anything.
const Outcome& smallest_run() {
  static const Outcome outcome = [] {
    const Place place;
    place.remove("model");
    return run_in(place, eval_words());
  }();
  return outcome;
}

/// Bytes of all files, and those that the disk holds of them.
std::pair<uint64_t, uint64_t> file_bytes(const Place& place) {
  uint64_t total = 0, held = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.directory.path())) {
    struct stat status;
    if (::lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      total += static_cast<uint64_t>(status.st_size);
      held += static_cast<uint64_t>(status.st_blocks) * 512;
    }
  }
  return {total, held};
}

void check_refusal(const Case& row, const Place& place, const Outcome& outcome) {
  CHECK(outcome.code == row.code);
  CHECK(is_one_line(outcome.err));
  CHECK(outcome.err.size() < (row.code == 2 ? 16'000 : 1200));  // 2: many problems at once
  CHECK(longest_run(outcome.err) <= 200);
  CHECK(outcome.out.empty());
  for (const std::string& word : row.says) {
    INFO("lacks: " << word);
    CHECK(outcome.err.find(word) != std::string::npos);
  }
  if (kSanitized) return;
  const auto [bytes, held] = file_bytes(place);
  const auto read = static_cast<double>(std::min(bytes, kRead));
  CHECK(outcome.cpu_s <= smallest_run().cpu_s + kSeconds + read * kSecondsAByteRead +
                             static_cast<double>(held) * kSecondsAByteHeld);
  CHECK(outcome.peak_bytes <= smallest_run().peak_bytes + kBytes + held * kBytesAByte);
}

}  // namespace

RawConfig good_config() {
  return {{"model_type", "\"qwen3_moe\""},
          {"vocab_size", "300"},
          {"hidden_size", "16"},
          {"num_hidden_layers", "2"},
          {"num_attention_heads", "2"},
          {"num_key_value_heads", "1"},
          {"head_dim", "8"},
          {"rms_norm_eps", "1e-6"},
          {"rope_theta", "10000.0"},
          {"max_position_embeddings", "64"},
          {"num_experts", "4"},
          {"num_experts_per_tok", "2"},
          {"moe_intermediate_size", "8"},
          {"norm_topk_prob", "true"},
          {"router_aux_loss_coef", "0.001"},
          {"torch_dtype", "\"float32\""}};
}

std::string config_text(const RawConfig& config) {
  std::string text = "{";
  for (const auto& [key, raw] : config) {
    text += (text.size() > 1 ? ",\n\"" : "\n\"") + key + "\": " + raw;
  }
  return text + "}\n";
}

std::string config_with(const std::string& key, const std::string& raw) {
  RawConfig config = good_config();
  std::erase_if(config, [&](const auto& member) { return member.first == key; });
  if (!raw.empty()) config.emplace_back(key, raw);
  return config_text(config);
}

Place::Place() {
  fs::copy(base_model(), path("model"));
  write("rows.jsonl", "{\"input_ids\": [1, 2, 3, 4]}\n{\"text\": \"ab\"}\n");
  write("run.yaml", "model: model\ndata: rows.jsonl\nout: run\nsteps: 1\nseq-len: 8\n");
}

void Place::write(const std::string& name, std::string_view bytes) const {
  write_file(path(name), bytes);
}
std::string Place::read(const std::string& name) const { return content(path(name)); }
void Place::remove(const std::string& name) const { fs::remove_all(path(name)); }
void Place::link(const std::string& target, const std::string& name) const {
  fs::remove_all(path(name));
  fs::create_symlink(target, path(name));
}
void Place::fifo(const std::string& name) const {
  fs::remove_all(path(name));
  REQUIRE(::mkfifo(path(name).c_str(), 0600) == 0);
}

void Place::socket(const std::string& name) const {
  fs::remove_all(path(name));
  // The path of a socket is short: bound by a link to its directory.
  const TemporaryDirectory near;
  fs::create_directory_symlink(fs::path(path(name)).parent_path(), near / "d");
  const std::string at = near / ("d/" + fs::path(name).filename().string());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(at.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, at.c_str(), at.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
}

void Place::sparse(const std::string& name, std::string_view head, uint64_t bytes) const {
  fs::remove_all(path(name));
  write(name, head);
  fs::resize_file(path(name), bytes);
}

void Place::shard(const std::function<void(std::string&)>& change) const {
  const std::string file = read("model/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const Json header = parse_json(std::string_view(file).substr(8, length), "header");
  const std::string data = file.substr(8 + length);
  JsonObject map;
  for (const char half : {'1', '2'}) {
    const std::string name = std::string("model-0000") + half + "-of-00002.safetensors";
    JsonObject entries;
    std::string bytes;
    size_t i = 0;
    for (const auto& [tensor, entry] : header.as_object()) {
      if (tensor == "__metadata__" || (i++ % 2 == 0) != (half == '1')) continue;
      const auto& offsets = entry.find("data_offsets")->as_array();
      const uint64_t begin = offsets[0].as_uint(), size = offsets[1].as_uint() - begin;
      Json placed = entry;
      placed["data_offsets"] = JsonArray{uint64_t{bytes.size()}, uint64_t{bytes.size() + size}};
      bytes += data.substr(begin, size);
      entries.emplace_back(tensor, placed);
      map.emplace_back(tensor, name);
    }
    write("model/" + name, raw_safetensors(Json(entries).dump(), bytes));
  }
  remove("model/model.safetensors");
  std::string index =
      Json(JsonObject{{"metadata", JsonObject{}}, {"weight_map", std::move(map)}}).dump(1);
  if (change) change(index);
  write("model/model.safetensors.index.json", index);
}

void Place::change_header(const std::function<void(Json&)>& change) const {
  const std::string file = read("model/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  Json header = parse_json(std::string_view(file).substr(8, length), "header");
  change(header);
  write("model/model.safetensors", raw_safetensors(header.dump(), file.substr(8 + length)));
}

std::string raw_safetensors(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out.append(header).append(data);
}

Outcome run_in(const Place& place, const std::vector<std::string>& words,
               const std::string& input) {
  std::vector<char*> arguments{const_cast<char*>(HEARTH_BINARY)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const TemporaryDirectory streams;
  const std::string out = streams / "out", err = streams / "err";
  const std::string in = input[0] == '/' ? input : place.path(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, place.directory.path().c_str());
  pid_t child = 0;
  // The system counts the peak of this process as the child's until it has memory of its own; so
  // forget what a test needed to pack its files.
  std::ofstream("/proc/self/clear_refs") << "5";
  REQUIRE(posix_spawn(&child, HEARTH_BINARY, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  int status = 0;
  rusage usage = {};
  bool late = false;
  while (::wait4(child, &status, late ? 0 : WNOHANG, &usage) == 0) {
    if (Clock::now() > deadline) {
      late = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Outcome outcome;
  outcome.code = late ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content(out);
  outcome.err = content(err);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  outcome.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return outcome;
}

void run_table(const std::string& title, const std::vector<Case>& table,
               const std::vector<std::string>& words, const std::string& input) {
  size_t accepted = 0;
  for (const Case& row : table) {
    const Place place;
    row.plant(place);
    const Outcome outcome = run_in(place, words, input);
    INFO(title << ": " << row.name << "\n" << outcome.err.substr(0, 2000));
    if (row.code == 0) {
      CHECK(outcome.code == 0);
      ++accepted;
    } else {
      check_refusal(row, place, outcome);
    }
  }
  std::printf("%s: %zu refused, %zu accepted\n", title.c_str(), table.size() - accepted, accepted);
}

std::vector<Case> not_a_file(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const auto with = [&](std::string_view bytes) {
    return [file, bytes = std::string(bytes)](const Place& place) { place.write(file, bytes); };
  };
  return {
      {"an un-pulled LFS pointer", with(kLfs), {name, "git lfs pull"}},
      {"a bare pickle", with(std::string_view("\x80\x02}q\x00.", 6)), {name, "pickle"}},
      {"torch's zip", with(std::string("PK\x03\x04") + std::string(400, '\0')), {name, "pickle"}},
      {"a FIFO", [=](const Place& p) { p.fifo(file); }, {name, "FIFO"}},
      {"a socket", [=](const Place& p) { p.socket(file); }, {name, "socket"}},
      {"a link to a device", [=](const Place& p) { p.link("/dev/zero", file); }, {name}},
      {"a directory",
       [=](const Place& p) {
         p.remove(file);
         fs::create_directory(p.path(file));
       },
       {name, "directory"}},
      {"a link to itself", [=](const Place& p) { p.link(name, file); }, {name}},
      {"a link to nothing", [=](const Place& p) { p.link("nowhere", file); }, {name}},
  };
}

std::vector<std::string> eval_words() {
  return {"eval",    "--quiet", "--json", "--threads", "1",
          "--model", "model",   "--data", "rows.jsonl"};
}

}  // namespace hearth::test
