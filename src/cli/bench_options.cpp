#include "cli/bench_options.h"

#include "cli/footers.h"
#include "cli/recipe_options.h"

namespace quatrain::cli {
namespace {

constexpr const char* kJson = "Write the cases as JSON too; - is the standard output";

void add_algebras(CLI::App& command, std::vector<std::string>& algebras) {
  command.add_option("--algebra", algebras, "Algebras, as layers take them: quaternion 'phm(4)' ...")
      ->capture_default_str();
}

void add_threads(CLI::App& command, std::vector<int>& threads) {
  command.add_option("--threads", threads, "Numbers of threads; torch's by default")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
}

void add_seconds(CLI::App& command, double& seconds) {
  command.add_option("--seconds", seconds, "About how long to measure a case")
      ->check(CLI::Range(0.0, 1e5))
      ->capture_default_str();
}

}  // namespace

void BenchOptions::add_to(CLI::App& bench, std::function<int()>& chosen) {
  chosen_ = &chosen;
  add_linear(bench);
  add_encoder(bench);
  add_recurrent(bench);
  add_convolution(bench);
  add_decoding(bench);
  add_pairs(bench);
  add_model(bench);
}

void BenchOptions::add_linear(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "linear", "Single linear layers: ours, torch's, and one that writes out its matrix");
  command->footer(kBenchLinearFooter);
  auto& a = linear_;
  const auto list = [&](const char* name, auto& values, const char* text) {
    return command->add_option(name, values, text)->delimiter(',')->capture_default_str();
  };
  add_algebras(*command, a.algebras);
  list("--sizes", a.sizes, "Widths, or INxOUT");
  list("--batch", a.batches, "Rows of the input")->check(CLI::Range(1, 1 << 20));
  list("--dtype", a.dtypes, "Types")->check(CLI::IsMember({"float32", "bfloat16", "float16", "float64"}));
  list("--pass", a.passes, "Passes")->check(CLI::IsMember({"inference", "training"}));
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_linear_command(linear_); }; });
}

void BenchOptions::add_encoder(CLI::App& bench) {
  auto* command =
      bench.add_subcommand("encoder", "A layer of a Transformer encoder and its parts, beside its real twin");
  command->footer(kBenchEncoderFooter);
  auto& a = encoder_;
  const auto number = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  add_algebras(*command, a.algebras);
  number("--width", a.width, "Width of the model")->check(CLI::Range(1, 1 << 16));
  number("--heads", a.heads, "Heads of the attention")->check(CLI::Range(1, 1 << 16));
  number("--feed-forward", a.feed_forward, "Width inside the feed-forward")->check(CLI::Range(1, 1 << 18));
  number("--sequence", a.sequence, "Words of a text")->check(CLI::Range(1, 1 << 16));
  number("--batch", a.batch, "Texts at a time")->check(CLI::Range(1, 1 << 16));
  number("--dropout", a.dropout, "Dropout in training")->check(CLI::Range(0.0, 1.0));
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_encoder_command(encoder_); }; });
}

void BenchOptions::add_recurrent(CLI::App& bench) {
  auto* command = bench.add_subcommand("recurrent", "Recurrent layers beside torch's: LSTM, GRU, RNN");
  command->footer(kBenchRecurrentFooter);
  auto& a = recurrent_;
  const auto list = [&](const char* name, auto& values, const char* text) {
    return command->add_option(name, values, text)->delimiter(',')->capture_default_str();
  };
  add_algebras(*command, a.algebras);
  list("--cell", a.cells, "Cells")->check(CLI::IsMember({"lstm", "gru", "rnn"}));
  list("--gates", a.gates, "One map for all gates, or one for each")
      ->check(CLI::IsMember({"packed", "separate"}));
  list("--sizes", a.widths, "Widths of input and state")->check(CLI::Range(1, 1 << 14));
  command->add_option("--proj-size", a.projection, "Width that an lstm's state is projected to; 0: none")
      ->check(CLI::Range(0, 1 << 14))
      ->capture_default_str();
  list("--batch", a.batches, "Sequences at a time")->check(CLI::Range(1, 1 << 14));
  command->add_option("--steps", a.steps, "Steps of a sequence; 1: streaming")
      ->check(CLI::Range(1, 1 << 14))
      ->capture_default_str();
  command->add_option("--lengths", a.lengths, "Sequences of one length, or a PackedSequence of mixed ones")
      ->check(CLI::IsMember({"equal", "mixed"}))
      ->capture_default_str();
  list("--caches", a.caches, "Left as the call before leaves them, or emptied before each")
      ->check(CLI::IsMember({"warm", "emptied"}));
  list("--pass", a.passes, "Passes")->check(CLI::IsMember({"inference", "training"}));
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_recurrent_command(recurrent_); }; });
}

void BenchOptions::add_pairs(CLI::App& bench) {
  auto* command = bench.add_subcommand("pairs", "Models of pairs of texts, beside their real twins");
  command->footer(kBenchPairsFooter);
  auto& a = pairs_;
  const auto list = [&](const char* name, auto& values, const char* text) {
    return command->add_option(name, values, text)->delimiter(',')->capture_default_str();
  };
  const auto number = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  add_algebras(*command, a.algebras);
  number("--model", a.model, "Attention between the texts, or one LSTM that encodes either")
      ->check(CLI::IsMember({"attention", "encoder"}));
  list("--sizes", a.widths, "Widths of the words behind their projection, or of the LSTM's state")
      ->check(CLI::Range(1, 1 << 14));
  number("--word-width", a.word_width, "Width of the words' vectors")->check(CLI::Range(1, 1 << 14));
  number("--gates", a.gates, "One map for all gates of the LSTM, or one for each")
      ->check(CLI::IsMember({"auto", "packed", "separate"}));
  number("--batch", a.batch, "Pairs at a time")->check(CLI::Range(1, 1 << 14));
  number("--words", a.words, "Words of a text")->check(CLI::Range(1, 1 << 14));
  list("--pass", a.passes, "Passes")->check(CLI::IsMember({"inference", "training"}));
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_pairs_command(pairs_); }; });
}

void BenchOptions::add_convolution(CLI::App& bench) {
  auto* command = bench.add_subcommand("convolution", "Convolutions of one to three axes, beside torch's");
  command->footer(kBenchConvolutionFooter);
  auto& a = convolution_;
  const auto list = [&](const char* name, auto& values, const char* text) {
    return command->add_option(name, values, text)->delimiter(',')->capture_default_str();
  };
  const auto number = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  add_algebras(*command, a.algebras);
  list("--channels", a.channels, "Channels of input and output")->check(CLI::Range(1, 1 << 14));
  number("--in-channels", a.in_channels, "Channels of the input, as of a first layer; 0: those of the output")
      ->check(CLI::Range(0, 1 << 14));
  command
      ->add_option(
          "--image", a.images,
          "Height and width, one or one for each of --channels; by default 2048 / channels: 32 with 64 "
          "of them, 4 with 512")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  list("--batch", a.batches, "Images at a time")->check(CLI::Range(1, 1 << 14));
  number("--axes", a.axes,
         "Spatial axes; 1: signals of so many values as --image says; 0: three with --depth, else two")
      ->check(CLI::Range(0, 3));
  number("--depth", a.depth, "Planes of images of three axes; 0: as --image")->check(CLI::Range(0, 1 << 12));
  number("--kernel", a.kernel, "The kernel's size along each axis")->check(CLI::Range(1, 31));
  number("--stride", a.stride, "Stride")->check(CLI::Range(1, 31));
  number("--dilation", a.dilation, "Distance of the kernel's values")->check(CLI::Range(1, 1 << 10));
  number("--groups", a.groups, "Groups of channels")->check(CLI::Range(1, 1 << 14));
  list("--winograd", a.winograd, "Transforms")->check(CLI::IsMember({"auto", "none", "2x2", "4x4"}));
  number("--dtype", a.dtype, "Type")->check(CLI::IsMember({"float32", "bfloat16", "float64"}));
  number("--order", a.order, "Channels in memory, of ours")->check(CLI::IsMember({"first", "last"}));
  list("--pass", a.passes, "Passes")->check(CLI::IsMember({"inference", "training"}));
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_convolution_command(convolution_); }; });
}

void BenchOptions::add_decoding(CLI::App& bench) {
  auto* command = bench.add_subcommand(
      "decoding", "Translation with a beam by a fresh encoder-decoder, beside its real twin");
  command->footer(kBenchDecodingFooter);
  auto& a = decoding_;
  const auto number = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  const auto list = [&](const char* name, auto& values, const char* text) {
    return number(name, values, text)->delimiter(',')->check(CLI::Range(1, 1 << 12));
  };
  add_algebras(*command, a.algebras);
  number("--output", a.output, "What scores the tokens; algebra: the embeddings are in the algebra too")
      ->check(CLI::IsMember({"real", "tied", "algebra"}));
  number("--attention", a.attention, "Attention of ours")->check(CLI::IsMember({"real", "componentwise"}));
  command->add_flag("--packed", a.packed, "Query, key and value as one map, in both models");
  number("--width", a.width, "Width of the model")->check(CLI::Range(1, 1 << 14));
  number("--heads", a.heads, "Heads of the attention")->check(CLI::Range(1, 1 << 14));
  number("--feed-forward", a.feed_forward, "Width inside the feed-forward")->check(CLI::Range(1, 1 << 16));
  number("--layers", a.layers, "Layers of the encoder and of the decoder")->check(CLI::Range(1, 100));
  number("--vocabulary", a.vocabulary, "Tokens of the vocabulary")->check(CLI::Range(8, 1 << 20));
  number("--source", a.source, "Tokens of a source")->check(CLI::Range(1, 1 << 12));
  number("--target", a.target, "Tokens of a target")->check(CLI::Range(2, 1 << 12));
  number("--lengths", a.lengths, "Sources of one length, or of mixed ones up to it")
      ->check(CLI::IsMember({"equal", "mixed"}));
  list("--batch", a.batches, "Sentences at a time");
  list("--beam", a.beams, "Hypotheses of a sentence");
  number("--projection", a.projection, "Type of the output layer")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  number("--shortlist", a.shortlist, "Random target tokens of each sentence, of both models; 0: all")
      ->check(CLI::Range(0, 1 << 20));
  command->add_flag("--exact", a.exact, "Answers that do not depend on the batch, as predict gives them");
  add_threads(*command, a.threads);
  add_seconds(*command, a.seconds);
  command->add_option("--json", a.json, kJson)->type_name("FILE");
  command->add_option("--write", a.write, "Only write the models and sources for scripts/bench_ctranslate2")
      ->type_name("DIR");
  command->callback([this] { *chosen_ = [this] { return bench_decoding_command(decoding_); }; });
}

void BenchOptions::add_model(CLI::App& bench) {
  auto* command = bench.add_subcommand("model", "A recipe's twins, fresh: words a second and peak memory");
  command->footer(kBenchModelFooter);
  add_recipe_options(*command, model_);
  add_twins(*command, model_);
  command
      ->add_option("--batch", model_.batches,
                   "Inputs at a time in inference; training takes the recipe's batches")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 14))
      ->capture_default_str();
  add_seconds(*command, model_.seconds);
  command->add_option("--json", model_.json, kJson)->type_name("FILE");
  command->callback([this] { *chosen_ = [this] { return bench_model_command(model_); }; });
}

}  // namespace quatrain::cli
