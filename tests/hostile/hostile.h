// Hostile files, one table row each, given to the built program: a good model directory and data are
// laid out, one thing is made wrong, and the program must refuse it as docs/errors.md says.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "support/temporary_directory.h"

namespace hearth::test {

/// config.json as keys and raw values: texts that no JSON library would write can stand there.
using RawConfig = std::vector<std::pair<std::string, std::string>>;
RawConfig good_config();
std::string config_text(const RawConfig& config);
/// One key with another raw value; "" takes the key out.
std::string config_with(const std::string& key, const std::string& raw);

/// The place of a case: model/ (config.json, model.safetensors, tokenizer.json,
/// tokenizer_config.json), rows.jsonl and run.yaml, all good.
struct Place {
  TemporaryDirectory directory;
  Place();
  std::string path(const std::string& name) const { return directory / name; }
  void write(const std::string& name, std::string_view bytes) const;
  std::string read(const std::string& name) const;
  void remove(const std::string& name) const;
  void link(const std::string& target, const std::string& name) const;
  void fifo(const std::string& name) const;
  void socket(const std::string& name) const;
  /// A file of so many bytes, a hole behind `head`.
  void sparse(const std::string& name, std::string_view head, uint64_t bytes) const;
  /// The model's weights as two shards and an index (with `change` applied to its text).
  void shard(const std::function<void(std::string& index)>& change = {}) const;
  /// The header of model.safetensors as JSON; the data stay.
  void change_header(const std::function<void(Json& header)>& change) const;
};

/// The bytes of a safetensors file with this header and these data.
std::string raw_safetensors(std::string_view header, std::string_view data);

struct Outcome {
  int code = -1;  // 128 + signal
  std::string out, err;
  double cpu_s = 0;
  uint64_t peak_bytes = 0;
};

/// Runs the program in the place; ended after a minute (code 124). `input` becomes its stdin.
Outcome run_in(const Place& place, const std::vector<std::string>& words,
               const std::string& input = "/dev/null");

struct Case {
  std::string name;
  std::function<void(const Place&)> plant;
  std::vector<std::string> says;  // parts of the line: the file, and what in it
  int code = 3;
};

/// Runs a table; each row must be refused with its code and one line that says its words, quotes at
/// most 200 characters and no control characters, within time and memory. Rows with code 0 must be
/// accepted. `words`: the command. Prints how many there were.
void run_table(const std::string& title, const std::vector<Case>& table,
               const std::vector<std::string>& words, const std::string& input = "/dev/null");

/// What every reader of a file must refuse, whatever it holds: pointer, pickle, FIFO, ...
std::vector<Case> not_a_file(const std::string& file);

/// eval of model/ with rows.jsonl: opens everything.
std::vector<std::string> eval_words();

}  // namespace hearth::test
