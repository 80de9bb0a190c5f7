#include "profiling/advice/event_facts.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiling/advice/matrix_kernels.hpp"
#include "profiling/advice/occupancy_limiter.hpp"
#include "profiling/advice/optimizer_ranges.hpp"
#include "profiling/advice/places.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/operator_work.hpp"
#include "profiling/analysis/step_rows.hpp"

namespace sidestream::advice {
namespace {

using analysis::NameClass;
using trace::Kind;
using trace::RankTimeline;

// Some writers spread lists over lines.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char one : text) {
    const bool space = one == ' ' || one == '\n' || one == '\t' || one == '\r';
    if (!space) line += one;
    if (one == ',') line += ' ';
  }
  return line;
}

bool is_item(std::string_view name) {
  return name == "aten::item" || name == "aten::_local_scalar_dense";
}

// Sums over the events of all ranks.
struct Sums {
  KernelFacts kernels;
  double kernel_ns = 0;
  ProductFacts products;
  OptimizerFacts optimizer;
  SyncFacts syncs;
  CopyFacts copies;
  double longest_unaligned = 0, longest_off_line = 0, longest_low_occupancy = 0;
  bool any_kernel = false, any_shape = false, any_optimizer = false, any_host = false,
       any_copy = false;
  std::set<std::int64_t> compute_streams, collective_streams;
};

class RankScan {
 public:
  RankScan(const analysis::RankView& rank, const analysis::StepRows& rows, Sums& sums)
      : rows_(rows),
        timeline_(*rank.timeline),
        sums_(sums),
        places_(timeline_),
        classes_(timeline_.names),
        matrix_(timeline_.names.size()),
        longest_low_(timeline_.names.size()),
        optimizer_(optimizer_ranges(timeline_) - rank.singular) {
    for (trace::NameId id = 0; id < matrix_.size(); ++id)
      matrix_[id] = is_matrix_kernel(timeline_.names[id]);
    if (const auto& devices = timeline_.info.devices; !devices.empty())
      capability_ = compute_capability(devices.rbegin()->second);
    sums_.any_optimizer = sums_.any_optimizer || !optimizer_.empty();
    sums_.optimizer.time_ns += static_cast<double>(optimizer_.length_ns());
  }

  void run() {
    find_outer_products();
    find_optimizer_launches();
    for (std::size_t row = 0; row < timeline_.size(); ++row) {
      if (!rows_.contain(row)) continue;
      switch (timeline_.kind(row)) {
        case Kind::kKernel:
          kernel(row);
          break;
        case Kind::kMemcpy:
          copy(row);
          break;
        case Kind::kOperator:
          host_operator(row);
          break;
        case Kind::kRuntime:
          runtime_call(row);
          break;
        default:
          break;
      }
    }
  }

  const RankPlaces& places() const { return places_; }

 private:
  double duration(std::size_t row) const { return static_cast<double>(timeline_.duration_ns(row)); }

  bool in_optimizer(std::size_t row) const { return optimizer_.contains(timeline_.start_ns(row)); }

  void kernel(std::size_t row) {
    sums_.any_kernel = true;
    const auto detail = timeline_.device(row);
    const std::int64_t stream = detail ? detail->stream : -1;
    if (classes_[timeline_.name_id(row)] == NameClass::kCollectiveKernel) {
      sums_.collective_streams.insert(stream);
      return;
    }
    sums_.compute_streams.insert(stream);
    if (detail && optimizer_launches_.contains(detail->correlation))
      sums_.optimizer.device_ns += duration(row);
    sums_.kernels.per_step += 1;
    sums_.kernel_ns += duration(row);
    add_kind(row);
    const bool low = detail && detail->occupancy_percent >= 0 &&
                     static_cast<double>(detail->occupancy_percent) < kLowOccupancyPercent;
    if (!low) return;
    keep_limiter(row, *detail);
    if (matrix_[timeline_.name_id(row)]) return;
    sums_.kernels.low_occupancy_ns += duration(row);
    places_.offer(PlaceKind::kLowOccupancy, row);
    if (duration(row) <= sums_.longest_low_occupancy) return;
    sums_.longest_low_occupancy = duration(row);
    sums_.kernels.low_occupancy_kernel = timeline_.name(row);
    sums_.kernels.low_occupancy_percent = static_cast<double>(detail->occupancy_percent);
    sums_.kernels.low_occupancy_limiter = occupancy_limiter(*detail, capability_);
  }

  // Of the longest launch of each kernel.
  void keep_limiter(std::size_t row, const trace::DeviceDetail& detail) {
    double& longest = longest_low_[timeline_.name_id(row)];
    if (duration(row) <= longest) return;
    longest = duration(row);
    sums_.kernels.limiters[std::string(timeline_.name(row))] =
        occupancy_limiter(detail, capability_);
  }

  void add_kind(std::size_t row) {
    const std::string_view name = timeline_.name(row);
    KernelFacts& kernels = sums_.kernels;
    if (name.find("nchwToNhwc") != std::string_view::npos ||
        name.find("nhwcToNchw") != std::string_view::npos) {
      kernels.layout_ns += duration(row);
      places_.offer(PlaceKind::kLayoutKernel, row);
    } else if (matrix_[timeline_.name_id(row)]) {
      kernels.matrix_ns += duration(row);
      if (!is_convolution_kernel(name)) return;
      kernels.convolution_ns += duration(row);
      places_.offer(PlaceKind::kConvolution, row);
    } else if (duration(row) < kShortKernelNs) {
      kernels.short_ns += duration(row);
      kernels.short_per_step += 1;
      places_.offer(PlaceKind::kSmallKernel, row);
    }
  }

  void copy(std::size_t row) {
    sums_.any_copy = true;
    if (timeline_.name(row).find("ageable") == std::string_view::npos)
      return add_default_stream(row);
    sums_.copies.pageable_ns += duration(row);
    places_.offer(PlaceKind::kPageableCopy, row);
    const auto detail = timeline_.device(row);
    if (detail) sums_.copies.pageable_bytes += static_cast<double>(detail->bytes);
  }

  void add_default_stream(std::size_t row) {
    const std::string_view name = timeline_.name(row);
    const auto detail = timeline_.device(row);
    const bool crosses =
        name.find("HtoD") != std::string_view::npos || name.find("DtoH") != std::string_view::npos;
    if (!crosses || !detail || detail->stream != kDefaultStream) return;
    sums_.copies.default_stream_ns += duration(row);
    places_.offer(PlaceKind::kDefaultStreamCopy, row);
  }

  void host_operator(std::size_t row) {
    sums_.any_host = true;
    const std::string_view name = timeline_.name(row);
    if (name == "aten::item") sums_.syncs.item_calls += 1;
    if (in_optimizer(row)) sums_.optimizer.launches += 1;
    const auto detail = timeline_.host(row);
    if (!detail || detail->shapes == trace::kNoName || outer_products_.contains(row)) return;
    const auto& product = product_of_call(timeline_.name_id(row), detail->shapes);
    if (!product) return;
    sums_.any_shape = true;
    sums_.products.flops += product->flops;
    sums_.products.host_ns += duration(row);
    const bool fp32 = detail->types != trace::kNoName &&
                      timeline_.names[detail->types].find("float") != std::string_view::npos;
    if (fp32) sums_.products.fp32_flops += product->flops;
    if (product->aligned) return add_off_line(row, *product, fp32);
    sums_.products.unaligned_flops += product->flops;
    places_.offer(PlaceKind::kUnaligned, row, product->flops);
    if (product->flops <= sums_.longest_unaligned) return;
    sums_.longest_unaligned = product->flops;
    sums_.products.unaligned_shape = on_one_line(timeline_.names[detail->shapes]);
  }

  void add_off_line(std::size_t row, const Product& product, bool fp32) {
    if (product.divisor >= (fp32 ? 32 : 64)) return;  // 128 bytes
    sums_.products.off_line_flops += product.flops;
    places_.offer(PlaceKind::kOffLine, row, product.flops);
    if (product.flops <= sums_.longest_off_line) return;
    sums_.longest_off_line = product.flops;
    sums_.products.off_line_shape = on_one_line(timeline_.names[timeline_.host(row)->shapes]);
  }

  void runtime_call(std::size_t row) {
    sums_.any_host = true;
    const NameClass what = classes_[timeline_.name_id(row)];
    if (what == NameClass::kSyncCall && !is_item(timeline_.name(row))) sums_.syncs.calls += 1;
  }

  const std::optional<Product>& product_of_call(trace::NameId name, trace::NameId shapes) {
    const auto [place, is_new] = products_.try_emplace(std::uint64_t{name} << 32 | shapes);
    if (is_new) place->second = product_of(timeline_.names[name], timeline_.names[shapes]);
    return place->second;
  }

  // The device comes to the update when its range is long over.
  void find_optimizer_launches() {
    for (std::size_t row = 0; row < timeline_.size() && !optimizer_.empty(); ++row) {
      if (timeline_.kind(row) == Kind::kRuntime && timeline_.correlation(row) != 0 &&
          in_optimizer(row))
        optimizer_launches_.insert(timeline_.correlation(row));
    }
  }

  // Operators around a product that is recorded itself, such as linear around aten::mm: counted
  // once, where the product is.
  void find_outer_products() {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < timeline_.size(); ++row) {
      if (timeline_.kind(row) != Kind::kOperator || !rows_.contain(row)) continue;
      const auto detail = timeline_.host(row);
      if (detail && detail->shapes != trace::kNoName &&
          product_of_call(timeline_.name_id(row), detail->shapes))
        rows.push_back(row);
    }
    const auto key = [this](std::size_t row) {
      return std::tuple(timeline_.track_of(row), timeline_.start_ns(row), -timeline_.end_ns(row));
    };
    std::sort(rows.begin(), rows.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const bool inside = timeline_.track_of(rows[i - 1]) == timeline_.track_of(rows[i]) &&
                          timeline_.start_ns(rows[i]) < timeline_.end_ns(rows[i - 1]);
      if (inside) outer_products_.insert(rows[i - 1]);
    }
  }

  const analysis::StepRows& rows_;
  const RankTimeline& timeline_;
  Sums& sums_;
  RankPlaces places_;
  std::unordered_map<std::uint64_t, std::optional<Product>> products_;  // by name and shapes
  std::unordered_set<std::size_t> outer_products_;                      // rows
  std::unordered_set<std::uint64_t> optimizer_launches_;                // correlations
  analysis::NameClasses classes_;
  std::optional<int> capability_;
  std::vector<bool> matrix_;         // by name
  std::vector<double> longest_low_;  // of low occupancy, by name
  analysis::IntervalSet optimizer_;
};

void divide(double by, std::initializer_list<double*> values) {
  for (double* value : values) *value /= by;
}

}  // namespace

std::optional<Product> product_of(std::string_view name, std::string_view input_dims) {
  const analysis::OperatorCall call{.name = name, .shapes = input_dims, .types = "", .values = ""};
  const auto one = analysis::matrix_product_of(call);
  const auto flops = one ? analysis::work_of(call).flops : std::nullopt;
  if (!flops) return std::nullopt;
  // The number of products in a batch may be anything.
  const std::int64_t divisor =
      std::gcd(std::gcd(one->rows, one->inner), std::gcd(one->columns, std::int64_t{64}));
  return Product{
      .flops = *flops, .aligned = divisor % 8 == 0, .divisor = static_cast<int>(divisor)};
}

Places gather_events(const analysis::Analysis& all, double recorded, Facts& facts) {
  const auto profiled = static_cast<double>(std::max<std::int64_t>(1, all.operation_steps.steps));
  Sums sums;
  Places places;
  const report::CommonTime time(all);
  for (std::size_t file = 0; file < all.plain_ranks.size(); ++file) {
    const analysis::RankView& rank = all.plain_ranks[file];
    const analysis::StepRows rows(rank, all.operation_steps.windows[file]);
    RankScan scan(rank, rows, sums);
    scan.run();
    scan.places().add_to(time, places);
  }
  if (sums.any_kernel) {
    KernelFacts& kernels = sums.kernels;
    kernels.mean_ns = kernels.per_step > 0 ? sums.kernel_ns / kernels.per_step : 0;
    kernels.one_stream =
        !sums.collective_streams.empty() &&
        std::includes(sums.compute_streams.begin(), sums.compute_streams.end(),
                      sums.collective_streams.begin(), sums.collective_streams.end());
    divide(profiled,
           {&kernels.per_step, &kernels.matrix_ns, &kernels.low_occupancy_ns, &kernels.short_ns,
            &kernels.short_per_step, &kernels.layout_ns, &kernels.convolution_ns});
    facts.kernels = kernels;
  }
  if (sums.any_shape) {
    ProductFacts& products = sums.products;
    divide(profiled, {&products.flops, &products.unaligned_flops, &products.off_line_flops,
                      &products.fp32_flops, &products.host_ns});
    facts.products = products;
  }
  if (sums.any_optimizer) {
    divide(profiled, {&sums.optimizer.launches, &sums.optimizer.device_ns});
    divide(recorded, {&sums.optimizer.time_ns});
    facts.optimizer = sums.optimizer;
  }
  if (sums.any_host) {
    divide(profiled, {&sums.syncs.item_calls, &sums.syncs.calls});
    facts.syncs = sums.syncs;
  }
  if (sums.any_copy) {
    divide(profiled,
           {&sums.copies.pageable_ns, &sums.copies.pageable_bytes, &sums.copies.default_stream_ns});
    if (!sums.compute_streams.contains(kDefaultStream)) sums.copies.default_stream_ns = 0;
    facts.copies = sums.copies;
  }
  return places;
}

}  // namespace sidestream::advice
