#include "quatrain/data/entailment.h"

#include <c10/util/Exception.h>

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "data/generated_sizes.h"
#include "data/random.h"
#include "quatrain/data/text_pairs.h"

namespace quatrain::data {
namespace {

enum PairLabel { kEntailment, kNeutral, kContradiction };
enum PairPart { kAlignment, kOrder };

struct Category {
  std::string name;
  std::vector<std::string> members;
};

std::vector<std::string> list_of_words(std::string_view text) {
  return split(text, Tokenizer::whitespace);
}

struct PairLexicon {
  std::vector<Category> categories;
  std::vector<std::string> adjectives, deeds, places;
  std::vector<std::pair<std::string, std::string>> events;  // "sleeps", "sleep"
};

const PairLexicon& lexicon_of_pairs() {
  static const PairLexicon all{
      {{"animal", list_of_words("dog cat horse cow sheep goat fox wolf bear lion tiger rabbit")},
       {"bird", list_of_words("eagle sparrow owl crow pigeon robin swan goose parrot heron falcon hen")},
       {"person",
        list_of_words("baker doctor teacher farmer sailor pilot singer nurse judge painter tailor miner")},
       {"vehicle", list_of_words("car bus truck train tram van taxi lorry bicycle tractor wagon scooter")},
       {"machine", list_of_words("printer drill pump lathe loom mixer crane press turbine mower fan saw")},
       {"fish", list_of_words("salmon trout carp pike tuna cod herring shark eel perch bass mackerel")},
       {"insect", list_of_words("bee ant wasp beetle moth fly cricket gnat hornet locust mantis butterfly")},
       {"robot",
        list_of_words("android drone droid rover cyborg automaton probe humanoid golem bot walker sentry")}},
      list_of_words("old young small large dark bright slow quick quiet strange"),
      list_of_words("sees follows hears passes meets helps touches avoids finds watches"),
      {"here", "near the river", "by the door", "behind the house", "at night", "in the rain"},
      {{"sleeps", "sleep"},
       {"moves", "move"},
       {"stops", "stop"},
       {"waits", "wait"},
       {"turns", "turn"},
       {"falls", "fall"},
       {"returns", "return"},
       {"arrives", "arrive"}}};
  return all;
}

/// Draws the pairs of one part after another.
class PairGrammar {
 public:
  explicit PairGrammar(uint64_t seed) : random_(seed) {}

  // Whether either sentence is negated is drawn without regard to the label where the subject is another,
  // and to hit both equally often where it is not; so neither sentence's own words tell the label.
  TextPair alignment(PairLabel label) {
    const size_t subject = any_category();
    const size_t said = label == kNeutral ? another_category(subject) : subject;
    const bool first_negated = random_.chance(0.5);
    const bool second_negated =
        label == kNeutral ? random_.chance(0.5) : first_negated != (label == kContradiction);
    const auto& event = random_.pick(lexicon_.events);
    std::string first = "the ";
    if (random_.chance(0.5)) first += random_.pick(lexicon_.adjectives) + " ";
    first += member_of(subject) + predicate(event, first_negated);
    if (random_.chance(0.5)) first += " " + random_.pick(lexicon_.places);
    return {std::move(first), "the " + lexicon_.categories[said].name + predicate(event, second_negated),
            label, kAlignment};
  }

  // The pair that is entailed, and the one whose second sentence has the same words in another order.
  std::pair<TextPair, TextPair> order() {
    const size_t one = any_category(), other = another_category(one);
    const std::string deed = " " + random_.pick(lexicon_.deeds) + " the ";
    std::string first = "the ";
    if (random_.chance(0.5)) first += random_.pick(lexicon_.adjectives) + " ";
    first += member_of(one) + deed + member_of(other);
    if (random_.chance(0.5)) first += " " + random_.pick(lexicon_.places);
    const std::string &a = lexicon_.categories[one].name, &b = lexicon_.categories[other].name;
    return {{first, "the " + a + deed + b, kEntailment, kOrder},
            {first, "the " + b + deed + a, kNeutral, kOrder}};
  }

  void shuffle(std::vector<TextPair>& pairs) { random_.shuffle(pairs); }

 private:
  size_t any_category() { return random_.below(lexicon_.categories.size()); }
  size_t another_category(size_t than) {
    const size_t drawn = random_.below(lexicon_.categories.size() - 1);
    return drawn < than ? drawn : drawn + 1;
  }
  const std::string& member_of(size_t category) {
    return random_.pick(lexicon_.categories[category].members);
  }
  static std::string predicate(const std::pair<std::string, std::string>& event, bool negated) {
    return negated ? " does not " + event.second : " " + event.first;
  }

  const PairLexicon& lexicon_ = lexicon_of_pairs();
  Random random_;
};

void check(const EntailmentOptions& options) {
  check_sizes("generate_entailment", options.train, options.dev, options.test);
  TORCH_CHECK(options.order_share >= 0 && options.order_share <= 1,
              "generate_entailment: order_share must be from 0 to 1, got ", options.order_share);
}

}  // namespace

TextPairSplits generate_entailment(const EntailmentOptions& options) {
  check(options);
  PairGrammar grammar(options.seed);
  std::unordered_set<std::string> made;
  // Draws until there is a pair that is new.
  const auto fresh = [&](const auto& draw, const char* part) {
    for (int tries = 0; tries < 10000; ++tries)
      if (auto drawn = draw(); made.insert(drawn.first + '\n' + drawn.second).second) return drawn;
    TORCH_CHECK(false, "generate_entailment: the grammar has too few pairs of the ", part,
                " part; ask for a smaller set");
  };
  const auto make = [&](int64_t size) {
    std::vector<TextPair> pairs;
    const auto twins = static_cast<int64_t>(static_cast<double>(size) * options.order_share / 2);
    for (int64_t i = 0; i < twins; ++i) {
      std::pair<TextPair, TextPair> drawn;
      pairs.push_back(fresh([&] { return (drawn = grammar.order()).first; }, "order"));
      made.insert(drawn.second.first + '\n' + drawn.second.second);
      pairs.push_back(std::move(drawn.second));
    }
    for (int64_t i = 2 * twins; i < size; ++i)
      pairs.push_back(fresh([&] { return grammar.alignment(static_cast<PairLabel>(i % 3)); }, "alignment"));
    grammar.shuffle(pairs);
    return pairs;
  };
  TextPairSplits splits;
  splits.test = make(options.test);  // first, so that the size of train does not change it
  splits.dev = make(options.dev);
  splits.train = make(options.train);
  splits.labels = {"entailment", "neutral", "contradiction"};
  splits.group_name = "part";
  splits.groups = {"alignment", "order"};
  splits.tokenizer = Tokenizer::whitespace;
  return splits;
}

}  // namespace quatrain::data
