// The post-processor of tokenizer.json: adds ids before and after a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// Supports TemplateProcessing (its `single`), BertProcessing, RobertaProcessing, ByteLevel (which
/// adds nothing), and Sequences of them; null adds nothing.
struct PostProcessor {
  std::vector<int32_t> before, behind;

  /// Reads the value of `post_processor`; `source` names the file in messages. Input error for an
  /// unknown component or key, and for a template that does not contain the text exactly once.
  PostProcessor(const Json& description, const std::string& source);

 private:
  void add(const Json& description, const std::string& where);
  void add_template(const Json& description, const std::string& where);
  void add_pair(const Json& description, const std::string& where);
};

}  // namespace hearth
