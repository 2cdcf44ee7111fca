#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "quatrain/data/speech_corpus.h"
#include "tasks/speech/options.h"

namespace quatrain::tasks {

/// What a network tells apart, by name: the tokens of `ctc` behind its blank, the phones or numbers of
/// `frames`, the labels of `utterance`.
class SpeechClasses {
 public:
  static constexpr int64_t kBlank = 0;  ///< of ctc
  static constexpr const char* kBlankName = "<blank>";
  static constexpr const char* kSpace = "<space>";  ///< between words, of characters

  SpeechClasses() = default;
  /// Those that occur in a training set, in the order of their bytes; an error where ctc's blank would be
  /// one. `names`: of an alignment's classes; one without a name is called by its number.
  SpeechClasses(const SpeechTaskOptions& options, const std::vector<data::Utterance>& utterances,
                const std::map<int32_t, std::string>& names = {});

  /// What is to be recognised of an utterance, as it is scored. Of an alignment whose classes have names it
  /// is each stretch of one class.
  std::vector<std::string> tokens_of(const SpeechTaskOptions& options,
                                     const data::Utterance& utterance) const;
  /// What a text or phones become that a network named one after the other: TIMIT's phones among 39.
  static std::string scored(const SpeechTaskOptions& options, const std::string& name);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::string& name(int64_t id) const { return names_[static_cast<size_t>(id)]; }
  /// -1 where there is none.
  int64_t id(const std::string& name) const;
  const std::vector<std::string>& names() const { return names_; }
  /// Some are called by other names than their numbers.
  bool are_named() const;

  static constexpr const char* kFile = "classes.txt";  ///< of a checkpoint, a name a line
  void save(const std::filesystem::path& folder) const;
  static SpeechClasses load(const std::filesystem::path& folder);
  bool operator==(const SpeechClasses&) const = default;

 private:
  void add(std::string name);
  std::vector<std::string> phones_of_alignment(const data::Utterance& utterance) const;

  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t> ids_;
};

/// The classes of an utterance's frames; an error (c10::Error) where it has none. Of a longer recording the
/// last frames are as phone_labels says; alignments must have as many labels as there are frames.
std::vector<int64_t> frame_classes(const SpeechTaskOptions& options, const data::Utterance& utterance,
                                   int64_t frames);

/// The text of tokens, as people read it.
std::string text_of(const SpeechTaskOptions& options, const std::vector<std::string>& tokens);

}  // namespace quatrain::tasks
