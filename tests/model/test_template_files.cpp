// Chat templates in a folder of their own, as files of a checkpoint.
#include <filesystem>

#include "checkpoint/checkpoint_init.h"
#include "checkpoint/checkpoint_write.h"
#include "model_fixtures.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

TEST_CASE("write: chat templates in their folder come along", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  const std::string folder = "/additional_chat_templates";
  make_checkpoint(small_config(), base);
  make_directory(base + folder);
  write_text(base + folder + "/tool_use.jinja", "{{ tools }}");
  write_text(base + folder + "/notes.txt", "no template");
  const auto before = Checkpoint(base).digests();
  {
    const Checkpoint checkpoint(base);
    OwnedTable stored(checkpoint, false);
    checkpoint.read_weights(stored.table, Pool(1));
    write_checkpoint(stored.table, checkpoint, result);
  }
  CHECK(read_text(result + folder + "/tool_use.jinja") == "{{ tools }}");
  CHECK(list_directory(result + folder).size() == 1);
  CHECK(Checkpoint(result).digests() == before);
  write_text(base + folder + "/tool_use.jinja", "{{ tools | length }}");
  CHECK(Checkpoint(base).digests() != before);  // another run

  fs::remove(base + folder + "/tool_use.jinja");
  fs::create_symlink(directory / "elsewhere.jinja", base + folder + "/tool_use.jinja");
  write_text(directory / "elsewhere.jinja", "{{ tools }}");
  CHECK_THROWS_AS(Checkpoint(base), Error);
  CHECK_NOTHROW(Checkpoint(base, true));
  fs::remove(base + folder + "/tool_use.jinja");
  write_text(base + "/chat_template.jinja", "{{ messages }}");
  fs::create_symlink("../chat_template.jinja", base + folder + "/tool_use.jinja");
  CHECK_NOTHROW(Checkpoint(base));
  fs::remove_all(base + folder);
  fs::create_directory_symlink(directory.path(), base + folder);
  CHECK_THROWS_AS(Checkpoint(base), Error);
}

TEST_CASE("init: chat templates of the tokenizer come along", "[write]") {
  const TemporaryDirectory directory;
  const std::string from = directory / "tokenizer", result = directory / "result";
  make_directory(from + "/additional_chat_templates");
  write_text(from + "/tokenizer.json", "{}");
  write_text(from + "/additional_chat_templates/rag.jinja", "{{ documents }}");
  write_text(directory / "config.json", small_config().dump());
  init_checkpoint(directory / "config.json", result, 1, from);
  CHECK(read_text(result + "/additional_chat_templates/rag.jinja") == "{{ documents }}");
}
