// Tokens a second of processor time: bench_text MODEL TEXTS.json THREADS. TEXTS.json holds an array of
// strings; each thread encodes them all, in turn, three times; the fastest counts. One JSON line.
#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "checkpoint/model_files.h"
#include "data/tokenizer/tokenizer.h"

namespace {

using namespace hearth;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Measured {
  int64_t tokens = 0;
  double seconds = 0;
};

Measured encode_all(const Tokenizer& tokenizer, const JsonArray& texts) {
  Measured best;
  for (int turn = 0; turn < 3; ++turn) {
    Measured now;
    const double begin = processor_seconds();
    for (const Json& text : texts) {
      now.tokens += static_cast<int64_t>(tokenizer.encode(text.as_string()).ids.size());
    }
    now.seconds = processor_seconds() - begin;
    if (turn == 0 || now.seconds < best.seconds) best = now;
  }
  return best;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "bench_text MODEL TEXTS.json THREADS\n");
    return 2;
  }
  try {
    const Tokenizer tokenizer(words[1]);
    const Json texts = read_json_file(words[2], uint64_t{1} << 30);
    std::vector<Measured> measured(static_cast<size_t>(std::max(1, std::atoi(words[3]))));
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (Measured& own : measured) {
      threads.emplace_back([&] { own = encode_all(tokenizer, texts.as_array()); });
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    double rate = 0;
    for (const Measured& own : measured) rate += static_cast<double>(own.tokens) / own.seconds;
    std::printf("{\"tokens\": %lld, \"tokens_per_s\": %.0f, \"wall_tokens_per_s\": %.0f}\n",
                static_cast<long long>(measured[0].tokens), rate,
                3.0 * static_cast<double>(measured.size()) *
                    static_cast<double>(measured[0].tokens) / wall.count());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
