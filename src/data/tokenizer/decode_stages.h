// The stages of decoders.cpp. Each behaves like the component of the official library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer/decoders.h"
#include "data/tokenizer/matcher.h"
#include "data/tokenizer/text_room.h"

namespace hearth {

/// Puts a space between tokens, as the official library does without a decoder.
std::unique_ptr<DecodeStage> join_stage();
/// Decodes the byte-level alphabet over all tokens; invalid UTF-8 becomes U+FFFD.
std::unique_ptr<DecodeStage> byte_level_stage();
/// Decodes runs of tokens <0xNN> to bytes; a run of invalid UTF-8 becomes one U+FFFD per byte.
std::unique_ptr<DecodeStage> byte_fallback_stage();
std::unique_ptr<DecodeStage> fuse_stage();
/// Replaces `mark` by a space, and in the first token by nothing if `prefixed`.
std::unique_ptr<DecodeStage> metaspace_stage(const std::string& mark, bool prefixed);
/// Replaces matches by `content`. `room` bounds the output. `matcher` and `room` must outlive the
/// stage.
std::unique_ptr<DecodeStage> replace_stage(const Matcher& matcher, const std::string& content,
                                           TextRoom& room);
/// Strips up to `start` and `stop` copies of `content` from the ends of each token.
std::unique_ptr<DecodeStage> strip_stage(const std::string& content, uint32_t start, uint32_t stop);
/// Replaces the suffix that ends a word by a space, after the last token by nothing. `room` as
/// above.
std::unique_ptr<DecodeStage> suffix_stage(const std::string& suffix, TextRoom& room);

}  // namespace hearth
