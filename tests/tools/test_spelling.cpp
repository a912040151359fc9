// Another spelling of an unchanged path is no change of a run.
#include <unistd.h>

#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

/// Works in another directory while it lives.
class WorkIn {
 public:
  explicit WorkIn(const std::string& path) : before_(fs::current_path()) { fs::current_path(path); }
  ~WorkIn() { fs::current_path(before_); }
  WorkIn(const WorkIn&) = delete;
  WorkIn& operator=(const WorkIn&) = delete;

 private:
  fs::path before_;
};

}  // namespace

TEST_CASE("resume: paths spelled otherwise, relative, through links, with slashes") {
  const Workplace w;
  const auto train = [&](const std::string& model, const std::string& data,
                         const std::string& eval_data) {
    return w.run({"train", "--model", model, "--data", data, "--eval-data", eval_data, "--out",
                  w.d / "run", "--steps", "2", "--seq-len", "64", "--threads", "1"});
  };
  {
    const WorkIn here(w.d.path());
    REQUIRE(train("model", "rows.jsonl:2", "eval.jsonl").exit_code == 0);
  }
  const std::string result = w.d / "run/model";
  fs::create_directory_symlink(w.d / "model", w.d / "link");
  fs::create_directories(w.d / "deep/er");
  const auto goes_on = [&](const std::string& directory, const std::string& model,
                           const std::string& data, const std::string& eval_data) {
    const WorkIn there(directory);
    fs::remove_all(result);  // else nothing is left to do
    const ProgramResult r = train(model, data, eval_data);
    INFO(model << " " << data << ": " << r.err);
    CHECK(r.exit_code == 0);
    CHECK(r.err.find("changed since") == std::string::npos);
  };
  goes_on(w.d.path(), "model/", "./rows.jsonl:2", "model/../eval.jsonl");
  goes_on(w.d.path(), w.d / "model", w.d / "rows.jsonl:2", w.d / "eval.jsonl");
  goes_on("/", w.d / "link", w.d / "rows.jsonl:2.0", w.d / "eval.jsonl");
  goes_on(w.d / "deep/er", "../../link", "../../rows.jsonl:2", "../../eval.jsonl");

  // Another weight, another file and other content are changes as before.
  const WorkIn here(w.d.path());
  CHECK(one_line(train("model", "rows.jsonl:3", "eval.jsonl"), 2, "--data"));
  fs::copy_file("rows.jsonl", "copy.jsonl");
  CHECK(one_line(train("model", "copy.jsonl:2", "eval.jsonl"), 2, "--data"));
  write("eval.jsonl", "{\"text\": \"other\"}\n");
  CHECK(one_line(train("model", "rows.jsonl:2", w.d / "eval.jsonl"), 3, "eval.jsonl"));
}

TEST_CASE("positions beyond those of the model: a warning") {
  const Workplace w;  // made for 128
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word " + std::to_string(i) + " ";
  write(w.d / "long.jsonl", "{\"text\": \"" + text + "\"}\n");
  const auto eval = [&](const std::string& data, const std::string& length) {
    return w.run({"eval", "--model", w.d / "model", "--data", w.d / data, "--seq-len", length}).err;
  };
  const std::string warning = "made for 128 positions (max_position_embeddings)";
  CHECK(eval("rows.jsonl", "128").find(warning) == std::string::npos);
  CHECK(eval("rows.jsonl", "2048").find(warning) == std::string::npos);  // the default
  CHECK(eval("rows.jsonl", "256").find("--seq-len 256: the model was " + warning) !=
        std::string::npos);
  CHECK(eval("long.jsonl", "2048").find("the longest sequence has") != std::string::npos);
  std::vector<std::string> words = w.train("run");
  words[words.size() - 5] = "256";
  const ProgramResult trained = w.run(words);
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK(trained.err.find("warning: --seq-len 256: the model was " + warning) != std::string::npos);
  const auto generate = [&](const std::string& prompt, const std::string& more) {
    return w.run(
        {"generate", "--model", w.d / "model", "--prompt", prompt, "--max-new-tokens", more});
  };
  CHECK(generate("ab", "2").err.find(warning) == std::string::npos);
  const ProgramResult beyond = generate(text, "2");
  CHECK(beyond.exit_code == 0);
  CHECK(beyond.err.find("warning: the prompt has ") != std::string::npos);
  CHECK(beyond.err.find(warning) != std::string::npos);
}
