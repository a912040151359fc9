// Results carry the chat template that they were trained with.
#include <algorithm>

#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

const char* const kTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant|{% endif %}\n";

/// A base with templates of its own, chats, and a template of the user's.
struct Chats : Workplace {
  Chats() {
    write(
        d / "chats.jsonl",
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
        "\n");
    write(d / "q.json", R"([{"role": "user", "content": "a"}])");
    write(d / "mine.jinja", kTemplate);
  }
  /// Replaces the base's template; numbers that no double holds must survive.
  void base_template(const std::string& value) const {
    write(d / "model/tokenizer_config.json",
          "{\"model_max_length\": 1000000000000000019884624838656,\n \"eos_token\": "
          "\"<|im_end|>\"" +
              (value.empty() ? "" : ",\n \"chat_template\": " + value) + "}\n");
  }
  std::vector<std::string> chat_train(const std::string& out,
                                      std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
        "train",   "--model", d / "model", "--data", d / "chats.jsonl", "--out", d / out,
        "--steps", "2",       "--seq-len", "64",     "--threads",       "1",     "--grad-accum",
        "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void must(const std::vector<std::string>& words) const {
    const ProgramResult r = run(words);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
  }
  /// Of a result, as readers of either file find it; "" where they differ.
  std::string carried(const std::string& result) const {
    const Json config = parse_json(content(d / (result + "/tokenizer_config.json")), "config");
    const Json* in_config = config.find("chat_template");
    if (in_config == nullptr || !in_config->is_string()) return "";
    const std::string file = content(d / (result + "/chat_template.jinja"));
    return file == in_config->as_string() ? file : "";
  }
};

}  // namespace

TEST_CASE("results carry the template of --chat-template: by name, by file, over any of the base") {
  const Chats w;
  const std::string list =
      R"([{"name": "default", "template": "old"}, {"name": "tool_use", "template": "old tools"}])";
  int number = 0;
  for (const std::string& base : {std::string(), std::string("\"old\""), list}) {
    w.base_template(base);
    fs::create_directories(w.d / "model/additional_chat_templates");
    write(w.d / "model/additional_chat_templates/rag.jinja", "old rag");
    if (base.empty()) fs::remove_all(w.d / "model/additional_chat_templates");
    for (const std::string& method : {std::string("full"), std::string("lora")}) {
      const std::string run = "run" + std::to_string(number++);
      INFO(base << " " << method);
      const std::vector<std::string> words =
          w.chat_train(run, {"--chat-template", w.d / "mine.jinja", "--method", method});
      w.must(words);
      const std::string result = run + (method == "full" ? "/model" : "/adapter");
      CHECK(w.carried(result) == kTemplate);
      CHECK_FALSE(fs::exists(w.d / (result + "/additional_chat_templates")));
      const std::string config = content(w.d / (result + "/tokenizer_config.json"));
      CHECK(config.find("1000000000000000019884624838656") != std::string::npos);
      CHECK(config.find("old") == std::string::npos);
      // From saved state: the bytes of the result, though the file of the template is gone.
      fs::rename(w.d / "mine.jinja", w.d / "moved.jinja");
      w.must({"export", "--from-state", w.d / run, "--out", w.d / (run + "-e")});
      fs::rename(w.d / "moved.jinja", w.d / "mine.jinja");
      const auto made = files_below(w.d / result), exported = files_below(w.d / (run + "-e"));
      for (const auto& [name, text] : made) {
        if (name != "README.md") CHECK(exported.at(name) == text);
      }
      CHECK(exported.size() == made.size());
      // A result that is written again has it, too.
      fs::remove_all(w.d / result);
      w.must(words);
      CHECK(w.carried(result) == kTemplate);
    }
  }
  w.base_template("");
  w.must(w.chat_train("named", {"--chat-template", "chatml"}));
  CHECK(w.carried("named/model").find("<|im_start|>") != std::string::npos);
  w.base_template(list);
  fs::remove_all(w.d / "model/additional_chat_templates");  // would come before the list
  w.must(w.chat_train("of-list", {"--chat-template", "tool_use", "--train-on", "all"}));
  CHECK(w.carried("of-list/model") == "old tools");
}

TEST_CASE(
    "template args: tokenize, train, the result and generate use them; a resume compares them") {
  const Chats w;
  const char* const thinks =
      "{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}<|im_end|>{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant|"
      "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
      "{% endif %}";
  w.base_template(Json(thinks).dump());
  const std::vector<std::string> off{"--template-args", "enable_thinking=false"};
  for (const std::string& method : {std::string("full"), std::string("lora")}) {
    const std::string run = "run-" + method;
    const auto words = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--method", method});
      return w.chat_train(run, more);
    };
    w.must(words(off));
    CHECK(
        content(w.d / (run + "/config.yaml")).find("template-args: [\"enable_thinking=false\"]") !=
        std::string::npos);
    const std::string result = run + (method == "full" ? "/model" : "/adapter");
    const std::string carried = w.carried(result);
    CHECK(carried.find("enable_thinking | default(false)") != std::string::npos);
    CHECK(carried.ends_with(thinks));
    CHECK(one_line(w.run(words({"--quiet"})), 2, "--template-args was"));
    w.must({"export", "--from-state", w.d / run, "--out", w.d / (run + "-e")});
    CHECK(w.carried(run + "-e") == carried);
  }
  // The result prompts as it was trained, without the option; the option still wins.
  const auto prompt = [&](const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "--model", w.d / model, "--messages", w.d / "q.json",
                               "--max-new-tokens", "1"});
    const std::string err = w.run(more).err;
    const size_t at = err.find("the prompt has ") + 15;
    return err.substr(at, err.find(' ', at) - at);
  };
  const std::string thinking = prompt("model", {});
  CHECK(prompt("model", off) != thinking);
  CHECK(prompt("run-full/model", {}) == prompt("model", off));
  CHECK(prompt("run-full/model", {"--template-args", "enable_thinking=true"}) == thinking);
  const auto tokenized = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"tokenize", "--model", w.d / "model", "--data", w.d / "chats.jsonl", "--json"});
    return w.run(more).out;
  };
  w.base_template(Json("{{ who }}" + std::string(thinks)).dump());
  CHECK(tokenized({"--template-args", "who=me"}).find("\"text\": \"me<|im_start|>") !=
        std::string::npos);
  CHECK(tokenized({}).find("\"text\": \"<|im_start|>") != std::string::npos);
}

TEST_CASE("results without --chat-template carry the files of the base") {
  const Chats w;
  const std::string before = content(w.d / "model/tokenizer_config.json");
  w.must(w.chat_train("run"));
  CHECK(content(w.d / "run/model/tokenizer_config.json") == before);
  CHECK_FALSE(fs::exists(w.d / "run/model/chat_template.jinja"));
}

TEST_CASE("a template that was changed since the start is not carried; resumed, it is refused") {
  const Chats w;
  w.base_template("");
  const std::vector<std::string> words =
      w.chat_train("run", {"--chat-template", w.d / "mine.jinja"});
  w.must(words);
  write(w.d / "mine.jinja", std::string("{# the same text, another file #}") + kTemplate);
  CHECK(one_line(w.run(words), 3, "mine.jinja"));
  CHECK(w.carried("run/model") == kTemplate);
}

TEST_CASE("generate and merge use the template that an adapter carries") {
  const Chats w;
  w.base_template("");
  w.must(w.chat_train("run", {"--chat-template", w.d / "mine.jinja", "--method", "lora"}));
  const auto generate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "--messages", w.d / "q.json", "--max-new-tokens", "2"});
    return w.run(more);
  };
  CHECK(one_line(generate({"--model", w.d / "model"}), 3, "no chat template"));
  const ProgramResult with = generate({"--model", w.d / "model", "--adapter", w.d / "run/adapter"});
  INFO(with.err);
  CHECK(with.exit_code == 0);
  w.must({"export", "--model", w.d / "model", "--adapter", w.d / "run/adapter", "--out",
          w.d / "merged"});
  CHECK(w.carried("merged") == kTemplate);
  CHECK(generate({"--model", w.d / "merged"}).exit_code == 0);
  // Trained on, the adapter keeps it.
  w.must(w.chat_train("more", {"--method", "lora", "--adapter", w.d / "run/adapter"}));
  CHECK(w.carried("more/adapter") == kTemplate);
}

TEST_CASE("adapters of a hub model name it as the user did, not by where the cache is") {
  const Workplace w;
  const std::string repository = w.d / "hub/models--some-org--Tiny.MoE";
  fs::create_directories(repository + "/refs");
  fs::create_directories(repository + "/snapshots");
  write(repository + "/refs/main", "abc123\n");
  fs::rename(w.d / "model", repository + "/snapshots/abc123");
  ::setenv("HF_HUB_CACHE", (w.d / "hub").c_str(), 1);
  const auto train = [&](const std::string& model, const std::string& out) {
    std::vector<std::string> words = w.train(out, {"--method", "lora", "--verbose"});
    words[2] = model;
    return w.run(words);
  };
  for (const auto& [model, revision] :
       {std::pair<std::string, std::string>("some-org/Tiny.MoE", ""),
        std::pair<std::string, std::string>("some-org/Tiny.MoE@abc123", "abc123")}) {
    const std::string run = revision.empty() ? "main" : "revised";
    const ProgramResult r = train(model, run);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    const Json config =
        parse_json(content(w.d / (run + "/adapter/adapter_config.json")), "adapter_config.json");
    CHECK(config.find("base_model_name_or_path")->as_string() == "some-org/Tiny.MoE");
    CHECK(config.find("revision")->dump() == (revision.empty() ? "null" : Json(revision).dump()));
    const std::string card = content(w.d / (run + "/adapter/README.md"));
    CHECK(card.find("base_model: \"some-org/Tiny.MoE\"\n") != std::string::npos);
    for (const auto& [name, text] : files_below(w.d / (run + "/adapter"))) {
      INFO(name);
      CHECK(text.find("snapshots") == std::string::npos);
      CHECK(text.find(w.d.path()) == std::string::npos);
    }
    CHECK(r.err.find("from_pretrained(\"some-org/Tiny.MoE\"") != std::string::npos);
    // State keeps the name, over a resume and in an export.
    const auto made = content(w.d / (run + "/adapter/adapter_config.json"));
    fs::remove_all(w.d / (run + "/adapter"));
    REQUIRE(train(model, run).exit_code == 0);
    CHECK(content(w.d / (run + "/adapter/adapter_config.json")) == made);
    for (const bool named : {false, true}) {
      fs::remove_all(w.d / "e");
      std::vector<std::string> words{"export", "--from-state", w.d / run, "--out", w.d / "e"};
      if (named) words.insert(words.end(), {"--model", model});
      REQUIRE(w.run(words).exit_code == 0);
      CHECK(content(w.d / "e/adapter_config.json") == made);
    }
  }
  ::unsetenv("HF_HUB_CACHE");
}
