// safetensors_copy INPUT OUTPUT: reads with our reader, writes with our writer, for
// safetensors_oracle.py.
#include <cstdio>
#include <exception>
#include <vector>

#include "core/checkpoint/safetensors_reader.hpp"
#include "core/checkpoint/safetensors_writer.hpp"

int main(int argc, char** argv) {
  using namespace sidestream::checkpoint;
  if (argc != 3) return 2;
  try {
    const SafetensorsReader reader(argv[1]);
    std::vector<TensorSource> tensors;
    for (std::size_t i = 0; i < reader.size(); ++i) {
      const TensorView tensor = reader.tensor(i);
      tensors.push_back({.name = std::string(tensor.name),
                         .dtype = tensor.dtype(),
                         .shape = {tensor.shape.begin(), tensor.shape.end()},
                         .bytes = tensor.bytes});
    }
    write_safetensors(argv[2], tensors, reader.metadata());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "safetensors_copy: %s\n", error.what());
    return 1;
  }
  return 0;
}
