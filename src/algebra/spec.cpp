#include <stdexcept>

#include "algebra/signature.h"
#include "quatrain/algebra.h"
#include "support/nearest_name.h"

namespace quatrain::algebra {
namespace {

int learned_dimension(std::string_view text, int n) {
  if (n < 1 || n > kMaxDimension) {
    throw std::invalid_argument("algebra: a learned algebra's n must be from 1 to " +
                                std::to_string(kMaxDimension) + ", got " + std::string(text));
  }
  return n;
}

constexpr std::string_view kTrainedRank = "trained_rank";
constexpr int kMaxTrainedRank = kMaxDimension * kMaxDimension;

/// Of " = 6".
int parse_trained_rank(std::string_view text, std::string_view after, bool weighted) {
  if (weighted) {
    throw std::invalid_argument("algebra: trained factors have room for the weights of wkp; write phm in " +
                                std::string(text));
  }
  const size_t equals = after.find('=');
  const auto rank = equals == std::string_view::npos ? std::nullopt : parse_int(after.substr(equals + 1));
  if (!rank || *rank < 1 || *rank > kMaxTrainedRank) {
    throw std::invalid_argument("algebra: trained_rank must be a number from 1 to " +
                                std::to_string(kMaxTrainedRank) + ", like phm(4, trained_rank=6), got " +
                                std::string(text));
  }
  return *rank;
}

/// Factors that are trained hold at least those that they start from.
void require_rank(const Spec& spec, int rank, std::string_view text) {
  if (spec.trained_rank > 0 && spec.trained_rank < rank) {
    throw std::invalid_argument("algebra: that start has factors of rank " + std::to_string(rank) +
                                ", so trained_rank must be at least " + std::to_string(rank) + ", got " +
                                std::string(text));
  }
}

/// Of "quaternion, ".
std::string before_comma(std::string_view text, std::string inner) {
  const size_t comma = inner.find_last_not_of(" \t");
  if (comma == std::string::npos || inner[comma] != ',') {
    throw std::invalid_argument(
        "algebra: trained_rank stands after a comma, like phm(4, trained_rank=6), got " + std::string(text));
  }
  inner.resize(comma);
  return inner;
}

}  // namespace

Spec Spec::parse(std::string_view text) {
  const Call call = parse_call(text);
  Spec spec;
  spec.learned = call.head == "phm" || call.head == "wkp";
  spec.weighted = call.head == "wkp";
  if (!spec.learned) {
    if (call.head.empty()) {
      throw std::invalid_argument(
          "algebra: no algebra is given; write a name like quaternion, or phm(4) for a learned one");
    }
    if (call.head == "identity") {
      throw std::invalid_argument("algebra: identity(n) is where a learned algebra starts; write phm(" +
                                  canonical_name(text) + ")");
    }
    if (call.inner && parse_int(*call.inner)) {
      if (const auto hint = nearest(call.head, {"phm", "wkp"}); !hint.empty()) {
        throw std::invalid_argument("algebra: unknown algebra \"" + canonical_name(text) +
                                    "\" (did you mean " + hint + "(" + *call.inner + ")?)");
      }
    }
    const Algebra& algebra = get(text);
    spec.n = algebra.n();
    spec.name = algebra.name();
    return spec;
  }
  if (!call.inner || call.inner->empty()) {
    throw std::invalid_argument("algebra: " + call.head + " needs a dimension, a name or identity(n), like " +
                                call.head + "(4), " + call.head + "(quaternion) or " + call.head +
                                "(identity(4)); got " + std::string(text));
  }
  std::string inner = *call.inner;
  if (const size_t at = inner.find(kTrainedRank); at != std::string::npos) {
    spec.trained_rank = parse_trained_rank(text, inner.substr(at + kTrainedRank.size()), spec.weighted);
    inner = before_comma(text, inner.substr(0, at));
  }
  const Call start = parse_call(inner);
  if (const auto n = parse_int(inner)) {
    spec.n = learned_dimension(text, *n);
    spec.start = Start::random;
    spec.name.clear();
  } else if (start.head == "identity") {
    const auto size = start.inner ? parse_int(*start.inner) : std::nullopt;
    if (!size) {
      throw std::invalid_argument("algebra: identity needs a dimension, like " + call.head +
                                  "(identity(4)), got " + std::string(text));
    }
    spec.n = learned_dimension(text, *size);
    spec.start = Start::identity;
    spec.name.clear();
    require_rank(spec, spec.n, text);
  } else {
    const Algebra& algebra = get(inner);
    spec.n = algebra.n();
    spec.name = algebra.name();
    require_rank(spec, algebra.factors().rank, text);
  }
  return spec.n == 1 ? Spec{} : spec;  // a scalar A is dropped
}

std::string Spec::text() const {
  if (!learned) return name;
  const std::string head = weighted ? "wkp(" : "phm(";
  const std::string end = trained_rank > 0 ? ", trained_rank=" + std::to_string(trained_rank) + ")" : ")";
  switch (start) {
    case Start::random:
      return head + std::to_string(n) + end;
    case Start::identity:
      return head + "identity(" + std::to_string(n) + ")" + end;
    case Start::table:
      break;
  }
  return head + name + end;
}

}  // namespace quatrain::algebra
