// A thread pool that runs one function over all lanes. Host only: kernels do this on a GPU.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sparring {

// Lanes share no state, so how they are divided among threads cannot change a result.
class LanePool {
 public:
  explicit LanePool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }

  ~LanePool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;

  // Calls body(first, last) on disjoint ranges that cover [0, lanes), and returns when all are done.
  void run(long lanes, const std::function<void(long, long)>& body) {
    const long parts = static_cast<long>(workers_.size()) + 1;
    if (parts == 1 || lanes < parts) {
      body(0, lanes);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      body_ = &body;
      lanes_ = lanes;
      pending_ = static_cast<long>(workers_.size());
      ++round_;
    }
    start_.notify_all();
    body(0, lanes / parts);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
  }

 private:
  void work(int index) {
    long seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      start_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      const auto* body = body_;
      const long lanes = lanes_;
      lock.unlock();
      const long parts = static_cast<long>(workers_.size()) + 1;
      (*body)(lanes* index / parts, lanes * (index + 1) / parts);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(long, long)>* body_ = nullptr;
  long lanes_ = 0, pending_ = 0, round_ = 0;
  bool stopping_ = false;
};

}  // namespace sparring
