#include "cli/layer_timing.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_file.h"
#include "cli/timing.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::cli {
namespace {

// A layer as something to call.
struct Candidate {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

std::vector<Candidate> make_layers(int64_t width) {
  std::vector<Candidate> layers;
  torch::nn::Linear real(width, width);
  layers.push_back(
      {"torch::nn::Linear", real.ptr(), [real](const at::Tensor& x) mutable { return real->forward(x); }});
  for (const char* algebra : {"quaternion", "phm(4)", "octonion"}) {
    nn::Linear layer(nn::LinearOptions(width, width).algebra(algebra));
    layers.push_back(
        {algebra, layer.ptr(), [layer](const at::Tensor& x) mutable { return layer->forward(x); }});
  }
  return layers;
}

}  // namespace

LayerTimes measure_layers(int64_t width, double seconds) {
  torch::manual_seed(0);
  LayerTimes times;
  times.width = width;
  times.threads = at::get_num_threads();
  times.batches = {1, 32, 128, 1024};
  const auto layers = make_layers(width);
  for (const auto& layer : layers)
    times.layers.push_back({layer.name, nn::parameter_report(*layer.module).total, {}, {}});
  const TimingOptions options{.seconds = seconds / (2 * static_cast<double>(times.batches.size()))};
  const auto note = [&](auto member, const std::vector<std::function<void()>>& calls) {
    const auto medians = interleaved_medians(calls, options);
    for (size_t i = 0; i < medians.size(); ++i) (times.layers[i].*member).push_back(medians[i]);
  };
  for (const int64_t batch : times.batches) {
    const at::Tensor x = at::randn({batch, width});
    std::vector<std::function<void()>> inference, training;
    for (const auto& layer : layers) {
      inference.push_back([&layer, x] {
        const torch::NoGradGuard no_grad;
        layer.forward(x);
      });
      training.push_back([&layer, input = x.clone().requires_grad_(), grad = at::randn({batch, width})] {
        layer.module->zero_grad();
        input.mutable_grad().reset();
        layer.forward(input).backward(grad);
      });
    }
    for (const auto& layer : layers) {
      layer.module->eval();
      if (auto* linear = layer.module->as<nn::LinearImpl>()) linear->factorize();
    }
    note(&LayerTime::inference, inference);
    for (const auto& layer : layers) layer.module->train();
    note(&LayerTime::training, training);
  }
  return times;
}

std::string report(const LayerTimes& times) {
  Table table("lr");
  std::vector<std::string> header{"", ""}, batches{"", "parameters"};
  for (const char* what : {"inference", "training"})
    for (const int64_t batch : times.batches) {
      header.push_back(batch == times.batches.front() ? what : "");
      batches.push_back("batch " + std::to_string(batch));
    }
  table.row(header);
  table.row(batches);
  table.rule();
  const LayerTime& real = times.layers.front();
  for (const auto& layer : times.layers) {
    const bool is_real = &layer == &real;
    std::vector<std::string> row{layer.name, grouped(layer.parameters)};
    for (const auto member : {&LayerTime::inference, &LayerTime::training})
      for (size_t i = 0; i < times.batches.size(); ++i)
        row.push_back(is_real ? seconds((layer.*member)[i]) : ratio((layer.*member)[i], (real.*member)[i]));
    table.row(row);
  }
  return "Single layers, " + std::to_string(times.width) + " -> " + std::to_string(times.width) +
         ", float32, " + counted(times.threads, "thread") +
         ": times of torch::nn::Linear, and the others' ratio to them\n\n" + table.text();
}

nlohmann::ordered_json to_json(const LayerTimes& times) {
  nlohmann::ordered_json json{{"width", times.width}, {"threads", times.threads}, {"batches", times.batches}};
  for (const auto& layer : times.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"parameters", layer.parameters},
                              {"inference_seconds", layer.inference},
                              {"training_seconds", layer.training}});
  return json;
}

int bench_command(const BenchArguments& arguments) {
  const auto times = measure_layers(arguments.width, arguments.seconds);
  if (!arguments.json.empty()) write_json(to_json(times), arguments.json);
  if (arguments.json != "-") std::fputs(report(times).c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
