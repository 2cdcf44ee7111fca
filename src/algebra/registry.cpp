#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "algebra/builtin.h"
#include "algebra/signature.h"
#include "quatrain/algebra.h"
#include "support/nearest_name.h"
#include "support/text.h"

namespace quatrain::algebra {
namespace {

class Registry {
 public:
  /// Never destroyed: layers in static storage may outlive any order of destruction.
  static Registry& instance() {
    static auto* registry = new Registry;
    return *registry;
  }

  const Algebra* find(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = algebras_.find(name);
    return found == algebras_.end() ? nullptr : found->second.get();
  }

  /// The algebra that has this one's name; takes this one where none has.
  const Algebra& keep(std::unique_ptr<Algebra>& algebra, bool added) {
    const std::unique_lock lock(mutex_);
    auto& place = algebras_[algebra->name()];
    if (!place) {
      if (added) added_.push_back({algebra->name(), algebra->n()});
      place = std::move(algebra);
    }
    return *place;
  }

  std::vector<Listed> added() const {
    const std::shared_lock lock(mutex_);
    return added_;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<Algebra>, std::less<>> algebras_;
  std::vector<Listed> added_;
};

std::vector<Listed> all_listed() {
  std::vector<Listed> all = listed();
  const auto added = Registry::instance().added();
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

// The algebra of a canonical name, built on its first use; nullptr for an unknown one.
const Algebra* find_or_build(const std::string& name) {
  Registry& registry = Registry::instance();
  if (const Algebra* known = registry.find(name)) return known;
  auto definition = builtin(name);
  if (!definition) return nullptr;
  // Built outside the lock: two threads may both build it, and the first one's is kept.
  auto algebra =
      std::make_unique<Algebra>(name, definition->table.n, std::move(definition->table.values),
                                std::move(definition->factors), std::move(definition->conjugation));
  return &registry.keep(algebra, /*added=*/false);
}

// The factors of a listed algebra that has this table.
std::optional<Factors> known_factors(int n, const std::vector<double>& table) {
  for (const auto& entry : all_listed()) {
    if (entry.n != n) continue;
    const Algebra& algebra = get(entry.name);
    if (algebra.has_fast_factors() && algebra.table() == table) return algebra.factors();
  }
  return std::nullopt;
}

}  // namespace

const Algebra& get(std::string_view text) {
  if (const Algebra* known = Registry::instance().find(text)) return *known;
  const std::string name = canonical_name(text);
  if (const Algebra* known = find_or_build(name)) return *known;

  std::vector<std::string> known = names();
  known.insert(known.end(), signatures().begin(), signatures().end());
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = did_you_mean(parse_call(name).head, known);
  if (hint.empty()) hint = "; names() and `quatrain info algebras` list all";
  throw std::invalid_argument("algebra: unknown algebra " + quote(name) + hint);
}

const Algebra& add(std::string name, int n, std::vector<double> table, std::optional<Factors> factors,
                   std::vector<double> conjugation) {
  for (const char* word : {"learned", "factored", "phm", "wkp", "identity"}) {
    if (name == word) throw std::invalid_argument("algebra: the name \"" + name + "\" is reserved");
  }
  const Algebra* taken = find_or_build(canonical_name(name));
  if (!taken && !is_identifier(name)) {
    throw std::invalid_argument(
        "algebra: a name must be letters, digits and '_' and begin with a letter, got " + quote(name));
  }
  if (!factors) factors = known_factors(n, table);
  auto algebra = std::make_unique<Algebra>(std::move(name), n, std::move(table), std::move(factors),
                                           std::move(conjugation));
  const Algebra& kept = taken ? *taken : Registry::instance().keep(algebra, /*added=*/true);
  if (algebra && (kept.table() != algebra->table() || kept.conjugation() != algebra->conjugation())) {
    throw std::invalid_argument(
        "algebra: the name " + quote(kept.name()) +
        " is taken by an algebra with another table or conjugation; choose another name");
  }
  return kept;
}

std::vector<std::string> names() {
  std::vector<Listed> all = all_listed();
  std::sort(all.begin(), all.end(),
            [](const Listed& x, const Listed& y) { return std::tie(x.n, x.name) < std::tie(y.n, y.name); });
  std::vector<std::string> result;
  for (auto& entry : all) result.push_back(std::move(entry.name));
  return result;
}

}  // namespace quatrain::algebra
