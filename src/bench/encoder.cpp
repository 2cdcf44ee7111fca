#include "quatrain/nn/encoder.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>

#include "bench/encoder.h"
#include "bench/pass.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"
#include "support/numbers.h"

namespace quatrain::bench {
namespace {

nn::TransformerEncoderLayer encoder_layer(const EncoderCase& asked, const std::string& algebra) {
  torch::manual_seed(0);
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(asked.width, asked.heads)
                                        .feed_forward(asked.feed_forward)
                                        .algebra(algebra)
                                        .dropout(asked.dropout));
  layer->eval();
  if (!asked.training) nn::factorize(*layer);
  layer->train(asked.training);
  return layer;
}

at::Tensor random_texts(const EncoderCase& asked) {
  return torch::randn({asked.batch, asked.sequence, asked.width});
}

/// The layer and what it is made of, each timed alone; names begin with `whose`.
std::vector<Candidate> parts_of(const EncoderCase& asked, const std::string& whose,
                                nn::TransformerEncoderLayer layer, const at::Tensor& x,
                                const at::Tensor& grad) {
  auto attention = layer->attention;
  auto feed_forward = layer->feed_forward;
  const auto call = [&](auto forward, const torch::nn::Module& module) {
    return pass_of(asked.training, forward, module.parameters(), x, grad);
  };
  std::vector<Call> maps;
  for (auto map : {attention->query, attention->key, attention->value, attention->output})
    maps.push_back(call([map](const at::Tensor& v) mutable { return map->forward(v); }, *map));
  return {
      {whose, call([layer](const at::Tensor& v) mutable { return layer->forward(v); }, *layer),
       nn::parameter_report(*layer).total},
      {whose + " attention",
       call([attention](const at::Tensor& v) mutable { return attention->self_attention(v); }, *attention)},
      {whose + " maps",
       [maps] {
         for (const auto& map : maps) map();
       }},
      {whose + " feed-forward",
       call([feed_forward](const at::Tensor& v) mutable { return feed_forward->forward(v); },
            *feed_forward)}};
}

/// Seconds of the parts. between: what the attention does between its maps; rest: norms, residuals, dropout.
struct EncoderParts {
  EncoderParts(const Found& found, const std::string& whose)
      : maps(found.at(whose + " maps").time.median),
        feed_forward(found.at(whose + " feed-forward").time.median) {
    const double attention = found.at(whose + " attention").time.median;
    between = std::max(0.0, attention - maps);
    rest = std::max(0.0, found.at(whose).time.median - attention - feed_forward);
  }
  Field::Parts microseconds() const {
    return {{"maps", maps * 1e6},
            {"between", between * 1e6},
            {"feed_forward", feed_forward * 1e6},
            {"rest", rest * 1e6}};
  }

  double maps = 0, between = 0, feed_forward = 0, rest = 0;
};

std::vector<Field> fields_of_parts(const Found& found) {
  const EncoderParts ours(found, "ours"), real(found, "real");
  return {column("maps", seconds(ours.maps)),
          share_column("", ours.maps, real.maps),
          column("between", seconds(ours.between)),
          share_column("", ours.between, real.between),
          column("feed-fwd", seconds(ours.feed_forward)),
          share_column("", ours.feed_forward, real.feed_forward),
          column("rest", seconds(ours.rest)),
          hidden("parts_us", ours.microseconds()),
          hidden("real_parts_us", real.microseconds())};
}

std::vector<Field> asked_fields(const EncoderCase& asked) {
  return {field("algebra", asked.algebra),
          column("batch", std::to_string(asked.batch) + "x" + std::to_string(asked.sequence), true),
          hidden("width", asked.width),
          hidden("heads", asked.heads),
          hidden("feed_forward", asked.feed_forward),
          hidden("sequence", asked.sequence),
          hidden("batch", asked.batch),
          hidden("dropout", asked.dropout),
          hidden("dtype", "float32")};
}

}  // namespace

Subject encoder(const std::vector<EncoderCase>& cases, double seconds) {
  Subject subject;
  if (!cases.empty())
    subject.title = "An encoder layer: width " + std::to_string(cases.front().width) + ", " +
                    counted(cases.front().heads, "head") + ", feed-forward " +
                    std::to_string(cases.front().feed_forward) + ", float32";
  subject.notes =
      "batch: texts x words. maps: the attention's four. between: what the attention does between them, "
      "scores "
      "and weights.\nrest: norms, residuals, dropout. Beside the parts their shares of the real twin's.\n";
  subject.timing = {.seconds = seconds, .turn = 300e-6};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads, .training = asked.training};
    for (const bool real : {false, true})
      one.memory.emplace_back(real ? "real" : "ours", [asked, real] {
        const auto layer = encoder_layer(asked, real ? "real" : asked.algebra);
        const at::Tensor x = random_texts(asked), grad = random_texts(asked);
        return parts_of(asked, "", layer, x, grad).front().call;
      });
    one.make = [asked] {
      const auto ours = encoder_layer(asked, asked.algebra), real = encoder_layer(asked, "real");
      const at::Tensor x = random_texts(asked), grad = random_texts(asked);
      Contest contest{.candidates = parts_of(asked, "ours", ours, x, grad)};
      for (auto& part : parts_of(asked, "real", real, x, grad)) contest.candidates.push_back(std::move(part));
      contest.contenders.push_back({.asked = asked_fields(asked), .more = fields_of_parts});
      return contest;
    };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
