// hearth init: a random checkpoint from a config.json.
#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "base/paths.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_init.h"
#include "commands/commands.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "model/family.h"
#include "train/signals.h"

namespace hearth {
namespace {

/// A directory with the built-in tokenizer, beside the checkpoint while that is made.
class BuiltinTokenizerDirectory {
 public:
  explicit BuiltinTokenizerDirectory(const std::string& checkpoint)
      : path_(without_trailing_slashes(checkpoint) + ".tmp-tokenizer") {
    remove_tree(path_);  // of a process that was killed
    make_directory(path_);
    write_builtin_tokenizer(path_);
  }
  ~BuiltinTokenizerDirectory() {
    try {
      remove_tree(path_);
    } catch (const Error&) {  // the error that made the command fail, if any, is the one to report
    }
  }
  BuiltinTokenizerDirectory(const BuiltinTokenizerDirectory&) = delete;
  BuiltinTokenizerDirectory& operator=(const BuiltinTokenizerDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void check_vocabulary(const std::string& config_path) {
  const Json config = parse_json(read_file(config_path, uint64_t{16} << 20), config_path);
  const Json* vocabulary = config.find("vocab_size");
  if (vocabulary && vocabulary->is_signed() && vocabulary->as_int() < kBuiltinVocabulary) {
    throw input_error(
        "{}: vocab_size: expected at least {}, the size of the built-in tokenizer, found {}; raise "
        "it or "
        "give another tokenizer with --tokenizer",
        config_path, kBuiltinVocabulary, vocabulary->as_int());
  }
}

}  // namespace

ExitCode run_init(const Options& options) {
  const StopSignals signals;  // what is half written does not stay beside --out
  if (!options.tokenizer.empty()) {
    init_checkpoint(options.model_config, options.out, options.seed, options.tokenizer);
  } else {
    check_vocabulary(options.model_config);
    const BuiltinTokenizerDirectory tokenizer(options.out);
    init_checkpoint(options.model_config, options.out, options.seed, tokenizer.path());
  }
  Console console(console_settings(options));
  console.note("wrote a random checkpoint to " + options.out);
  return ExitCode::done;
}

}  // namespace hearth
