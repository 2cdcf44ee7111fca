#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "data/line_file.h"
#include "data/speech_readers.h"
#include "data/text_file.h"
#include "quatrain/data/phones.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kNeeded =
    "folders of speakers with .wav and .phn files, and .wrd or .txt files for words";
constexpr int64_t kMostEntries = 50000;  // twice what the discs hold

/// Speakers of the complete test set: the 24 of the core test set, and the 50 that Kaldi takes as a dev set.
constexpr const char* kCoreSpeakers =
    "fdhc0 felc0 fjlm0 fmgd0 fmld0 fnlp0 fpas0 fpkt0 mbpm0 mcmj0 mdab0 mgrt0 mjdh0 mjln0 mjmp0 "
    "mklt0 mlll0 mlnt0 mnjm0 mpam0 mtas1 mtls0 mwbt0 mwew0";
constexpr const char* kDevSpeakers =
    "fadg0 faks0 fcal1 fcmh0 fdac1 fdms0 fdrw0 fedw0 fgjd0 fjem0 fjmg0 fjsj0 fkms0 fmah0 fmml0 "
    "fnmr0 frew0 fsem0 majc0 mbdg0 mbns0 mbwm0 mcsh0 mdlf0 mdls0 mdvc0 mers0 mgjf0 mglb0 mgwt0 "
    "mjar0 mjfc0 mjsw0 mmdb1 mmdm2 mmjr0 mmwh0 mpdf0 mrcs0 mreb0 mrjm4 mrjr0 mroa0 mrtk0 mrws1 "
    "mtaa0 mtdt0 mteb0 mthc0 mwjg0";

/// A sentence of one speaker: its files by their endings in lower case.
struct Sentence {
  fs::path folder;
  std::string name;  // in lower case: "sx116"
  std::map<std::string, fs::path> files;
};

/// All sentences that have audio, by the bytes of their paths in lower case. What begins with a dot is passed
/// over, and a folder that cannot be TIMIT's is not read to its end.
std::vector<Sentence> find_sentences(const fs::path& folder) {
  std::map<std::string, Sentence> all;
  std::error_code error;
  fs::path last = folder;
  int64_t entries = 0, recordings = 0;
  for (fs::recursive_directory_iterator at(folder, error); !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const auto& entry = *at;
    last = entry.path();
    TORCH_CHECK(++entries <= kMostEntries, "data: ", folder.string(), " holds more than ", kMostEntries,
                " files and folders (", recordings,
                " of the first ones are .wav files), so it is not TIMIT alone; the timit format needs ",
                kNeeded, ": give the folder that holds just these");
    const std::string name = lower_case(entry.path().filename().string());
    const size_t dot = name.find('.');
    if (dot == 0) at.disable_recursion_pending();
    if (std::error_code none; dot == 0 || dot == name.npos || !entry.is_regular_file(none)) continue;
    recordings += name.ends_with(".wav");
    const fs::path parent = entry.path().parent_path().lexically_relative(folder);
    const std::string stem = name.substr(0, dot);
    auto& sentence = all[lower_case((parent / stem).string())];
    sentence.folder = parent;
    sentence.name = stem;
    sentence.files[name.substr(dot + 1)] = entry.path();
  }
  TORCH_CHECK(!error, "data: the folder ", last.string(), " cannot be read: ", error.message());
  std::vector<Sentence> sentences;
  for (auto& [path, sentence] : all)
    if (sentence.files.contains("wav")) sentences.push_back(std::move(sentence));
  return sentences;
}

/// train or test where a part of the path is called so.
std::string side_of(const fs::path& folder) {
  for (const auto& part : folder)
    if (const auto name = lower_case(part.string()); name == "train" || name == "test") return name;
  return "";
}

/// "dr1" and "fvmh0" of .../DR1/FVMH0 or .../dr1-fvmh0.
void name_speaker(Utterance& utterance, const fs::path& folder) {
  const auto is_dialect = [](const std::string& name) {
    return name.size() == 3 && name.starts_with("dr") && name[2] >= '1' && name[2] <= '8';
  };
  utterance.speaker = lower_case(folder.filename().string());
  const size_t dash = utterance.speaker.find('-');
  if (dash != std::string::npos && is_dialect(utterance.speaker.substr(0, dash))) {
    utterance.group = utterance.speaker.substr(0, dash);
    utterance.speaker.erase(0, dash + 1);
  } else if (const auto above = lower_case(folder.parent_path().filename().string()); is_dialect(above)) {
    utterance.group = above;
  }
}

class TimitReader {
 public:
  explicit TimitReader(SpeechGathering& gathering) : gathering_(gathering) {}

  void read(const Sentence& sentence, const std::string& set) {
    set_ = set;
    Utterance utterance;
    utterance.path = sentence.files.at("wav");
    name_speaker(utterance, sentence.folder);
    utterance.id = utterance.speaker + "_" + sentence.name;
    const std::string place = utterance.path.string();
    const auto file = [&](const char* ending) {
      const auto found = sentence.files.find(ending);
      return found == sentence.files.end() ? fs::path() : found->second;
    };
    const fs::path phones = file("phn"), words = file("wrd"), prompt = file("txt");
    if (phones.empty())
      return gathering_.refuse(set, "a .phn file is missing", place, "there is no .phn file beside it");
    const bool with_words = gathering_.source().words;
    if (with_words && words.empty() && prompt.empty())
      return gathering_.refuse(set, "a .wrd file is missing", place,
                               "there is neither a .wrd nor a .txt file beside it");
    if (!gathering_.open_audio(utterance, set, place)) return;
    if (!read_phones(phones, utterance)) return;
    if (with_words && !(words.empty() ? read_prompt(prompt, utterance) : read_words(words, utterance)))
      return;
    gathering_.add(std::move(utterance), set, place);
  }

 private:
  /// "begin end what", both in samples.
  struct Label {
    int64_t begin, end;
    std::string what;
    std::string place;
  };

  bool refuse(const std::string& reason, const std::string& place, const std::string& problem) {
    gathering_.refuse(set_, reason, place, problem);
    return false;
  }

  /// Lines with their places; nothing where the file is empty or cannot be read.
  std::optional<std::vector<std::pair<std::string, std::string>>> lines_of(const fs::path& file,
                                                                           const Utterance& utterance) {
    std::vector<std::pair<std::string, std::string>> all;
    try {
      LineFile lines(file);
      for (std::string_view line; lines.next(line);) all.emplace_back(line, lines.place());
    } catch (const c10::Error& error) {
      refuse("a file of labels cannot be read", utterance.path.string(), error.what_without_backtrace());
      return std::nullopt;
    }
    return all;
  }

  /// Nothing where a line is bad, or where there is none.
  std::optional<std::vector<Label>> labels(const fs::path& file, const Utterance& utterance) {
    const auto lines = lines_of(file, utterance);
    if (!lines) return std::nullopt;
    std::vector<Label> all;
    for (const auto& [line, place] : *lines) {
      if (is_blank(line)) continue;
      if (const auto problem = line_problem(line); !problem.empty()) {
        refuse("a line is not text", place, problem);
        return std::nullopt;
      }
      // What follows the second space is a phone, a word, or a sentence.
      const auto fields = split(line, Tokenizer::whitespace);
      const auto begin = fields.size() >= 3 ? whole_number(fields[0]) : std::nullopt;
      const auto end = fields.size() >= 3 ? whole_number(fields[1]) : std::nullopt;
      if (!begin || !end || *begin < 0 || *end <= *begin) {
        refuse("a label is bad", place,
               "a line must be the first sample, the end and a label, got " + quote(line));
        return std::nullopt;
      }
      Label label{*begin, *end, fields[2], place};
      for (size_t i = 3; i < fields.size(); ++i) label.what += " " + fields[i];
      all.push_back(std::move(label));
    }
    if (!all.empty()) return all;
    refuse("a file has no label", utterance.path.string(), file.string() + " has blank lines alone");
    return std::nullopt;
  }

  bool read_phones(const fs::path& file, Utterance& utterance) {
    const auto found = labels(file, utterance);
    if (!found) return false;
    const auto& known = timit_phones();
    int64_t end = 0;
    for (const auto& label : *found) {
      if (!std::binary_search(known.begin(), known.end(), label.what))
        return refuse("a phone is unknown", label.place,
                      "the phone must be one of TIMIT's 61, got " + quote(label.what));
      if (label.begin < end)
        return refuse("phones overlap", label.place,
                      "the phone begins at sample " + std::to_string(label.begin) +
                          ", before the last one's end at " + std::to_string(end));
      end = label.end;
      utterance.phones.push_back({label.what, label.begin, label.end});
    }
    // A label of TIMIT ends one sample late.
    if (end <= utterance.samples() + 1) return true;
    return refuse("labels exceed the audio", found->back().place,
                  "the last phone ends at sample " + std::to_string(end) + ", but " +
                      utterance.path.string() + " has only " + std::to_string(utterance.samples()));
  }

  bool read_words(const fs::path& file, Utterance& utterance) {
    const auto found = labels(file, utterance);
    if (found)
      for (const auto& label : *found) utterance.tokens.push_back(lower_case(label.what));
    return found.has_value();
  }

  /// The sentence as it is printed: in lower case, without marks but those within words.
  bool read_prompt(const fs::path& file, Utterance& utterance) {
    const auto found = labels(file, utterance);
    if (!found) return false;
    for (auto& word : split(lower_case(found->front().what), Tokenizer::whitespace)) {
      const auto is_mark = [](char c) {
        return std::string_view(".,:;?!\"()-").find(c) != std::string::npos;
      };
      while (!word.empty() && is_mark(word.back())) word.pop_back();
      word.erase(word.begin(), std::find_if_not(word.begin(), word.end(), is_mark));
      if (!word.empty()) utterance.tokens.push_back(word);
    }
    return true;
  }

  SpeechGathering& gathering_;
  std::string set_;
};

}  // namespace

std::vector<std::string> timit_speakers(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const auto& written : names) {
    const std::string name = lower_case(written);
    const char* const list = name == "core" ? kCoreSpeakers : name == "dev50" ? kDevSpeakers : name.c_str();
    for (auto& speaker : split(list, Tokenizer::whitespace)) all.push_back(std::move(speaker));
  }
  return all;
}

void read_timit(SpeechGathering& gathering) {
  fs::path folder = gathering.source().folder;
  check_folder("timit", folder, kNeeded);
  // A folder of several sets has this one in a folder of its own.
  if (const fs::path own = folder / "speech_timit_sample"; fs::is_directory(own)) folder = own;
  const auto sentences = find_sentences(folder);
  TORCH_CHECK(!sentences.empty(), "data: there is no .wav file below ", folder.string(),
              "; the timit format needs ", kNeeded);
  const bool divided = std::any_of(sentences.begin(), sentences.end(), [](const Sentence& sentence) {
    return !side_of(sentence.folder).empty();
  });
  TimitReader reader(gathering);
  for (const auto& sentence : sentences) {
    if (sentence.name == "sa1" || sentence.name == "sa2") continue;
    const std::string set = divided ? side_of(sentence.folder) : "train";
    if (set.empty())
      gathering.refuse("", "a file is neither in train nor in test", sentence.files.at("wav").string(),
                       "other files lie below a folder train or test, but this one does not");
    else
      reader.read(sentence, set);
  }
}

}  // namespace quatrain::data
