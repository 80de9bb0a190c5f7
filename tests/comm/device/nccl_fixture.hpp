// A communicator over fakes of CUDA, NCCL and the host's collectives.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "comm/device/nccl_communicator.hpp"
#include "core/base/dead_peer_error.hpp"
#include "core/base/error.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"

namespace sidestream::comm {

struct NcclTest : testing::Test {
  std::shared_ptr<cuda::FakeDriver> driver = std::make_shared<cuda::FakeDriver>();
  std::shared_ptr<nccl::FakeNccl> api = std::make_shared<nccl::FakeNccl>(driver);
  std::shared_ptr<HostRecord> record = std::make_shared<HostRecord>();
  std::shared_ptr<std::atomic<bool>> failed = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<FailureHook> failure_hook = std::make_shared<FailureHook>();
  Stream compute = driver->create_stream(cuda::Priority::kNormal);
  int index = 0;  // of the device
  std::array<float, 8> data{1, 2, 3, 4};
  ScriptedHost::Reply reply = [](const std::string& mine, int) { return mine; };

  std::unique_ptr<NcclCommunicator> make(std::chrono::milliseconds setup = std::chrono::seconds(1),
                                         int ranks = 1, const nccl::Tuning& tuning = {}) {
    return std::make_unique<NcclCommunicator>(
        std::make_unique<ScriptedHost>(ranks, record, reply),
        DeviceContext{.driver = driver, .index = index, .free_bytes_at_start = 1000}, api,
        NcclConfig{.timeout_setup = setup,
                   .timeout_collective = std::chrono::milliseconds(50),
                   .setup_flag = "--timeout-setup",
                   .collective_flag = "--timeout-step",
                   .watch_interval = std::chrono::milliseconds(1),
                   .failed = failed,
                   .failure_hook = failure_hook,
                   .tuning = tuning});
  }
  Work start(NcclCommunicator& communicator, const CollectiveOptions& options) {
    return communicator.all_reduce(data.data(), data.size(), core::DType::kFloat32, options);
  }
  // Of the error that it throws; empty: none.
  static std::string words_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const core::Error& error) {
      return error.what();
    }
    return "";
  }
  static std::string failure_of(Work& work) {
    return words_of([&] { work.wait(); });
  }
  // Of a call that fails because of a peer.
  static bool is_of_a_dead_peer(const std::function<void()>& call) {
    try {
      call();
    } catch (const core::DeadPeerError&) {
      return true;
    } catch (const core::PeerError&) {
      return false;
    }
    throw core::Error("the call has not failed");
  }
};

}  // namespace sidestream::comm
