#include "parallel/piece_list.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

namespace sidestream::parallel {
namespace {

constexpr std::size_t kPieceElements =
    65536;  // large beside a call, small beside what a thread gets

}  // namespace

PieceList::PieceList(const ParameterSpace& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t elements = parameters.at(i).elements();
    for (std::size_t first = 0; first < elements; first += kPieceElements) {
      pieces_.push_back(
          {.parameter = i, .first = first, .count = std::min(kPieceElements, elements - first)});
    }
  }
}

void PieceList::for_each(const std::function<void(const Piece&)>& work) const {
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 1, [&](auto begin, auto end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      work(pieces_[i]);
  });
}

}  // namespace sidestream::parallel
