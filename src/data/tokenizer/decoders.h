// The decoder of tokenizer.json: turns tokens into text, in streaming stages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/text_room.h"

namespace hearth {

/// A part of a token between two stages. Fuse and ByteLevel join all input to one long token, and
/// pass its parts on at once. Each part consists of whole UTF-8 characters.
struct TokenPart {
  std::string_view text;
  bool begins = true;  // this part begins a token
  bool ends = true;
};

/// One stage at work on one text.
class DecodeStage {
 public:
  using Sink = std::function<void(TokenPart)>;

  DecodeStage() = default;
  DecodeStage(const DecodeStage&) = delete;
  DecodeStage& operator=(const DecodeStage&) = delete;
  virtual ~DecodeStage() = default;

  virtual void push(TokenPart part, const Sink& out) = 0;
  virtual void finish(const Sink&) {}
};

/// Supports ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, BPEDecoder, and Sequences of
/// them; null puts a space between tokens. Immutable: threads may share it.
class Decoder {
 public:
  /// Reads the value of `decoder`; `source` names the file in messages. Input error for an unknown
  /// component or key.
  Decoder(const Json& description, const std::string& source);

  /// Decodes one text; the decoder must outlive it. Input error if the text expands too much.
  class Run {
   public:
    explicit Run(const Decoder& decoder);
    std::string push(std::string_view token);
    std::string finish();

   private:
    void give(size_t stage, TokenPart part, std::string& text);
    TextRoom room_;
    std::vector<std::unique_ptr<DecodeStage>> stages_;
  };

 private:
  using MakeStage = std::function<std::unique_ptr<DecodeStage>(TextRoom&)>;
  void add(const Json& description, const std::string& where);

  std::string where_;
  std::vector<MakeStage> stages_;
};

}  // namespace hearth
