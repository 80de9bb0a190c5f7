// A collective as straight code that can be left and resumed: a coroutine that gives up its turn
// whenever it would have to wait. Whoever drives (the progress thread or a waiting caller) calls
// advance() until it is finished.
//
//   Steps work() { start_transfers(); co_await until([&] { return transfers_done(); }); use_them();
//   }
//
// The coroutine's arguments must be values or outlive it. An exception inside comes out of
// advance().
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace sidestream::comm {

enum class Advance { kWaiting, kMoved, kFinished };

// What a coroutine waits for. test() is called by whoever drives, so it must be cheap. kMoved: not
// yet, but there was something to do.
class Condition {
 public:
  virtual Advance test() = 0;

 protected:
  ~Condition() = default;
};

class Steps {
 public:
  struct promise_type {
    Condition* waiting = nullptr;
    std::exception_ptr error;

    Steps get_return_object() {
      return Steps(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Steps() = default;
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Steps& operator=(Steps&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  // Runs up to the next wait. Throws what the coroutine threw; a Steps without a coroutine is
  // finished.
  Advance advance() {
    if (!handle_ || handle_.done()) return Advance::kFinished;
    auto& promise = handle_.promise();
    if (promise.waiting != nullptr) {
      const Advance state = promise.waiting->test();
      if (state != Advance::kFinished) return state;
    }
    promise.waiting = nullptr;
    handle_.resume();
    if (promise.error) std::rethrow_exception(std::exchange(promise.error, nullptr));
    return handle_.done() ? Advance::kFinished : Advance::kMoved;
  }

  // Forgets the coroutine without ending it: what it owns is never freed.
  void abandon() noexcept { handle_ = nullptr; }

 private:
  explicit Steps(Handle handle) : handle_(handle) {}

  Handle handle_ = nullptr;
};

// Waits for a predicate.
template <typename Predicate>
class Until final : public Condition {
 public:
  explicit Until(Predicate predicate) : predicate_(std::move(predicate)) {}

  Advance test() override { return predicate_() ? Advance::kFinished : Advance::kWaiting; }
  bool await_ready() { return predicate_(); }
  void await_suspend(Steps::Handle handle) noexcept { handle.promise().waiting = this; }
  void await_resume() noexcept {}

 private:
  Predicate predicate_;
};

template <typename Predicate>
Until<Predicate> until(Predicate predicate) {
  return Until<Predicate>(std::move(predicate));
}

// Gives up the turn once, so that another thread can take over the driving between two pieces of
// work.
inline std::suspend_always give_way() { return {}; }

// Runs other Steps side by side to their ends, inside this one.
template <std::size_t kCount>
class AllFinished final : public Condition {
 public:
  explicit AllFinished(std::array<Steps*, kCount> steps) : steps_(steps) {}

  Advance test() override {
    bool moved = false;
    bool waiting = false;
    for (Steps* steps : steps_) {
      const Advance advance = steps->advance();
      moved = moved || advance == Advance::kMoved;
      waiting = waiting || advance == Advance::kWaiting;
    }
    if (moved) return Advance::kMoved;
    return waiting ? Advance::kWaiting : Advance::kFinished;
  }
  bool await_ready() noexcept { return false; }
  void await_suspend(Steps::Handle handle) noexcept { handle.promise().waiting = this; }
  void await_resume() noexcept {}

 private:
  std::array<Steps*, kCount> steps_;
};

template <typename... Inner>
AllFinished<sizeof...(Inner)> all_finished(Inner&... inner) {
  return AllFinished<sizeof...(Inner)>({&inner...});
}

}  // namespace sidestream::comm
