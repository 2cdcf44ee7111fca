#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/data/speech_corpus.h"

/// The readers of speech, one a file; speech_corpus.cpp lists them under their names.
namespace quatrain::data {

/// Gathers a corpus: refuses what is bad or counts it, and sorts the rest into the three sets.
class SpeechGathering {
 public:
  explicit SpeechGathering(const SpeechSource& source);

  /// An error, or with skip_bad a count. `reason` is the same for all of its kind, `problem` tells of this
  /// one.
  void refuse(std::string_view set, const std::string& reason, const std::string& place,
              const std::string& problem);
  /// Sets rate, begin and end to those of the file `path`; false where it was refused.
  bool open_audio(Utterance& utterance, std::string_view set, const std::string& place);
  /// An error where the stored features of an utterance have other columns than those before.
  void check_columns(const std::string& id, int64_t columns, const std::string& place);
  /// Takes an opened utterance of the corpus's set: train, dev or test.
  void add(Utterance utterance, std::string_view set, const std::string& place);
  /// Each line that is text and not blank, with its place.
  void for_each_line(const std::filesystem::path& file, std::string_view set,
                     const std::function<void(std::string_view line, const std::string& place)>& take);

  const SpeechSource& source() const { return source_; }
  /// The one set that is wanted; empty: all, as where speakers are a set, who may be in any.
  const std::string& wanted() const { return wanted_; }
  /// Says that the wanted set is read without the others.
  void read_alone() { needed_ = wanted_; }
  SpeechCorpus finish();

 private:
  const SpeechSource& source_;
  std::string wanted_, needed_ = "train";
  SpeechCorpus corpus_;
  struct Header {
    int64_t rate, frames;
  };
  std::map<std::filesystem::path, Header> opened_;
  std::map<std::string, std::string> places_;  // of each name
  std::set<std::string> speakers_;
  int64_t columns_ = 0;         // of stored features, as the first ones have them
  std::string first_features_;  // whose these are
};

/// What a set may be called.
std::vector<std::string> stems_of(const std::string& set);

void read_timit(SpeechGathering& gathering);
void read_kaldi_folders(SpeechGathering& gathering);
void read_speech_tsv(SpeechGathering& gathering);
void read_fsdd(SpeechGathering& gathering);
void read_yesno(SpeechGathering& gathering);

}  // namespace quatrain::data
