// Writes texts with a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "budget/placed_model.h"
#include "data/tokenizer/tokenizer.h"
#include "setup/config.h"
#include "setup/reporter.h"
#include "train/session.h"

namespace hearth {

/// A generated text.
struct Answer {
  std::string text;
  int64_t tokens = 0;  // generated, without the end token
  bool ended = false;  // by an end token or a stop text; else by --max-new-tokens
};

/// Receives each piece of new text: whole UTF-8 sequences.
using EmitText = std::function<void(const std::string&)>;

/// The model in memory, with a cache of keys and values that grows with the prompts. The answer to a
/// prompt does not depend on the prompts before it: each draws from the start of the seed's numbers,
/// and a prefix that the cache already holds has the same keys and values.
class TextGenerator {
 public:
  /// Opens the model and reads its tokenizer; reads no weight. `reporter` must outlive this. Input
  /// and usage errors as docs/errors.md says.
  TextGenerator(GenerateConfig config, Reporter& reporter);
  TextGenerator(const TextGenerator&) = delete;
  TextGenerator& operator=(const TextGenerator&) = delete;

  const Tokenizer& tokenizer() const { return tokenizer_; }

  /// Input error that starts with `where` for an id outside of the model's vocabulary, usage error
  /// for no id.
  void check_prompt(std::span<const int32_t> ids, const std::string& where) const;

  /// Makes room for a prompt of so many tokens and its answer. Plans and reads the weights at the
  /// first call, and again if the room must grow. Usage error if it does not fit into memory.
  void make_room(int64_t prompt_tokens);

  /// Makes room before the first prompt is known.
  void make_first_room();

  /// Continues a checked prompt; makes room for it. Numeric error if logits are not finite.
  Answer answer(std::span<const int32_t> prompt, const EmitText& emit);

 private:
  /// Logits of the last id. Computes what the cache does not hold.
  std::span<float> logits_after(std::span<const int32_t> ids);
  void warn_beyond(const std::string& what);

  GenerateConfig config_;
  Reporter& reporter_;
  std::shared_ptr<const OpenedModel> opened_;
  Tokenizer tokenizer_;
  std::vector<int64_t> ends_;
  std::optional<PlacedModel> model_;  // the session refers to it
  std::unique_ptr<Session> session_;
  int64_t room_ = 0;           // tokens
  int64_t decode_tokens_ = 0;  // most per call
  std::vector<int32_t> cached_;
  std::vector<float> logits_;
  bool warned_ = false;
};

}  // namespace hearth
