#include "models/token_lists.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "nn/check.h"

namespace quatrain::models {
namespace {

// Rows whose length is a multiple of this are added up alike, whatever stands behind their ends.
constexpr int64_t kUnit = 64;

void make_set(std::vector<int64_t>& tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

}  // namespace

TokenLists::TokenLists(const Shortlist& shortlist, const SearchOptions& search, at::Device device)
    : shortlist_(shortlist), search_(search), device_(device), marks_{search.pad, search.begin, search.end} {
  make_set(marks_);
}

void TokenLists::add(const Tokens& source, const Tokens& prefix) {
  Tokens tokens = shortlist_.tokens(source);
  if (!prefix.empty()) {
    tokens.insert(tokens.end(), prefix.begin(), prefix.end());
    make_set(tokens);
  }
  Tokens& list = lists_.emplace_back(marks_);
  std::set_difference(tokens.begin(), tokens.end(), marks_.begin(), marks_.end(), std::back_inserter(list));
}

void TokenLists::finish() {
  const auto targets = static_cast<size_t>(shortlist_.targets());
  std::vector<int64_t> columns(targets, -1);
  size_t longest = 0;
  for (const Tokens& list : lists_) {
    for (const int64_t token : list) {
      nn::require(token >= 0 && token < shortlist_.targets(), "translate: tokens must be from 0 to ",
                  targets - 1, ", got ", token);
      columns[static_cast<size_t>(token)] = 0;
    }
    longest = std::max(longest, list.size());
  }
  Tokens all;
  for (size_t token = 0; token < targets; ++token)
    if (columns[token] == 0) {
      columns[token] = static_cast<int64_t>(all.size());
      all.push_back(static_cast<int64_t>(token));
    }
  const auto sentences = static_cast<int64_t>(lists_.size());
  const int64_t least = std::max(static_cast<int64_t>(longest), search_.beam);
  const int64_t width = (least + kUnit - 1) / kUnit * kUnit;
  columns_ = at::zeros({sentences, width}, at::kLong);
  hidden_ = at::ones({sentences, width}, at::kBool);
  for (int64_t row = 0; row < sentences; ++row) {
    const Tokens& list = lists_[static_cast<size_t>(row)];
    int64_t* const places = columns_.mutable_data_ptr<int64_t>() + row * width;
    for (size_t i = 0; i < list.size(); ++i) places[i] = columns[static_cast<size_t>(list[i])];
    std::fill_n(hidden_.mutable_data_ptr<bool>() + row * width, list.size(), false);
  }
  all_ = at::tensor(all, at::kLong).to(device_);
  columns_ = columns_.to(device_);
  hidden_ = hidden_.to(device_);
}

int64_t TokenLists::place(size_t sentence, int64_t token) const {
  const Tokens& list = lists_[sentence];
  const auto others = list.begin() + static_cast<std::ptrdiff_t>(marks_.size());
  if (const auto mark = std::find(list.begin(), others, token); mark != others) return mark - list.begin();
  const auto found = std::lower_bound(others, list.end(), token);
  return found != list.end() && *found == token ? found - list.begin() : -1;
}

int64_t TokenLists::token(size_t sentence, int64_t place) const {
  return lists_[sentence][static_cast<size_t>(place)];
}

TokenLists::Tokens TokenLists::places(size_t sentence, const Tokens& tokens) const {
  Tokens all;
  for (const int64_t token : tokens) all.push_back(place(sentence, token));
  return all;
}

TokenLists::Tokens TokenLists::tokens(size_t sentence, const Tokens& places) const {
  Tokens all;
  for (const int64_t place : places) all.push_back(token(sentence, place));
  return all;
}

SearchOptions TokenLists::search() const {
  const auto place_of = [&](int64_t mark) {
    return std::find(marks_.begin(), marks_.end(), mark) - marks_.begin();
  };
  SearchOptions search = search_;
  search.pad = place_of(search_.pad);
  search.begin = place_of(search_.begin);
  search.end = place_of(search_.end);
  search.banned.clear();
  return search;
}

std::vector<TokenLists::Tokens> TokenLists::banned(size_t sentence) const {
  std::vector<Tokens> possible;
  for (const Tokens& sequence : search_.banned)
    if (Tokens own = places(sentence, sequence); std::find(own.begin(), own.end(), -1) == own.end())
      possible.push_back(std::move(own));
  return possible;
}

at::Tensor TokenLists::own(const at::Tensor& scores, const at::Tensor& sentences) const {
  at::Tensor own = scores.gather(1, columns_.index_select(0, sentences));
  hide(own, sentences);
  return own;
}

void TokenLists::hide(at::Tensor& own, const at::Tensor& sentences) const {
  own.masked_fill_(hidden_.index_select(0, sentences), -std::numeric_limits<double>::infinity());
}

}  // namespace quatrain::models
