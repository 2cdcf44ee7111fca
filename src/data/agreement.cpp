#include "quatrain/data/agreement.h"

#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "data/agreement_lexicon.h"
#include "data/generated_sizes.h"
#include "data/random.h"
#include "data/text_file.h"

// The grammar. [..] is optional; every noun phrase but the subject may have either number.
//
//   prefix    = [opening] subject modifier* [that event] [adverb]
//   opening   = adverb-like | adverb "," | preposition phrase [preposition phrase] [","]
//             | conjunction phrase event ","
//   phrase    = determiner [adjective] noun
//   modifier  = preposition phrase | that phrase(person) deed | that effect phrase
//
// The modifiers hold as many nouns of the other number as there are attractors, and a few of the subject's
// own.
namespace quatrain::data {
namespace {

enum Number { kSingular, kPlural };

struct Noun {
  std::string form[2];
  bool person;
};

struct Lexicon {
  std::vector<Noun> nouns, persons;
  std::vector<std::string> determiners, adjectives, prepositions, deeds, effects, events, conjunctions,
      openings, adverbs;
};

std::vector<std::string> words(std::string_view text) {
  return split(text, Tokenizer::whitespace);
}

std::string plural_of(const std::string& noun) {
  const auto ends = [&](std::string_view end) { return noun.ends_with(end); };
  if (ends("s") || ends("x") || ends("ch") || ends("sh")) return noun + "es";
  const bool after_vowel =
      noun.size() > 1 && std::string_view("aeiou").find(noun[noun.size() - 2]) != std::string_view::npos;
  if (ends("y") && !after_vowel) return noun.substr(0, noun.size() - 1) + "ies";
  return noun + "s";
}

void add_nouns(std::vector<Noun>& nouns, std::string_view text, bool person) {
  for (const auto& entry : words(text)) {
    const auto colon = entry.find(':');
    const auto singular = entry.substr(0, colon);
    nouns.push_back(
        {{singular, colon == std::string::npos ? plural_of(singular) : entry.substr(colon + 1)}, person});
  }
}

const Lexicon& lexicon_of_grammar() {
  static const Lexicon all = [] {
    using namespace lexicon;
    Lexicon made{{},
                 {},
                 words(kDeterminers),
                 words(kAdjectives),
                 words(kPrepositions),
                 words(kDeeds),
                 words(kEffects),
                 words(kEvents),
                 words(kConjunctions),
                 words(kOpenings),
                 words(kAdverbs)};
    add_nouns(made.persons, kPersons, true);
    made.nouns = made.persons;
    add_nouns(made.nouns, kThings, false);
    return made;
  }();
  return all;
}

/// Builds one prefix after the other.
class Grammar {
 public:
  explicit Grammar(uint64_t seed) : random_(seed) {}

  std::string prefix(Number subject, int64_t attractors) {
    text_.clear();
    open();
    bool person = phrase(lexicon_.nouns, subject);

    const auto other = static_cast<Number>(1 - subject);
    std::vector<Number> numbers(static_cast<size_t>(attractors), other);
    if (random_.chance(0.5)) numbers.push_back(subject);
    if (random_.chance(0.25)) numbers.push_back(subject);
    random_.shuffle(numbers);
    for (const auto number : numbers) person = modify(number, person);

    if (random_.chance(0.1)) {
      relative(person);
      say(lexicon_.events);
    }
    if (random_.chance(0.15)) say(lexicon_.adverbs);
    return text_;
  }

  void shuffle(std::vector<Example>& examples) { random_.shuffle(examples); }

 private:
  void say(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
  }
  void say(const std::vector<std::string>& words) { say(random_.pick(words)); }
  Number any_number() { return random_.chance(0.5) ? kPlural : kSingular; }
  void relative(bool person) { say(random_.chance(0.7) ? "that" : person ? "who" : "which"); }

  /// Says a noun phrase; true if it is a person.
  bool phrase(const std::vector<Noun>& nouns, Number number) {
    say(lexicon_.determiners);
    if (random_.chance(0.3)) say(lexicon_.adjectives);
    const Noun& noun = random_.pick(nouns);
    say(noun.form[number]);
    return noun.person;
  }

  void open() {
    const uint64_t kind = random_.below(20);
    if (kind < 9) return;
    if (kind < 11) {
      say(lexicon_.openings);
      if (random_.chance(0.5)) say(",");
    } else if (kind < 17) {
      say(lexicon_.prepositions);
      phrase(lexicon_.nouns, any_number());
      if (random_.chance(0.3)) {
        say(lexicon_.prepositions);
        phrase(lexicon_.nouns, any_number());
      }
      if (random_.chance(0.7)) say(",");
    } else {
      say(lexicon_.conjunctions);
      phrase(lexicon_.nouns, any_number());
      say(lexicon_.events);
      say(",");
    }
  }

  /// Says something about the noun before, with a noun of its own; true if that is a person.
  bool modify(Number number, bool person) {
    switch (random_.below(4)) {
      case 0:
        relative(person);
        phrase(lexicon_.persons, number);
        say(lexicon_.deeds);
        return false;  // what follows is said of the outer noun or this one: "that" or "which" serve both
      case 1:
        relative(person);
        say(lexicon_.effects);
        return phrase(lexicon_.nouns, number);
      default:
        say(lexicon_.prepositions);
        return phrase(lexicon_.nouns, number);
    }
  }

  const Lexicon& lexicon_ = lexicon_of_grammar();
  Random random_;
  std::string text_;
};

void check(const AgreementOptions& options) {
  check_sizes("generate_agreement", options.train, options.dev, options.test);
  double sum = 0;
  for (const double share : options.shares) {
    TORCH_CHECK(std::isfinite(share) && share >= 0,
                "generate_agreement: shares must be finite and not negative, got ", share);
    sum += share;
  }
  TORCH_CHECK(sum > 0, "generate_agreement: one of the shares must be above 0, all are 0");
}

/// How many sentences have 0, 1, .. attractors: the rounded share each, the same total.
std::array<int64_t, 5> counts(int64_t size, const std::array<double, 5>& shares) {
  double sum = 0;
  for (const double share : shares) sum += share;
  std::array<int64_t, 5> result;
  double covered = 0;
  int64_t before = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    covered += shares[i];
    const int64_t until = std::llround(static_cast<double>(size) * covered / sum);
    result[i] = until - before;
    before = until;
  }
  return result;
}

}  // namespace

Splits generate_agreement(const AgreementOptions& options) {
  check(options);
  Grammar grammar(options.seed);
  std::unordered_set<std::string> made;
  const auto make = [&](int64_t size) {
    std::vector<Example> examples;
    const auto each = counts(size, options.shares);
    for (size_t attractors = 0; attractors < each.size(); ++attractors) {
      for (int64_t i = 0; i < each[attractors]; ++i) {
        const auto label = static_cast<Number>(i % 2);
        int tries = 0;
        auto fresh = made.end();
        for (bool added = false; !added;) {
          std::tie(fresh, added) = made.insert(grammar.prefix(label, static_cast<int64_t>(attractors)));
          TORCH_CHECK(added || ++tries < 10000, "generate_agreement: the grammar has too few sentences with ",
                      attractors, " attractors for ", each[attractors],
                      " different ones; ask for a smaller set");
        }
        examples.push_back({*fresh, label, static_cast<int64_t>(attractors)});
      }
    }
    grammar.shuffle(examples);
    return examples;
  };
  Splits splits;
  splits.test = make(options.test);  // first, so that the size of train does not change it
  splits.dev = make(options.dev);
  splits.train = make(options.train);
  splits.labels = {"singular", "plural"};
  splits.group_name = "attractors";
  return splits;
}

}  // namespace quatrain::data
