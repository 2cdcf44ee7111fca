#include "cli/bench_encoder.h"

#include <torch/torch.h>

#include "cli/pass.h"
#include "cli/peak_memory.h"
#include "quatrain/nn/encoder.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::cli {
namespace {

nn::TransformerEncoderLayer make_layer(const EncoderCase& asked, const std::string& algebra) {
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

// The whole, the attention, its maps, the feed-forward: the order of EncoderTimes.
std::vector<std::function<void()>> calls_of(const EncoderCase& asked, nn::TransformerEncoderLayer layer,
                                            const at::Tensor& x, const at::Tensor& grad) {
  auto attention = layer->attention;
  auto feed_forward = layer->feed_forward;
  const auto call = [&](auto forward, const torch::nn::Module& module) {
    return pass_of(asked.training, forward, module.parameters(), x, grad);
  };
  std::vector<std::function<void()>> maps;
  for (auto map : {attention->query, attention->key, attention->value, attention->output})
    maps.push_back(call([map](const at::Tensor& v) mutable { return map->forward(v); }, *map));
  return {
      call([layer](const at::Tensor& v) mutable { return layer->forward(v); }, *layer),
      call([attention](const at::Tensor& v) mutable { return attention->self_attention(v); }, *attention),
      [maps] {
        for (const auto& map : maps) map();
      },
      call([feed_forward](const at::Tensor& v) mutable { return feed_forward->forward(v); }, *feed_forward)};
}

}  // namespace

int64_t encoder_memory(const EncoderCase& asked) {
  const Threads threads(asked.threads);
  return peak_memory([&asked] {
    const auto layer = make_layer(asked, asked.algebra);
    const at::Tensor x = random_texts(asked), grad = random_texts(asked);
    return calls_of(asked, layer, x, grad).front();
  });
}

EncoderResult measure_encoder(const EncoderCase& asked, double seconds) {
  const Threads threads(asked.threads);
  EncoderResult result;
  result.asked = asked;
  const auto ours = make_layer(asked, asked.algebra), real = make_layer(asked, "real");
  result.parameters = nn::parameter_report(*ours).total;
  result.real_parameters = nn::parameter_report(*real).total;
  const at::Tensor x = random_texts(asked), grad = random_texts(asked);
  auto calls = calls_of(asked, ours, x, grad);
  const int64_t without = ops::prepared_size().bytes;
  calls.front()();
  result.prepared = ops::prepared_size().bytes - without;
  for (auto& call : calls_of(asked, real, x, grad)) calls.push_back(std::move(call));
  TimingOptions timing;
  timing.seconds = seconds;
  timing.turn = 300e-6;
  const auto times = interleaved(calls, timing);
  result.ours = {times[0], times[1], times[2], times[3]};
  result.real = {times[4], times[5], times[6], times[7]};
  return result;
}

}  // namespace quatrain::cli
