// A thread pool that runs one function over all lanes. Host only: kernels do this on a GPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sparring {

// Lanes share no state, so how they are divided among threads cannot change a result.
//
// A thread that sleeps takes some 50 microseconds to wake (measured on virtual machines; less on bare metal), as long
// as hundreds of lanes take. So a call too short to gain is not shared; in a longer one nobody waits for a thread to
// wake: the caller takes shares from the front while those awake take theirs from the back, so that with two threads
// each keeps to lanes that its own cache knows. Workers do not spin between calls, because the processors are then
// wanted by whoever decides for the lanes.
class LanePool {
 public:
  static constexpr int kMostThreads = 1024;

  explicit LanePool(int threads) {
    if (threads < 1 || threads > kMostThreads) throw std::invalid_argument("threads must be 1 to 1024");
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {  // the system has no more threads
      stop();
      throw;
    }
  }

  ~LanePool() { stop(); }

  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;

  // Calls body(first, last) on disjoint ranges that cover [0, lanes), and returns when all are done. `nanoseconds` is
  // about what one lane takes: it decides whether threads share the lanes, and in what shares. One call at a time.
  void run(long lanes, long nanoseconds, const std::function<void(long, long)>& body) {
    const long threads = static_cast<long>(workers_.size()) + 1;
    if (threads == 1 || lanes < 2 || lanes < kWorthSharing / nanoseconds) {
      body(0, lanes);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      body_ = &body;
      first_ = 0;
      last_ = lanes;
      share_ = std::max({1L, kShare / nanoseconds, lanes / (kSharesEach * threads)});
    }
    const long wanted = std::min(threads, (lanes + share_ - 1) / share_);
    for (long i = 1; i < wanted; ++i) start_.notify_one();
    std::unique_lock<std::mutex> lock(mutex_);
    while (first_ != last_) {
      const long first = first_;
      first_ = std::min(first_ + share_, last_);
      const long until = first_;
      lock.unlock();
      body(first, until);
      lock.lock();
    }
    lock.unlock();
    // What others still do takes about a share at most: less than to sleep and be woken.
    for (int i = 0; i < kYields && working_.load(std::memory_order_acquire) != 0; ++i) std::this_thread::yield();
    lock.lock();
    done_.wait(lock, [this] { return working_ == 0; });
  }

 private:
  static constexpr long kWorthSharing = 100000;  // nanoseconds of one thread: twice what waking another takes
  static constexpr long kShare = 25000;          // nanoseconds: hundreds of times what taking a share costs
  static constexpr long kSharesEach = 8;         // in long calls
  static constexpr int kYields = 100;            // about as long as a share

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      start_.wait(lock, [this] { return stopping_ || first_ != last_; });
      if (stopping_) return;
      const long until = last_;
      last_ = std::max(last_ - share_, first_);
      const long first = last_;
      const auto* body = body_;
      ++working_;
      lock.unlock();
      (*body)(first, until);
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(long, long)>* body_ = nullptr;
  long first_ = 0, last_ = 0;    // lanes that nobody has taken yet
  long share_ = 1;               // lanes that are taken at a time
  std::atomic<int> working_{0};  // workers with a share; changes with the mutex held
  bool stopping_ = false;
};

// Refuses a second thread while one is inside: Python's threads can meet in a batch whose call has released the GIL.
class OneAtATime {
 public:
  explicit OneAtATime(std::atomic<bool>& inside) : inside_(inside) {
    if (inside_.exchange(true)) throw std::runtime_error("another thread is using this batch: give each its own");
  }
  ~OneAtATime() { inside_ = false; }

  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  std::atomic<bool>& inside_;
};

}  // namespace sparring
