#include "data/tokenizer/decode_stages.h"

#include <charconv>
#include <optional>

#include "base/utf8.h"
#include "data/tokenizer/byte_alphabet.h"

namespace hearth {
namespace {

constexpr std::string_view kReplacement = "\ufffd";

std::string replace_all(std::string_view text, std::string_view old, std::string_view by) {
  std::string result;
  size_t at = 0;
  if (old.empty()) {  // stands before every character and at the end, as Rust has it
    for (; at < text.size(); at += std::max<size_t>(decode_utf8(text.substr(at)).length, 1)) {
      result.append(by).append(text.substr(at, decode_utf8(text.substr(at)).length));
    }
    return result.append(by);
  }
  for (size_t found; (found = text.find(old, at)) != std::string_view::npos;
       at = found + old.size()) {
    result.append(text.substr(at, found - at)).append(by);
  }
  return result.append(text.substr(at));
}

uint64_t growth(size_t now, size_t before) { return now > before ? now - before : 0; }

// Gathers the parts of a token for stages that look at whole ones.
class WholeTokens : public DecodeStage {
 public:
  void push(TokenPart part, const Sink& out) final {
    if (part.begins && part.ends) return token(part.text, out);
    gathered_ += part.text;
    if (!part.ends) return;
    const std::string whole = std::move(gathered_);
    gathered_.clear();
    token(whole, out);
  }

 protected:
  virtual void token(std::string_view text, const Sink& out) = 0;

 private:
  std::string gathered_;
};

class Join final : public WholeTokens {
  void token(std::string_view text, const Sink& out) override {
    if (!first_) out({" "});
    first_ = false;
    out({text});
  }
  bool first_ = true;
};

// One long token of all: parts go on as they come.
class OneToken : public DecodeStage {
 public:
  void finish(const Sink& out) override { out({"", !begun_, true}); }

 protected:
  void give(std::string_view text, const Sink& out) {
    if (text.empty()) return;
    out({text, !begun_, false});
    begun_ = true;
  }

 private:
  bool begun_ = false;
};

class Fuse final : public OneToken {
  void push(TokenPart part, const Sink& out) override { give(part.text, out); }
};

// How many bytes begin a character, as far as they go, and whether they are all of it.
struct Prefix {
  size_t length;
  bool whole;
};

Prefix character_prefix(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {0, false};
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, false};
    // Overlong forms, surrogates and what is above U+10FFFF show in the second byte.
    const uint8_t low = i > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = i > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < low || byte(i) > high) return {i, false};
  }
  return {size, true};
}

class ByteLevel final : public OneToken {
 public:
  void push(TokenPart part, const Sink& out) override {
    if (!part.begins || !part.ends) {  // behind another stage that fuses
      token_ += part.text;
      if (!part.ends) return;
      pending_ += bytes_of_alphabet(token_).value_or(token_);
      token_.clear();
    } else if (const auto bytes = bytes_of_alphabet(part.text)) {
      pending_ += *bytes;
    } else {
      pending_ += part.text;
    }
    give(take(false), out);
  }
  void finish(const Sink& out) override {
    give(take(true), out);
    OneToken::finish(out);
  }

 private:
  // What can be told; the begin of a character waits for more unless this is all.
  std::string take(bool all) {
    std::string text;
    std::string_view rest = pending_;
    while (!rest.empty()) {
      const Prefix prefix = character_prefix(rest);
      if (prefix.length == rest.size() && !prefix.whole && !all) break;
      text += prefix.whole ? rest.substr(0, prefix.length) : kReplacement;
      rest.remove_prefix(std::max<size_t>(prefix.length, 1));
    }
    pending_.erase(0, pending_.size() - rest.size());
    return text;
  }

  std::string token_;
  std::string pending_;
};

std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  if (token[3] == '+') token.remove_prefix(1);  // Rust's parser takes a sign
  unsigned value = 0;
  const char* begin = token.data() + 3;
  const char* end = token.data() + token.size() - 1;
  const auto [stopped, error] = std::from_chars(begin, end, value, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return static_cast<char>(value);
}

class ByteFallback final : public WholeTokens {
 public:
  void finish(const Sink& out) override {
    if (find_invalid_utf8(bytes_) == std::string_view::npos) {
      if (!bytes_.empty()) out({bytes_});
    } else {
      for (size_t i = 0; i < bytes_.size(); ++i) out({kReplacement});
    }
    bytes_.clear();
  }

 private:
  void token(std::string_view text, const Sink& out) override {
    if (const auto byte = fallback_byte(text)) {
      bytes_ += *byte;
      return;
    }
    finish(out);
    out({text});
  }
  std::string bytes_;
};

class Metaspace final : public WholeTokens {
 public:
  Metaspace(const std::string& mark, bool prefixed) : mark_(mark), prefixed_(prefixed) {}

 private:
  void token(std::string_view text, const Sink& out) override {
    out({replace_all(text, mark_, prefixed_ ? "" : " ")});
    prefixed_ = false;
  }
  std::string mark_;
  bool prefixed_;
};

class Replace final : public WholeTokens {
 public:
  Replace(const Matcher& matcher, const std::string& content, TextRoom& room)
      : matcher_(matcher), content_(content), room_(room) {}

 private:
  void token(std::string_view text, const Sink& out) override {
    std::string result;
    uint32_t done = 0;
    matcher_.for_each(text, [&](TextSpan match) {
      result.append(text.substr(done, match.begin - done));
      done = match.end;
      room_.require(growth(result.size() + content_.size(), done));
      result.append(content_);
    });
    result.append(text.substr(done));
    room_.take(growth(result.size(), text.size()));
    out({result});
  }
  const Matcher& matcher_;
  std::string content_;
  TextRoom& room_;
};

class Strip final : public DecodeStage {
 public:
  Strip(const std::string& content, uint32_t start, uint32_t stop)
      : content_(content), start_(start), stop_(stop) {}

 private:
  void push(TokenPart part, const Sink& out) override {
    if (part.begins) left_ = start_, held_ = 0, begins_ = true;
    std::string text;
    while (!part.text.empty()) {
      const bool is_content = part.text.starts_with(content_);
      const std::string_view next =
          part.text.substr(0, is_content ? content_.size() : decode_utf8(part.text).length);
      part.text.remove_prefix(next.size());
      if (is_content && left_ > 0) {
        --left_;
        continue;
      }
      left_ = 0;
      if (is_content && stop_ > 0) {  // may be at the end
        ++held_;
        continue;
      }
      for (; held_ > 0; --held_) text += content_;
      text += next;
    }
    for (; held_ > (part.ends ? stop_ : held_); --held_) text += content_;
    if (text.empty() && !part.ends) return;
    out({text, begins_, part.ends});
    begins_ = false;
  }
  std::string content_;
  uint32_t start_, stop_;
  uint32_t left_ = 0;  // of start_ in this token
  uint64_t held_ = 0;  // characters that are content at the end so far
  bool begins_ = true;
};

class Suffix final : public WholeTokens {
 public:
  Suffix(const std::string& suffix, TextRoom& room) : suffix_(suffix), room_(room) {}
  void finish(const Sink& out) override {
    if (last_) out({replace_all(*last_, suffix_, "")});
    last_.reset();
  }

 private:
  void token(std::string_view text, const Sink& out) override {
    if (last_) {
      const std::string spaced = replace_all(*last_, suffix_, " ");
      room_.take(growth(spaced.size(), last_->size()));
      out({spaced});
    }
    last_ = text;
  }
  std::string suffix_;
  TextRoom& room_;
  std::optional<std::string> last_;  // until it is known whether it is the last
};

}  // namespace

std::unique_ptr<DecodeStage> join_stage() { return std::make_unique<Join>(); }
std::unique_ptr<DecodeStage> byte_level_stage() { return std::make_unique<ByteLevel>(); }
std::unique_ptr<DecodeStage> byte_fallback_stage() { return std::make_unique<ByteFallback>(); }
std::unique_ptr<DecodeStage> fuse_stage() { return std::make_unique<Fuse>(); }

std::unique_ptr<DecodeStage> metaspace_stage(const std::string& mark, bool prefixed) {
  return std::make_unique<Metaspace>(mark, prefixed);
}

std::unique_ptr<DecodeStage> replace_stage(const Matcher& matcher, const std::string& content,
                                           TextRoom& room) {
  return std::make_unique<Replace>(matcher, content, room);
}

std::unique_ptr<DecodeStage> strip_stage(const std::string& content, uint32_t start,
                                         uint32_t stop) {
  return std::make_unique<Strip>(content, start, stop);
}

std::unique_ptr<DecodeStage> suffix_stage(const std::string& suffix, TextRoom& room) {
  return std::make_unique<Suffix>(suffix, room);
}

}  // namespace hearth
