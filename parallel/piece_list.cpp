#include "parallel/piece_list.hpp"

#include <algorithm>

#include <ATen/Parallel.h>

namespace sidestream::parallel {
namespace {

constexpr std::size_t kPieceElements =
    65536;  // large beside a call, small beside what a thread gets

}  // namespace

PieceList::PieceList(const ParameterSpace& parameters) {
  if (parameters.is_sharded()) {
    for (std::size_t i = 0; i < parameters.size(); ++i) add(i, parameters.shards().own(i));
    return;
  }
  std::size_t total = 0;
  for (const std::size_t elements : parameters.elements()) total += elements;
  // A piece belongs to the rank in whose share of all elements it begins.
  const auto index = static_cast<std::size_t>(parameters.part().index);
  const auto count = static_cast<std::size_t>(parameters.part().count);
  const std::size_t begin = total * index / count;
  const std::size_t end = total * (index + 1) / count;
  std::size_t before = 0;  // elements of earlier parameters
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t elements = parameters.at(i).elements();
    for (std::size_t first = 0; first < elements; first += kPieceElements) {
      if (before + first < begin || before + first >= end) continue;
      pieces_.push_back({.parameter = i,
                         .first = first,
                         .count = std::min(kPieceElements, elements - first),
                         .first_in_state = first});
    }
    before += elements;
  }
}

void PieceList::add(std::size_t parameter, const OwnRange& range) {
  for (std::size_t first = range.first; first < range.end(); first += kPieceElements) {
    pieces_.push_back({.parameter = parameter,
                       .first = first,
                       .count = std::min(kPieceElements, range.end() - first),
                       .first_in_state = first - range.first});
  }
}

void PieceList::for_each(const std::function<void(const Piece&)>& work) const {
  at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), 1, [&](auto begin, auto end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      work(pieces_[i]);
  });
}

}  // namespace sidestream::parallel
