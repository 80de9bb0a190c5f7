#include "parallel/data_parallel.hpp"

#include "parallel/data_parallel_impl.hpp"
#include "parallel/tensor_place.hpp"

namespace sidestream::parallel {

DataParallel::DataParallel(torch::nn::Module& module, comm::Communicator& communicator,
                           const DataParallelConfig& config)
    : DataParallel(module, communicator, config, DeviceTools::of(place_of(communicator))) {}
DataParallel::DataParallel(torch::nn::Module& module, comm::Communicator& communicator,
                           const DataParallelConfig& config, const DeviceTools& tools)
    : impl_(std::make_shared<Impl>(module, communicator, config, tools)) {}
DataParallel::~DataParallel() = default;

const DataParallelConfig& DataParallel::config() const noexcept { return impl_->config(); }

void DataParallel::begin_micro_step(int micro_step) { impl_->begin_micro_step(micro_step); }
std::function<torch::Tensor(const torch::Tensor&)> DataParallel::gradient_memory() {
  return [weak = std::weak_ptr<Impl>(impl_)](const torch::Tensor& parameter) {
    const auto impl = weak.lock();
    return impl ? impl->lend_gradient(parameter) : torch::Tensor();
  };
}
std::function<bool(const torch::Tensor&)> DataParallel::gradient_taking() {
  return [weak = std::weak_ptr<Impl>(impl_)](const torch::Tensor& parameter) {
    const auto impl = weak.lock();
    return impl && impl->take_gradient(parameter);
  };
}
std::function<void(const torch::Tensor&)> DataParallel::weight_arrival() {
  impl_->wait_later();
  return [weak = std::weak_ptr<Impl>(impl_)](const torch::Tensor& parameter) {
    if (const auto impl = weak.lock()) impl->wait_for_weights(parameter);
  };
}
void DataParallel::finish_backward() { impl_->finish_backward(); }
void DataParallel::require_idle(const char* call) const { impl_->require_idle(call); }
std::int64_t DataParallel::first_bad_step() const { return impl_->first_bad_step(); }
std::string DataParallel::first_bad_gradient() const { return impl_->first_bad_gradient(); }
torch::Tensor DataParallel::device_scalars() const { return impl_->step_update().scalars(); }
torch::Tensor DataParallel::loss_scale() const { return impl_->step_update().loss_scale(); }
optim::LossScaleState DataParallel::loss_scale_state() const {
  return impl_->step_update().loss_scale_state();
}
void DataParallel::restore_loss_scale(const optim::LossScaleState& state) {
  impl_->step_update().restore_loss_scale(state);
}
double DataParallel::grad_norm() const { return impl_->grad_norm(); }
StepStatistics DataParallel::update(double learning_rate) {
  impl_->prepare_update(learning_rate);
  return impl_->update_prepared();
}
void DataParallel::prepare_update(double learning_rate) { impl_->prepare_update(learning_rate); }
StepStatistics DataParallel::update_prepared() { return impl_->update_prepared(); }
void DataParallel::drop_gradients() { impl_->drop_gradients(); }
void DataParallel::count_replayed_step() { impl_->set_steps_taken(steps_taken() + 1); }
void DataParallel::abandon_step(std::int64_t taken) { impl_->abandon_step(taken); }
std::uint64_t DataParallel::layout() const { return impl_->layout(); }
void DataParallel::await_weights() const { impl_->await_weights(); }
std::int64_t DataParallel::steps_taken() const { return impl_->steps_taken(); }
void DataParallel::set_steps_taken(std::int64_t steps) {
  impl_->set_steps_taken(steps);
  impl_->step_update().forget_bad_norm();
}
std::vector<ParameterState> DataParallel::states() const { return impl_->states(); }
bool DataParallel::shards_state() const { return impl_->shards_state(); }
void DataParallel::gather_states(const StatePlace& place) { impl_->gather_states(place); }
void DataParallel::load_states(const StatePlace& source) { impl_->load_states(source); }
void DataParallel::refresh_parameters() { impl_->refresh_parameters(); }
std::vector<std::string> DataParallel::bucket_order() const { return impl_->bucket_order(); }
std::vector<std::string> DataParallel::observed_bucket_order() const {
  return layout() == 0 ? std::vector<std::string>() : bucket_order();
}
void DataParallel::set_bucket_order(const std::vector<std::string>& names) {
  impl_->set_bucket_order(names);
}
std::vector<std::string> DataParallel::describe_buckets() const {
  return impl_->describe_buckets();
}
std::string DataParallel::take_news() { return impl_->take_news(); }
void DataParallel::check_replicas() { impl_->check_replicas(); }
bool DataParallel::shares_weights() const { return impl_->shares_weights(); }

}  // namespace sidestream::parallel
