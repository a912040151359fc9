// The built program: exit codes, and what goes to which stream.
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"

using hearth::parse_json;

namespace {

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

std::string file_content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs the program in `directory` through the shell. `redirection` replaces that of stdout.
Result hearth_in(const hearth::test::TemporaryDirectory& directory, const std::string& arguments,
                 const std::string& redirection = ">out.txt") {
  const std::string command = "cd '" + directory.path() + "' && '" +
                              std::string(hearth::test::test_binary()) + "' " + arguments + " " +
                              redirection + " 2>err.txt </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_content(directory / "out.txt"),
          file_content(directory / "err.txt")};
}

bool is_one_line(const std::string& text) {
  return text.starts_with("hearth: ") && text.find('\n') == text.size() - 1;
}

constexpr char kConfig[] = R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
  "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu",
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "attention_bias": false, "num_experts": 4,
  "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": true,
  "decoder_sparse_step": 1, "mlp_only_layers": [], "router_aux_loss_coef": 0.001,
  "use_sliding_window": false, "torch_dtype": "float32"})";

}  // namespace

TEST_CASE("help, version and usage errors") {
  hearth::test::TemporaryDirectory d;
  Result r = hearth_in(d, "--help");
  CHECK(r.code == 0);
  CHECK(r.out.find("hearth COMMAND") != std::string::npos);
  CHECK(r.err.empty());
  r = hearth_in(d, "train --help");
  CHECK(r.code == 0);
  CHECK(r.out.find("--seq-len") != std::string::npos);
  r = hearth_in(d, "--version");
  CHECK(r.code == 0);
  for (const char* part : {"hearth ", "revision", "build", "CUDA", "CUTLASS", "cuDNN", "ISA",
                           "oneDNN", "hwloc", "OpenMP"}) {
    CHECK(r.out.find(part) != std::string::npos);
  }
  for (const char* arguments :
       {"", "tarin", "train --model m --data d --out o --lora-r 0", "inspect",
        "train --model m --data d --out o --learnin-rate 1", "eval --model m --data d --keep 1"}) {
    r = hearth_in(d, arguments);
    INFO(arguments << ": " << r.err);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(is_one_line(r.err));
  }
  CHECK_FALSE(std::filesystem::exists(d / "o"));
}

TEST_CASE("of several processes\\, the first alone refuses a command that one process runs") {
  hearth::test::TemporaryDirectory d;
  const auto of_rank = [&](const std::string& rank, const std::string& arguments) {
    ::setenv("OMPI_COMM_WORLD_RANK", rank.c_str(), 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    const Result result = hearth_in(d, arguments);
    ::unsetenv("OMPI_COMM_WORLD_RANK");
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    return result;
  };
  for (const std::string command :
       {"eval --model m --data d", "generate --model m --prompt hi", "inspect m", "verify m",
        "init --config c.json --out m", "tokenize --model m"}) {
    INFO(command);
    const Result first = of_rank("0", command), second = of_rank("1", command);
    CHECK(first.code == 2);
    CHECK(first.err ==
          "hearth: " + command.substr(0, command.find(' ')) +
              ": runs as one process, but a launcher started 2; start it without mpirun "
              "or srun\n");
    CHECK(second.code == 2);
    CHECK(second.err.empty());
    CHECK((first.out.empty() && second.out.empty()));
  }
  CHECK(!std::filesystem::exists(d / "m"));
  CHECK(of_rank("0", "eval --help").out.starts_with("hearth eval"));
  CHECK(of_rank("1", "eval --help").out.empty());
  CHECK(of_rank("0", "--version").out.starts_with("hearth"));
  CHECK(of_rank("1", "--version").out.empty());
  CHECK(of_rank("1", "--version").code == 0);
  CHECK(is_one_line(of_rank("0", "no-command").err));
  CHECK(of_rank("1", "no-command").err.empty());
}

TEST_CASE("a configuration that cannot be read is bad input") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "bad.yaml") << "lr: [1\n";
  std::ofstream(d / "twice.yaml") << "lr: 1\nlr: 1\n";
  for (const char* name : {"bad.yaml", "twice.yaml", "missing.yaml", "."}) {
    const Result r = hearth_in(d, std::string("train --model m --data d --out o ") + name);
    INFO(r.err);
    CHECK(r.code == 3);
    CHECK(is_one_line(r.err));
  }
}

TEST_CASE("a refusal follows what was printed before it") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "config.json") << kConfig;
  REQUIRE(hearth_in(d, "init --config config.json --out model").code == 0);
  std::ofstream(d / "rows.jsonl") << "{\"text\": \"a row of text\"}\n";
  const Result r = hearth_in(d,
                             "plan --model model --data rows.jsonl --seq-len 16 --steps 1 "
                             "--cpu-memory 1M --quiet",
                             ">out.txt 2>&1 #");
  INFO(r.out);
  CHECK(r.code == 2);
  const size_t error = r.out.find("hearth: ");
  REQUIRE(error != std::string::npos);
  CHECK(error > 0);
  CHECK(r.out.find('\n', error) == r.out.size() - 1);  // the last line
}

TEST_CASE("standard output that cannot be written ends with 4") {
  hearth::test::TemporaryDirectory d;
  if (std::filesystem::exists("/dev/full")) {
    CHECK(hearth_in(d, "train --help", ">/dev/full").code == 4);
  }
  const Result r = hearth_in(d, "--version", ">&-");
  CHECK(r.code == 4);
  CHECK(is_one_line(r.err));
}

TEST_CASE("help whose reader has gone is no error, a result is one without a line") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "config.json") << kConfig;
  REQUIRE(hearth_in(d, "init --config config.json --out model").code == 0);
  const auto into_closed_pipe = [&](const std::string& arguments) -> Result {
    const std::string command = "cd '" + d.path() + "' && { sleep 0.5; '" +
                                std::string(hearth::test::test_binary()) + "' " + arguments +
                                " 2>err.txt; echo $? >code.txt; } | true";
    REQUIRE(std::system(command.c_str()) == 0);
    return {std::stoi(file_content(d / "code.txt")), "", file_content(d / "err.txt")};
  };
  for (const char* arguments : {"--help", "train --help", "--version"}) {
    const Result r = into_closed_pipe(arguments);
    INFO(arguments << ": " << r.err);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
  }
  const Result r = into_closed_pipe("inspect model");
  CHECK(r.code == 4);
  CHECK(r.err.empty());
}

TEST_CASE("several files in one --data, and packed or other kinds of files, are named") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "config.json") << kConfig;
  REQUIRE(hearth_in(d, "init --config config.json --out model").code == 0);
  for (const char* name : {"a.jsonl", "b.jsonl", "a,b.jsonl"}) {
    std::ofstream(d / name) << "{\"text\": \"a row of text\"}\n";
  }
  std::filesystem::create_directory(d / "rows");
  std::ofstream(d / "t.csv") << "text\nhello\n";
  std::ofstream(d / "q.jsonl", std::ios::binary) << "BZh91AY&SY";
  const auto refusal = [&](const std::string& data, int code) {
    const Result r = hearth_in(d, "eval --model model --seq-len 16 " + data);
    INFO(data << ": " << r.err);
    CHECK(r.code == code);
    CHECK(is_one_line(r.err));
    return r.err;
  };
  CHECK(refusal("--data a.jsonl,b.jsonl", 3).find("name several files") != std::string::npos);
  CHECK(refusal("--data rows", 3).find("no data files in this directory") != std::string::npos);
  CHECK(refusal("--data '*.none'", 2).find("matches no file") != std::string::npos);
  CHECK(hearth_in(d, "eval --model model --seq-len 16 --data a,b.jsonl").code == 0);
  // A directory, a glob, several files behind one --data: the same rows as each by name.
  std::filesystem::copy(d / "a.jsonl", d / "rows/a.jsonl");
  std::filesystem::copy(d / "t.csv", d / "rows/t.csv");
  std::ofstream(d / "rows/README.md") << "no rows";
  std::ofstream(d / "rows/dataset_info.json") << "{}";
  std::ofstream(d / "rows/.hidden.jsonl") << "{}";
  const auto rows_of = [&](const std::string& data) {
    const Result r = hearth_in(d, "tokenize --json --model model --data " + data);
    INFO(data << ": " << r.err);
    CHECK(r.code == 0);
    return r.out;
  };
  const std::string both = rows_of("rows/a.jsonl --data rows/t.csv");
  CHECK(std::count(both.begin(), both.end(), '\n') == 2);
  for (const char* data :
       {"rows", "rows/", "'ro?s/*.jsonl' '*/t.csv'", "rows/a.jsonl rows/t.csv", "a.jsonl t.csv"}) {
    CHECK(rows_of(data) == both);
  }
  CHECK(refusal("--data q.jsonl", 3).find("packed by bzip2") != std::string::npos);
  std::ofstream(d / "c.yaml") << "seq-len: 16\n";
  for (const char* words : {"--data a.jsonl b.jsonl", "--data a.jsonl b.jsonl c.yaml",
                            "c.yaml --data a.jsonl b.jsonl:2 --quiet"}) {
    CHECK(hearth_in(d, std::string("plan --model model ") + words).code == 0);
  }
  const Result r = hearth_in(d, "plan --model model b.jsonl");
  CHECK(r.code == 2);
  CHECK(r.err.find("unexpected argument 'b.jsonl': expected a configuration") != std::string::npos);
}

TEST_CASE("inspect and verify take names of the hub cache") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "config.json") << kConfig;
  REQUIRE(hearth_in(d, "init --config config.json --out model").code == 0);
  const auto folder = std::filesystem::path(d / "hub/models--org--name");
  std::filesystem::create_directories(folder / "refs");
  std::filesystem::create_directories(folder / "snapshots");
  std::ofstream(folder / "refs/main") << "abc";
  std::filesystem::rename(d / "model", folder / "snapshots/abc");
  REQUIRE(setenv("HF_HUB_CACHE", (d / "hub").c_str(), 1) == 0);
  CHECK(hearth_in(d, "inspect org/name").code == 0);
  const Result r = hearth_in(d, "verify org/name");
  CHECK(r.code == 0);
  CHECK(r.out.find("checkpoint of ") != std::string::npos);
  const Result missing = hearth_in(d, "inspect org/other");
  CHECK(missing.code == 3);
  CHECK(missing.err.find("nor in the hub cache") != std::string::npos);
  unsetenv("HF_HUB_CACHE");
}

TEST_CASE("init, inspect, tokenize and verify") {
  hearth::test::TemporaryDirectory d;
  std::ofstream(d / "config.json") << kConfig;
  Result r = hearth_in(d, "init --config config.json --out model --seed 7");
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(r.out.empty());
  CHECK(std::filesystem::exists(d / "model/tokenizer.json"));
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(d.path())) {
    entries += entry.path().filename().string().find("tmp") != std::string::npos;
  }
  CHECK(entries == 0);
  CHECK(hearth_in(d, "init --config config.json --out model").code == 2);  // exists
  for (const char* tokenizer : {"nothing", ".", "config.json"}) {  // none, no tokenizer, a file
    r = hearth_in(d, std::string("init --config config.json --out new --tokenizer ") + tokenizer);
    CHECK(r.code == 3);
    CHECK(is_one_line(r.err));
    CHECK_FALSE(std::filesystem::exists(d / "new"));
  }

  r = hearth_in(d, "inspect model --digest --json");
  REQUIRE(r.code == 0);
  const auto digest = parse_json(r.out, "digest");
  CHECK(digest.find("digest")->is_object());
  CHECK(digest.find("root")->is_string());
  CHECK(hearth_in(d, "init --config config.json --out again --seed 7").code == 0);
  CHECK(hearth_in(d, "inspect again --digest --json").out == r.out);
  CHECK(hearth_in(d, "init --config config.json --out other --seed 8").code == 0);
  CHECK(hearth_in(d, "inspect other --digest --json").out != r.out);
  CHECK(hearth_in(d, "inspect model").out.find("qwen3_moe") != std::string::npos);
  const auto trained = [&](const std::string& options) {
    r = hearth_in(d, "inspect model --json " + options);
    REQUIRE(r.code == 0);
    return parse_json(r.out, "inspect").find("trained_parameters")->as_int();
  };
  CHECK(trained("--freeze '*.experts.*'") < trained(""));
  CHECK(trained("--freeze '*' --trainable '*.mlp.gate.*'") ==
        trained("--trainable '*.mlp.gate.*'"));
  CHECK(hearth_in(d, "inspect model --freeze nothing").code == 2);

  std::ofstream(d / "text.txt", std::ios::binary) << "hi\n\nyou";
  r = hearth_in(d, "tokenize --model model text.txt");
  CHECK(r.code == 0);
  const auto json = hearth_in(d, "tokenize --model model text.txt --json");
  const auto lines = parse_json(json.out, "ids");
  REQUIRE(lines.as_array().size() == 3);
  CHECK(lines.as_array()[0].as_array().size() == 2);
  CHECK(lines.as_array()[1].as_array().empty());
  CHECK(lines.as_array()[2].as_array().size() == 3);
  CHECK(r.out.find("]\n[]\n[") != std::string::npos);
  std::ofstream(d / "bad.txt", std::ios::binary) << "ok\n\xff\n";
  r = hearth_in(d, "tokenize --model model bad.txt");
  CHECK(r.code == 3);
  CHECK(r.err.find("bad.txt:2") != std::string::npos);

  CHECK(hearth_in(d, "verify model").code == 0);
  CHECK(hearth_in(d, "verify .").code == 3);
  std::filesystem::create_directories(d / "whole/state/other");
  std::filesystem::copy(d / "model", d / "whole/model", std::filesystem::copy_options::recursive);
  CHECK(hearth_in(d, "verify whole").code == 0);
  CHECK(hearth_in(d, "inspect nothing").code == 3);
  std::filesystem::resize_file(d / "model/model.safetensors", 5000);
  r = hearth_in(d, "verify model");
  CHECK(r.code == 3);
  CHECK(is_one_line(r.err));
  std::filesystem::create_directories(d / "run/state/step-00000003");
  CHECK(hearth_in(d, "verify run/state/step-00000003").code == 4);
  CHECK(hearth_in(d, "verify run").code == 4);
}
