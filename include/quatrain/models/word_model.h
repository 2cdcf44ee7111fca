#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "quatrain/api.h"

namespace quatrain::models {

/// A language model as a decoder asks it: an automaton whose states are numbers. Scores are natural
/// logarithms.
class QUATRAIN_API WordModel {
 public:
  virtual ~WordModel() = default;

  virtual int64_t words() const = 0;  ///< they are 0 to words() - 1
  virtual int64_t start() const = 0;
  /// The score of a word in a state, which is then the one behind the word.
  virtual double advance(int64_t& state, int64_t word) const = 0;
  /// The score of an end in a state.
  virtual double end(int64_t state) const = 0;
};

/// A class with these functions as a WordModel. data::BackOffModel is one, and data knows no models.
template <class Model>
std::shared_ptr<const WordModel> as_word_model(std::shared_ptr<const Model> model) {
  class Adapter : public WordModel {
   public:
    explicit Adapter(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
    int64_t words() const override { return model_->words(); }
    int64_t start() const override { return model_->start(); }
    double advance(int64_t& state, int64_t word) const override { return model_->advance(state, word); }
    double end(int64_t state) const override { return model_->end(state); }

   private:
    std::shared_ptr<const Model> model_;
  };
  return std::make_shared<const Adapter>(std::move(model));
}

}  // namespace quatrain::models
