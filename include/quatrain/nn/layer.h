#pragma once

#include <torch/nn/cloneable.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/nn/weight.h"

namespace quatrain::nn {

/// The interface by which a layer describes its hypercomplex weights. Saving and loading, factorize, convert,
/// parameter_report and weight decay use it, and need not know the types of layers.
class QUATRAIN_API HypercomplexLayer {
 public:
  virtual ~HypercomplexLayer();

  /// The weights that the layer holds itself, not its children's: at least one, all of one algebra.
  virtual std::vector<HypercomplexWeight*> weights() = 0;
  std::vector<const HypercomplexWeight*> weights() const;
  /// Where a parameter lies in the real layer of this kind (n = 1), by which conversions find its values
  /// there. A weight is asked for by its key, and what lies there is its matrix H.
  struct Place {
    std::string name;          ///< of the real layer's parameter
    at::Tensor rows, columns;  ///< of it, int64, in the order of this layer's; undefined: all, in their order
  };
  /// The same name, whole; for layers whose rows lie in another order in each algebra.
  virtual Place place_in_real(const std::string& parameter) const { return {parameter, {}, {}}; }
  /// Why the layer over another algebra is none that has its inputs and outputs; empty where it is one.
  virtual std::string bound_to_algebra() const { return {}; }
  /// The algebra of these weights.
  const AlgebraSpec& algebra() const;

  /// The same layer over another algebra, with new random weights.
  virtual std::shared_ptr<torch::nn::Module> with_algebra(const AlgebraSpec& algebra) const = 0;
  /// Takes over the options of `layer`, which has the same type, and shares its parameters.
  virtual void become(const torch::nn::Module& layer) = 0;

 protected:
  HypercomplexLayer() = default;
  HypercomplexLayer(const HypercomplexLayer&) = default;
  HypercomplexLayer& operator=(const HypercomplexLayer&) = default;

  void weights_changed();
  void write_algebra(torch::serialize::OutputArchive& archive) const;
  void check_archive(torch::serialize::InputArchive& archive) const;
  void before_move();
  void after_move();
  void take_states(const HypercomplexLayer& other);
};

/// Base class of layers with hypercomplex weights: it tells the weights when anything but training changes
/// the parameters.
///
/// A layer adds its options (a member `options` with `algebra`, see nn/options.h, that a constructor takes),
/// reset() (HypercomplexWeight::make), weights() and forward().
template <class Derived>
class HypercomplexModule : public torch::nn::Cloneable<Derived>, public HypercomplexLayer {
 public:
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const override {
    auto copy = torch::nn::Cloneable<Derived>::clone(device);
    static_cast<HypercomplexModule&>(static_cast<Derived&>(*copy)).take_states(*this);
    return copy;
  }
  std::shared_ptr<torch::nn::Module> with_algebra(const AlgebraSpec& algebra) const override {
    auto options = static_cast<const Derived&>(*this).options;
    options.algebra(algebra);
    return std::make_shared<Derived>(std::move(options));
  }
  void become(const torch::nn::Module& layer) override {
    static_cast<Derived&>(*this) = dynamic_cast<const Derived&>(layer);
  }

  void train(bool on = true) override {
    torch::nn::Module::train(on);
    weights_changed();
  }
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override {
    to(device, non_blocking);
    to(dtype, non_blocking);
  }
  void to(torch::Dtype dtype, bool non_blocking = false) override {
    HypercomplexLayer::before_move();
    torch::nn::Module::to(dtype, non_blocking);
    HypercomplexLayer::after_move();
  }
  void to(torch::Device device, bool non_blocking = false) override {
    HypercomplexLayer::before_move();
    torch::nn::Module::to(device, non_blocking);
    HypercomplexLayer::after_move();
  }
  /// torch::save writes the algebra beside the parameters; torch::load refuses another one, other shapes and
  /// other types, before it changes the layer. An archive that names no algebra is trusted.
  void save(torch::serialize::OutputArchive& archive) const override {
    torch::nn::Module::save(archive);
    write_algebra(archive);
  }
  void load(torch::serialize::InputArchive& archive) override {
    check_archive(archive);
    torch::nn::Module::load(archive);
    weights_changed();
  }
};

}  // namespace quatrain::nn
