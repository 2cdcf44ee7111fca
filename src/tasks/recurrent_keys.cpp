#include "tasks/recurrent_keys.h"

#include "tasks/recipe_keys.h"

namespace quatrain::tasks {

void describe_recurrent(train::Keys& keys, models::RecurrentNetworkOptions& model) {
  using ops::Cell, nn::Gates;
  using I = nn::Initialiser;
  keys.algebra("algebra", model.map_settings.algebra,
               "What the recurrent layers multiply with: `real`, `quaternion`, `phm(4)` ..; the output layer "
               "is real.");
  keys.choice("cell", model.cell(),
              {Cell::lstm, Cell::lstm_printed, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu},
              "What the layers do with their gates; `lstm_printed` has h = o c, as PHM prints it.");
  keys.number("hidden", model.sizes.hidden, 1, 1 << 16, "Size of the state; n must divide it.");
  keys.number("layers", model.sizes.layers, 1, 64, "Recurrent layers, one on top of the other.");
  keys.number(
      "dense", model.dense(), 0, 1 << 16,
      "Width of a layer of the algebra, with tanh, between the recurrent layers and the output layer; "
      "n must divide it. 0: none.");
  keys.choice(
          "gates", model.recurrent_settings.gates, {Gates::automatic, Gates::packed, Gates::separate},
          "`packed`: one map for all gates. `separate`: one a gate, each with its own A where it is learned "
          "(PHM-LSTM). `automatic`: separate where A is learned.")
      .only("a cell with gates", [&model] { return ops::gates(model.cell()) > 1; });
  keys.flag("single_bias", model.recurrent_settings.single_bias, "One bias instead of torch's two.");
  keys.number("forget_bias", model.forget_bias(), -100, 100,
              "What the bias of an lstm's forget gates starts with.")
      .only("model.cell = lstm or lstm_printed, and model.chrono = 0",
            [&model] { return ops::has_memory(model.cell()) && model.recurrent_settings.chrono == 0; });
  keys.number("chrono", model.recurrent_settings.chrono, 0, 1e9,
              "The longest time in steps, at least 3, that the state of an lstm or a gru is to remember "
              "something for (chrono initialisation): the biases of the gate that keeps the state, and of an "
              "lstm's input gate, are drawn so that the times after which units forget are spread from 1 to "
              "that. It takes the place of `forget_bias`. 0: none.")
      .only("a cell with gates", [&model] { return ops::gates(model.cell()) > 1; });
  keys.choice("initialiser", model.map_settings.initialiser,
              {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he},
              "How weights are drawn; fans are those of one gate.");
  keys.number("dropout", model.drop_settings.dropout, 0, 0.99,
              "Share of values dropped between layers, and before a dense one.")
      .only("model.layers above 1 or model.dense above 0",
            [&model] { return model.sizes.layers > 1 || model.dense() > 0; });
  keys.number("recurrent_dropout", model.recurrent_settings.recurrent_dropout, 0, 0.99,
              "Share of the state's values dropped before its map, the same in all steps of a sequence.");
}

void describe_directions(train::Keys& keys, models::RecurrentNetworkOptions& model) {
  keys.flag(
      "bidirectional", model.sizes.bidirectional,
      "A second direction, from the last step to the first; such a model cannot answer while it hears.");
  keys.flag("share_directions", model.sizes.share_directions,
            "Both directions have the same weights (the printed sizes of QRNN's LSTMs).");
}

void check_recurrent(const Recipe& recipe, const models::RecurrentNetworkOptions& model) {
  const nn::AlgebraSpec& algebra = model.algebra();
  const int64_t chrono = model.recurrent_settings.chrono;
  if (chrono > 0 && chrono < 3)
    recipe.refuse("model.chrono",
                  "must be a number of steps of at least 3, or 0 for none, got " + std::to_string(chrono));
  for (const auto& [key, size] :
       {std::pair("model.hidden", model.hidden_size()), {"model.dense", model.dense()}})
    if (size % algebra.n != 0)
      recipe.refuse(key, "must be divisible by n = " + std::to_string(algebra.n) + " (" + algebra.text() +
                             "), got " + std::to_string(size) +
                             " (nearest: " + nearest_multiples(size, algebra.n) + ")");
}

}  // namespace quatrain::tasks
