#include "tasks/speech/preparation.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "quatrain/data/derivatives.h"
#include "quatrain/data/tokenizer.h"
#include "support/numbers.h"
#include "support/telling.h"
#include "support/text.h"
#include "tasks/data_folder.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

int64_t rows_in(const SpeechTaskOptions& own, int64_t frames) {
  return (frames + own.stack - 1) / own.stack;
}

// Rows that ctc needs for tokens: a blank between equal ones.
int64_t rows_needed(const std::vector<int64_t>& targets) {
  auto rows = static_cast<int64_t>(targets.size());
  for (size_t i = 1; i < targets.size(); ++i) rows += targets[i] == targets[i - 1];
  return rows;
}

// What changes training besides samples and texts.
std::string checksum_of_labels(const data::Utterance& utterance) {
  std::string text = utterance.speaker + " " + std::to_string(utterance.rate);
  for (const auto& [phone, begin, end] : utterance.phones)
    text += "\n" + phone + " " + std::to_string(begin) + " " + std::to_string(end);
  text += "\n";
  text.append(reinterpret_cast<const char*>(utterance.labels.data()),
              utterance.labels.size() * sizeof(utterance.labels[0]));
  return train::checksum(text);
}

// Makes a set, and says what of it cannot be used.
class Preparation {
 public:
  Preparation(const Recipe& recipe, const DataRequest& request, Labels labels, data::BadExamples bad)
      : own_(recipe.own<SpeechTaskOptions>()), request_(request), labels_(labels), bad_(std::move(bad)) {
    if (own_.source.stored_features) return;
    try {
      bank_.emplace(own_.bank);
    } catch (const c10::Error& error) {  // frames and frequencies are checked: too many bands
      recipe.refuse("features.bands",
                    "does not fit the other features: " + without_function(error.what_without_backtrace()));
    }
  }

  SpeechSplit split(const std::string& name, std::vector<data::Utterance> utterances,
                    const SpeechClasses& classes) {
    SpeechSplit split;
    const auto speeds = name == "train" ? own_.speed_factors() : std::vector<double>{1};
    const auto factors = request_.split.empty() ? speeds : std::vector<double>{1};
    const auto all = std::ssize(utterances);
    Telling telling(request_.tell);
    std::string heard;  // what tells these recordings from all others
    const auto tell = [&](int64_t done, const at::Tensor& read) {
      const auto bytes = read.contiguous();
      heard += train::checksum({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
      telling([&] {
        return "features: " + grouped(done) + " of " + grouped(all) + " utterances of the " + name + " set";
      });
    };
    const auto unreadable = [&](const data::Utterance& utterance, const std::string& why) {
      leave_out(name, utterance, "the recording cannot be read", why);
    };
    split.set =
        bank_ ? std::make_shared<data::SpeechSet>(std::move(utterances), *bank_, factors, tell, unreadable)
              : std::make_shared<data::SpeechSet>(std::move(utterances), own_.bank.bands, tell, unreadable);
    // Once for each speed: what is stored beside runs has it so.
    const std::string once = heard;
    for (size_t i = 1; i < speeds.size(); ++i) heard += once;
    for (const auto& utterance : split.set->utterances()) {
      split.tokens.push_back(classes.tokens_of(own_, utterance));
      for (const auto& token : split.tokens.back()) heard += "\n" + token;
      heard += "\n" + checksum_of_labels(utterance);
    }
    checksums[name + ".recordings"] = train::checksum(heard);
    return split;
  }

  // Once the classes are known. What cannot be trained on is an error, or left out where that is asked for.
  void number(SpeechSplit& split, const std::string& name, const SpeechClasses& classes) {
    Unknown unknown;
    for (const auto& tokens : split.tokens) {
      auto& ids = split.targets.emplace_back();
      for (const auto& token : tokens) {
        ids.push_back(classes.id(token));
        if (ids.back() < 0 && own_.objective != Objective::frames) unknown.add(token);
      }
    }
    // Utterances, whatever the number of speeds.
    std::set<const data::Utterance*> silent, cut;
    for (int64_t i = 0; i < split.set->size(); ++i) {
      const auto& utterance = split.set->utterance(i);
      const int64_t frames = split.set->frames(i);
      const auto& targets = split.targets_of(i);
      if (frames == 0) {
        refuse(name, utterance,
               "has no frame (its " + std::to_string(utterance.samples()) + " samples are too few)");
        silent.insert(&utterance);
        continue;
      }
      if (own_.objective == Objective::ctc && rows_in(own_, frames) < rows_needed(targets)) {
        refuse(name, utterance,
               "is too short for its text: " + counted(rows_needed(targets), "token") +
                   " and blanks between equal ones need as many rows, it has " +
                   std::to_string(rows_in(own_, frames)) +
                   (own_.stack > 1 ? " (features.stack = " + std::to_string(own_.stack) + ")" : ""));
        cut.insert(&utterance);
        if (name == "train") continue;
      }
      if (labels_ == Labels::needed && own_.objective == Objective::frames &&
          !aligned(name, utterance, frames, classes, unknown))
        continue;
      split.usable.push_back(i);
    }
    if (unknown.count > 0)
      notes_.push_back(name + " set: " +
                       (own_.objective == Objective::frames ? counted(unknown.count, "frame") + " of classes"
                                                            : counted(unknown.count, "token")) +
                       " that the training set does not have, which cannot be recognised, the first " +
                       quote(unknown.first));
    if (unknown.everywhere > 0)
      notes_.push_back(name + " set: " + counted(unknown.everywhere, "utterance") +
                       " with such frames alone, which are scored but have no loss");
    TORCH_CHECK(split.usable.empty() || unknown.everywhere < std::ssize(split.usable),
                "speech: no frame of the ", name,
                " set is of a class that the training set has (the first is ", quote(unknown.first),
                "); take the alignments of both from the same acoustic model");
    if (!silent.empty())
      notes_.push_back(
          name + " set: " + counted(std::ssize(silent), "utterance") + " without a frame" +
          (name == "train" || labels_ == Labels::none ? ", left out" : ", to which the answer is empty"));
    if (!cut.empty())
      notes_.push_back(name + " set: " + counted(std::ssize(cut), "utterance") +
                       " too short for their tokens" +
                       (name == "train" ? ", left out" : ", which are scored but have no loss"));
    TORCH_CHECK(name != "train" || !split.usable.empty(),
                "speech: no utterance of the train set can be used; see features.stack and task.units");
  }

  void measure_speakers(SpeechSplit& split) {
    if (own_.normalise != NormaliseBy::speaker) return;
    for (const int64_t i : split.usable) {
      const auto [found, added] = split.speakers.try_emplace(split.set->utterance(i).speaker, own_.bank.bands,
                                                             own_.components(), own_.scale);
      found->second.add(features_of(own_, *split.set, i));
    }
  }

  // What was left out first.
  std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_of(bad_, "utterance");
    all.insert(all.end(), notes_.begin(), notes_.end());
    return all;
  }

  Checksums checksums;

 private:
  // What training cannot have heard of.
  struct Unknown {
    int64_t count = 0;
    int64_t everywhere = 0;  // utterances that have nothing else
    std::string first;
    void add(const std::string& name) {
      if (count++ == 0) first = name;
    }
  };

  void fail(const data::Utterance& utterance, const std::string& problem) const {
    TORCH_CHECK(own_.source.skip_bad, "speech: the utterance ", quote(utterance.id), " (", place(utterance),
                ") ", problem, "; task.skip_bad leaves such utterances out");
  }
  // An utterance that is an error in the training set alone.
  void refuse(const std::string& name, const data::Utterance& utterance, const std::string& problem) const {
    if (name == "train") fail(utterance, problem);
  }
  // One that is an error in each set.
  void leave_out(const std::string& name, const data::Utterance& utterance, const std::string& reason,
                 const std::string& why) {
    fail(utterance, "cannot be used: " + why);
    bad_.add(name, reason, place(utterance));
  }
  static std::string place(const data::Utterance& utterance) {
    return utterance.path.empty() ? utterance.stored : utterance.path.string();
  }

  bool aligned(const std::string& name, const data::Utterance& utterance, int64_t frames,
               const SpeechClasses& classes, Unknown& unknown) {
    try {
      const auto labels = frame_classes(own_, utterance, frames);
      const int64_t before = unknown.count;
      for (const int64_t label : labels)
        if (label >= classes.size()) unknown.add(std::to_string(label));
      unknown.everywhere += unknown.count - before == std::ssize(labels);
      return true;
    } catch (const c10::Error& error) {
      leave_out(name, utterance, "the alignment does not fit", error.what_without_backtrace());
      return false;
    }
  }

  const SpeechTaskOptions& own_;
  std::optional<data::FilterBank> bank_;  // of audio
  const DataRequest& request_;
  Labels labels_;
  data::BadExamples bad_;
  std::vector<std::string> notes_;
};

// A recipe may want that, but seldom does.
std::optional<std::string> note_of_numbers(const SpeechTaskOptions& own) {
  const nn::AlgebraSpec& algebra = own.model.algebra();
  if (algebra.n == 1 || algebra.n == own.components()) return std::nullopt;
  constexpr int64_t kMostComponents = 4;  // of features.derivatives = 3
  const std::string key = "features.derivatives = ";
  return key + std::to_string(own.derivatives) + " gives " + counted(own.components(), "component") +
         " of each band, and " + algebra.text() + " has " + std::to_string(algebra.n) +
         ": no number is one band with all its derivatives" +
         (algebra.n > kMostComponents ? "" : "; " + key + std::to_string(algebra.n - 1) + " makes it so");
}

// Names of an alignment's classes, where all of them have one.
std::map<int32_t, std::string> names_of(const data::SpeechCorpus& corpus, std::vector<std::string>& notes) {
  if (corpus.class_names.empty()) return {};
  for (const auto& utterance : corpus.train)
    for (const int32_t label : utterance.labels)
      if (!corpus.class_names.contains(label)) {
        notes.push_back("phones.txt has no name for the class " + std::to_string(label) +
                        ", which the alignment of " + quote(utterance.id) +
                        " has: the classes keep their numbers, and no phone error rate is counted");
        return {};
      }
  return corpus.class_names;
}

// The classes of a training set; or those of the run from whose weights training starts, where they are all
// among them: a small set lacks a letter or two.
SpeechClasses classes_of(const SpeechTaskOptions& own, const data::SpeechCorpus& corpus,
                         const DataRequest& request, std::vector<std::string>& notes) {
  SpeechClasses heard(own, corpus.train, names_of(corpus, notes));
  if (request.vocabulary.empty()) return heard;
  const std::filesystem::path file = request.vocabulary / SpeechClasses::kFile;
  SpeechClasses known = SpeechClasses::load(request.vocabulary);
  if (known == heard) return heard;
  const Recipe recipe = recipe_of_vocabulary(request);
  const auto& trained = recipe.own<SpeechTaskOptions>();
  const bool alike = trained.objective == own.objective && trained.units == own.units &&
                     trained.has_tokens() == own.has_tokens();
  const bool all_known =
      std::ranges::all_of(heard.names(), [&](const std::string& name) { return known.id(name) >= 0; });
  const auto named = [](const SpeechClasses& classes) {
    return classes.size() - (classes.id(SpeechClasses::kBlankName) >= 0);
  };
  const bool known_all = alike && all_known;
  if (!request.resumes)
    notes.push_back(known_all
                        ? "the classes are the " + std::to_string(named(known)) + " of " + file.string() +
                              ", of which these data have " + std::to_string(named(heard))
                        : note_of_new_head(static_cast<size_t>(named(heard)), file));
  return known_all ? known : heard;
}

}  // namespace

PreparedSpeech prepare_speech(Recipe& recipe, const DataRequest& request, Labels labels) {
  auto& own = recipe.own<SpeechTaskOptions>();
  settle_folder(own.source.reader, own.source.folder, data::speech_readers(), request.folder, recipe.name);
  data::SpeechSource source = own.source;
  source.dev_speakers = data::split(own.dev_speakers, data::Tokenizer::whitespace);
  source.test_speakers = data::split(own.test_speakers, data::Tokenizer::whitespace);
  source.alignments =
      labels == Labels::needed && own.objective == Objective::frames && own.source.reader == "kaldi";
  source.only = request.split;
  source.only_if_there = labels == Labels::none;
  source.words = own.needs_words();
  data::SpeechCorpus corpus = data::load_speech(source);
  const auto& first = !corpus.train.empty() ? corpus.train : !corpus.dev.empty() ? corpus.dev : corpus.test;
  if (first.empty()) return {};
  if (own.source.stored_features) {
    const int64_t columns = data::read_stored_features(first.front()).size(1);
    TORCH_CHECK(!request.model || columns == own.bank.bands, "data: the stored features in ",
                own.source.folder.string(), " have ", columns, " columns, but those of the run had ",
                own.bank.bands, "; make them in the same way");
    own.bank.bands = columns;
    own.columns_read = true;
  } else if (own.bank.rate == 0)
    own.bank.rate = first.front().rate;
  own.check(recipe);  // again: the number of bands may be another

  const auto* trained = dynamic_cast<const SpeechModel*>(request.model);
  std::vector<std::string> class_notes;
  SpeechClasses classes = trained ? trained->parts.classes : classes_of(own, corpus, request, class_notes);
  own.classes_named = own.objective == Objective::frames && !own.is_timit() && classes.are_named();
  Preparation preparation(recipe, request, labels, std::move(corpus.bad));
  SpeechSplits splits;
  const std::pair<const char*, std::vector<data::Utterance>*> sets[] = {
      {"train", &corpus.train}, {"dev", &corpus.dev}, {"test", &corpus.test}};
  for (const auto& [name, utterances] : sets) {
    if (utterances->empty() || (!request.split.empty() && request.split != name)) continue;
    SpeechSplit split = preparation.split(name, std::move(*utterances), classes);
    preparation.number(split, name, classes);
    preparation.measure_speakers(split);
    if (split.set->size() > 0) splits.emplace(name, std::move(split));
  }
  auto notes = preparation.notes();
  notes.insert(notes.begin(), corpus.notes.begin(), corpus.notes.end());
  notes.insert(notes.begin(), class_notes.begin(), class_notes.end());
  if (const auto note = note_of_numbers(own); note && !trained) notes.insert(notes.begin(), *note);
  if (request.split.empty() && !splits.contains("test"))
    notes.emplace_back("task.test_speakers can name the speakers of a test set");
  return {std::move(splits), std::move(classes), std::move(notes), std::move(preparation.checksums)};
}

}  // namespace quatrain::tasks
