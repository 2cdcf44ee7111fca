#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

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
  /// Of the file of an opened utterance.
  int64_t channels(const Utterance& utterance) const;
  /// An error where the stored features of an utterance have other columns than those before.
  void check_columns(const std::string& id, int64_t columns, const std::string& place);
  /// Takes an opened utterance of the corpus's set: train, dev or test.
  void add(Utterance utterance, std::string_view set, const std::string& place);
  /// Each line that is text and not blank, with its place.
  void for_each_line(const std::filesystem::path& file, std::string_view set,
                     const std::function<void(std::string_view line, const std::string& place)>& take);

  void name_classes(std::map<int32_t, std::string> names) { corpus_.class_names = std::move(names); }
  /// A sentence that whoever reads the corpus shall know.
  void note(std::string sentence) { corpus_.notes.push_back(std::move(sentence)); }

  const SpeechSource& source() const { return source_; }
  /// Settles which set there must be: the one that is wanted, which is read alone, or train, with all others,
  /// where that is there and the wanted one is not. `find` gives the path of a set, or an empty one.
  const std::string& settle(const std::function<std::filesystem::path(const std::string& set)>& find);
  bool reads(const std::string& set) const { return !alone_ || set == needed_; }
  /// The wanted set is not there, and need not be.
  bool lacks_wanted() const { return lacks_wanted_; }
  SpeechCorpus finish();

 private:
  const SpeechSource& source_;
  std::string needed_ = "train";
  bool alone_ = false, lacks_wanted_ = false;
  SpeechCorpus corpus_;
  struct Header {
    int64_t rate, frames, channels;
  };
  std::map<std::filesystem::path, Header> opened_;
  std::map<std::string, std::string> places_;  // of each name
  std::set<std::string> speakers_;
  int64_t columns_ = 0;         // of stored features, as the first ones have them
  std::string first_features_;  // whose these are
};

void read_timit(SpeechGathering& gathering);
/// Names of speakers as the reader gives them; `core` and `dev50` stand for the speakers of these sets.
QUATRAIN_API std::vector<std::string> timit_speakers(const std::vector<std::string>& names);
void read_kaldi_folders(SpeechGathering& gathering);
void read_speech_tsv(SpeechGathering& gathering);
void read_fsdd(SpeechGathering& gathering);
void read_yesno(SpeechGathering& gathering);

}  // namespace quatrain::data
