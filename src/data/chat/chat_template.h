// Chats as text: the Jinja template of a model, and its output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct TemplateOptions {
  std::string model;   // directory of tokenizer_config.json
  std::string choice;  // --chat-template: "chatml", the name of a template of the model, or a file
  std::string date;    // --template-date, YYYY-MM-DD; empty: today
  bool follow_links = false;  // in the model directory
  std::string adapter = {};   // directory whose templates are preferred to the model's; empty: none
  std::vector<std::string> args = {};  // --template-args, NAME=VALUE
};

/// The output of a template.
struct RenderedChat {
  std::string text;
  /// The contents of {% generation %} blocks, in order. `generated_hidden`: a block wrote into a
  /// macro or a variable, so its place in the text is unknown.
  std::vector<TextSpan> generated;
  bool generated_hidden = false;
  /// Per message: the text that the template's loop over the messages wrote for it. Empty if there
  /// is none, or if it is in several pieces.
  std::vector<TextSpan> turns;
};

/// A chat as values of the template language. Reused to render several prefixes of the chat. Not
/// thread-safe.
class ChatValues {
 public:
  /// `tools`: null for none. Input error that starts with `where` if values are nested too deep.
  ChatValues(std::span<const Json> messages, const Json& tools, const std::string& where);
  size_t messages() const;

 private:
  friend class ChatTemplate;
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// The template of a model, or several of them by name. Immutable: threads may share it.
///
/// Renders byte for byte what transformers' apply_chat_template does. Like it, drops null members
/// of messages. Templates are untrusted: no files; steps, depth and output are bounded. If a
/// template raises, is not understood or reaches a limit, throws an input error that starts with
/// `where` and names template and line.
class ChatTemplate {
 public:
  /// Takes the choice. Else searches the adapter's directory, then the model's, for
  /// chat_template.jinja and additional_chat_templates/*.jinja. Else takes chat_template of
  /// tokenizer_config.json, a text or a list of named templates. Input error if there is none,
  /// usage error for an unknown choice.
  explicit ChatTemplate(const TemplateOptions& options);
  /// One template from its text; `special_tokens` is an object ({"bos_token": "<s>", ...}).
  ChatTemplate(const std::string& source, const std::string& name, const Json& special_tokens,
               const std::string& date);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// `tools`: null for none. With tools, uses the template `tool_use` if there is one, else
  /// `default`. `steps`: the steps left for all renderings of a row; this call subtracts its own.
  RenderedChat render(std::span<const Json> messages, const Json& tools, bool add_generation_prompt,
                      const std::string& where, int64_t* steps = nullptr) const;
  /// Renders the first `count` messages of a chat.
  RenderedChat render(const ChatValues& chat, size_t count, bool add_generation_prompt,
                      const std::string& where, int64_t* steps = nullptr) const;

  /// Whether the template for rows with these tools has {% generation %} blocks.
  bool marks_generation(const Json& tools) const;

  /// Everything besides the chat that determines the text: templates, special tokens, and the date
  /// if a template uses it. Part of the key of cached rows.
  std::string identity() const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace hearth
