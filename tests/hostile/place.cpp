#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hostile/hostile.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

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
    const std::string command = "'" + std::string(test_binary()) +
                                "' init --quiet --seed 7 --config '" + directory.path() +
                                "/config.json' --out '" + directory.path() + "/model' 2>/dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    return directory / "model";
  }();
  return model;
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

}  // namespace hearth::test
