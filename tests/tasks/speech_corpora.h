#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "data/audio_files.h"

/// Recordings of a language of three words, which are tones: "low", "mid" and "high".
namespace quatrain::test {

inline constexpr int kRate = 8000;

inline int next_number(uint64_t& state, int below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<int>((state >> 33) % static_cast<uint64_t>(below));
}

/// A word takes .15 s, the pauses between words and at both ends .05 s.
inline std::vector<int16_t> say(const std::vector<int>& words, uint64_t& state) {
  constexpr int kHertz[] = {400, 1000, 2300};
  std::vector<int16_t> samples;
  const auto add = [&](double seconds, int hertz) {
    const int count = static_cast<int>(seconds * kRate);
    for (int i = 0; i < count; ++i) {
      const double tone = hertz > 0 ? std::sin(2 * std::numbers::pi * hertz * i / kRate) : 0;
      samples.push_back(static_cast<int16_t>(8000 * tone + next_number(state, 401) - 200));
    }
  };
  add(0.05, 0);
  for (const int word : words) {
    add(0.15, kHertz[word]);
    add(0.05, 0);
  }
  return samples;
}

inline void write_recording(const std::filesystem::path& file, const std::vector<int16_t>& samples,
                            uint32_t rate = kRate) {
  std::ofstream(file, std::ios::binary) << data::wav(data::sixteen_bits(samples), {.rate = rate});
}

/// train.tsv, dev.tsv and test.tsv with so many utterances of 1 to `longest` words, by two speakers.
inline void write_tones(const std::filesystem::path& folder, int train, int dev, int test, int longest) {
  static constexpr const char* kNames[] = {"low", "mid", "high"};
  std::filesystem::create_directories(folder);
  uint64_t state = 1;
  for (const auto& [set, count] :
       {std::pair<std::string, int>{"train", train}, {"dev", dev}, {"test", test}}) {
    std::ofstream list(folder / (set + ".tsv"));
    for (int i = 0; i < count; ++i) {
      std::vector<int> words(static_cast<size_t>(1 + next_number(state, longest)));
      for (int& word : words) word = next_number(state, 3);
      const std::string name = set + std::to_string(i) + ".wav";
      write_recording(folder / name, say(words, state));
      list << name << "\t";
      for (size_t w = 0; w < words.size(); ++w) list << (w ? " " : "") << kNames[words[w]];
      list << "\t" << (i % 2 ? "anna" : "bert") << "\n";
    }
  }
}

/// A folder as TIMIT has them: four speakers with two sentences each, whose phones are tones.
inline void write_phones(const std::filesystem::path& folder) {
  static constexpr const char* kNames[] = {"aa", "iy", "s"};
  uint64_t state = 5;
  for (const char* speaker : {"fanna0", "mbert0", "fcleo0", "mdave0"})
    for (const char* sentence : {"si1", "sx2"}) {
      std::vector<int> phones(4);
      for (int& phone : phones) phone = next_number(state, 3);
      const auto samples = say(phones, state);
      const auto place = folder / "dr1" / speaker;
      std::filesystem::create_directories(place);
      write_recording(place / (std::string(sentence) + ".wav"), samples);
      std::ofstream labels(place / (std::string(sentence) + ".phn"));
      std::ofstream words(place / (std::string(sentence) + ".wrd"));
      constexpr int kPause = kRate / 20, kWord = kRate * 3 / 20;
      labels << "0 " << kPause << " h#\n";
      for (int i = 0; i < 4; ++i) {
        const int begin = kPause + i * (kWord + kPause);
        labels << begin << " " << begin + kWord << " " << kNames[phones[static_cast<size_t>(i)]] << "\n"
               << begin + kWord << " " << begin + kWord + kPause << " h#\n";
        words << begin << " " << begin + kWord << " word" << phones[static_cast<size_t>(i)] << "\n";
      }
    }
}

}  // namespace quatrain::test
